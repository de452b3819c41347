"""The exercises that come with Parley, and made-up ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from agents.models import official_id
from agents.tools.exercises.index import Exercise, Library
from agents.tools.exercises.seed import starter_items
from tests.support.paths import shared


@cache
def starter() -> Library:
    rows = ({"id": item.id, "name": item.name} | item.fields for item in starter_items())
    return Library(msgspec.convert(row, Exercise) for row in rows)


def named(name: str, **fields: Any) -> Exercise:
    given_fields = {"muscle_group": "OTHER", "category": "OTHER"} | fields
    return Exercise(id=official_id(name), name=name, **given_fields)


DATA = shared("data")
