"""The starter library, written for Parley; it is loaded once and then belongs to the staff."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from django.db import transaction

from agents.models import Exercise, LibraryVersion
from agents.tools.exercises.file_items import Item
from agents.tools.exercises.import_files import read_items
from agents.tools.exercises.library_versions import publish
from agents.tools.exercises.store import import_items, lock_library

STARTER_FILE: Final = Path(__file__).with_name("starter_exercises.json")


def starter_items() -> tuple[Item, ...]:
    """Return the exercises that come with Parley."""
    return read_items(STARTER_FILE.read_bytes())


def seed_exercises() -> int:
    """Load the starter library into an empty table, publish it, and return the number of new exercises.

    A table with any content belongs to the staff and stays as it is; it is published if nothing was yet.
    """
    added = 0
    if not Exercise.objects.exists():
        with transaction.atomic():
            lock_library()
            added = 0 if Exercise.objects.exists() else import_items(starter_items()).created
    if not LibraryVersion.objects.exists():
        publish(by=None, note="Comes with Parley." if added else "")
    return added
