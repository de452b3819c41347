"""Write items into the table: an import changes only the fields that its file has.

An item changes the exercise with its name, else the one with its id (a rename). All items are written,
or none; an unchanged row is not written, so that a repeated import changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from django.db import connection, transaction
from django.utils import timezone
from msgspec import Struct

from agents.models import Exercise, official_id
from agents.tools.exercises.file_items import Item

BATCH: Final = 200


class ImportResult(Struct, frozen=True):
    """The effect of an import."""

    created: int
    updated: int
    unchanged: int


def import_items(
    items: tuple[Item, ...], progress: Callable[[int], None] = lambda written: None
) -> ImportResult:
    """Write the items in one transaction; `progress` receives the number of rows written so far."""
    with transaction.atomic():
        lock_library()
        return _write(items, progress)


def lock_library() -> None:
    """Keep other writers out until the transaction ends; readers continue."""
    with connection.cursor() as cursor:
        cursor.execute("LOCK TABLE agents_exercise IN SHARE ROW EXCLUSIVE MODE")


def _write(items: tuple[Item, ...], progress: Callable[[int], None]) -> ImportResult:
    known = _KnownRows(items)
    fresh: list[Exercise] = []
    changed: list[Exercise] = []
    for item in items:
        row = known.find_row(item)
        if row is None:
            fresh.append(Exercise(id=known.free_id(item), name=item.name, **item.fields))
        elif _change(row, item):
            changed.append(row)
    written = 0
    for batch in _batches(changed):
        Exercise.objects.bulk_update(batch, _COLUMNS)
        progress(written := written + len(batch))
    for batch in _batches(fresh):
        Exercise.objects.bulk_create(batch)
        progress(written := written + len(batch))
    return ImportResult(
        created=len(fresh), updated=len(changed), unchanged=len(items) - len(fresh) - len(changed)
    )


class _KnownRows:
    """The rows that the items of a file may refer to."""

    def __init__(self, items: tuple[Item, ...]) -> None:
        named = Exercise.objects.filter(name__in=[item.name for item in items])
        self._by_name = {row.name: row for row in named}
        self._named_ids = {row.id for row in self._by_name.values()}
        self._by_id = Exercise.objects.in_bulk([item.id for item in items])

    def find_row(self, item: Item) -> Exercise | None:
        if item.name in self._by_name:
            return self._by_name[item.name]
        return None if item.id in self._named_ids else self._by_id.get(item.id)

    def free_id(self, item: Item) -> str:
        """Return the item's id, unless an exercise that was renamed in admin still has it."""
        return official_id(item.name, digits=32) if item.id in self._by_id else item.id


def _change(row: Exercise, item: Item) -> bool:
    """Apply the item to the row; return whether anything was different."""
    fields: dict[str, Any] = {"name": item.name, **item.fields}
    different = {field: value for field, value in fields.items() if getattr(row, field) != value}
    for field, value in different.items():
        setattr(row, field, value)
    if different:
        row.updated_at = timezone.now()
    return bool(different)


def _batches(rows: list[Exercise]) -> Iterator[list[Exercise]]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


_COLUMNS: Final = tuple(
    field.name for field in Exercise._meta.fields if field.name not in {"id", "created_at"}
)
