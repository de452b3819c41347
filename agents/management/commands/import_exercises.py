"""`manage.py import_exercises FILE`: add exercises to the library, or update known ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from agents.tools.exercises.file_items import BadExercises
from agents.tools.exercises.import_files import read_items
from agents.tools.exercises.store import import_items


class Command(BaseCommand):
    """The import of Parley's format, the GymBro seed or free-exercise-db; all of a file or nothing."""

    help = (
        "Import exercises from a JSON file: Parley's format, the GymBro seed or free-exercise-db. "
        "Known exercises are updated, nothing is deleted, and a bad file changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", type=Path, help="the JSON file")

    def handle(self, *args: Any, **options: Any) -> None:
        path: Path = options["file"]
        try:
            items = read_items(_content(path))
            self.stdout.write(f"{path.name}: {len(items)} exercises.")
            stored = import_items(items, lambda written: self.stdout.write(f"  {written} written …"))
        except BadExercises as problem:
            raise CommandError(f"{path.name}: {problem} Nothing was imported.") from None
        self.stdout.write(
            f"{stored.created} created, {stored.updated} updated, {stored.unchanged} unchanged."
        )


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else problem
        raise CommandError(f"{path} cannot be read: {reason}.") from None
