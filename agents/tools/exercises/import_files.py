"""Read items from exercise files: the starter set and the two public formats (specs/text-run.md §3).

Pure functions, without a database. An item has only the fields of its file, so that the import of a file
without aliases does not change the aliases of an existing exercise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from agents.models import Category, Difficulty, Equipment, MuscleGroup, Source, official_id
from agents.tools.exercises.file_items import (
    BadExercises,
    Item,
    Media,
    Name,
    Text,
    Texts,
    UnusableItem,
    format_error,
    refuse_nul,
    to_plain,
)
from agents.tools.exercises.free_db import read_free_item


class LibraryItem(Struct, frozen=True, rename="camel"):
    """An exercise with the names of an ExerciseDto, and some more names of the starter set."""

    name: Name
    muscle_group: MuscleGroup
    category: Category
    equipment: tuple[Equipment, ...]
    id: Annotated[str, Meta(max_length=64, pattern=r"^(off_[a-f0-9]+|u_.+_[a-f0-9]{8})$")] = ""
    name_en: Annotated[str, Meta(max_length=200)] = ""
    aliases: tuple[Name, ...] = ()
    description: Text = ""
    description_en: Text = ""
    difficulty: Difficulty = Difficulty.BEGINNER
    target_muscles: tuple[MuscleGroup, ...] = ()
    secondary_muscles: tuple[MuscleGroup, ...] = ()
    default_sets: Annotated[int, Meta(ge=1, le=10)] | None = None
    default_reps: Annotated[int, Meta(ge=1, le=100)] | None = None
    steps: Texts = ()
    tips: Texts = ()
    tags: tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...] = ()
    media: Media | None = None
    source: Source = Source.OFFICIAL
    is_custom: bool = False
    is_official: bool = True


LIBRARY_FIELDS: Final = {
    field.encode_name: field.name
    for field in msgspec.structs.fields(LibraryItem)
    if field.name not in {"id", "name"}
}
"""The model's fields by their names in a file."""


def read_items(content: bytes) -> tuple[Item, ...]:
    """Return the exercises of a file in any of the three formats; raise BadExercises."""
    try:
        document = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise BadExercises(f"This is not JSON: {problem}.") from None
    raw, read_item = _format(document)
    items = tuple(_read_numbered(raw, read_item))
    if not items:
        raise BadExercises("The file holds no exercises.")
    _refuse_twins(items)
    return items


def read_library_items(raw: list[Any]) -> tuple[Item, ...]:
    """Return the exercises of a body, with the names of an ExerciseDto; raise BadExercises."""
    items = tuple(_read_numbered(raw, _library_item))
    _refuse_twins(items)
    return items


def _format(document: Any) -> tuple[list[Any], Callable[[Any], Item]]:
    """Return the raw items and the function that reads one, by the structure of the file."""
    match document:
        case {"entity": "EXERCISE", "payload": list(payload)}:
            return payload, _library_item
        case {"format": "parley.exercises", "exercises": list(exercises)}:
            return exercises, _library_item
        case list():
            return document, read_free_item
        case _:
            raise BadExercises(
                'Not a known format: expected a list (free-exercise-db), {"entity": "EXERCISE", '
                '"payload": […]} or {"format": "parley.exercises", "exercises": […]}.'
            )


def _read_numbered(raw: list[Any], read_item: Callable[[Any], Item]) -> Iterator[Item]:
    for number, item in enumerate(raw, start=1):
        try:
            refuse_nul(item)
            yield read_item(item)
        except (msgspec.ValidationError, UnusableItem, RecursionError) as problem:
            raise BadExercises(f"Item {number}{_name_of(item)}: {format_error(problem)}.") from None


def _library_item(raw: Any) -> Item:
    present = (
        {key: value for key, value in raw.items() if value is not None} if isinstance(raw, dict) else raw
    )
    read = msgspec.convert(present, LibraryItem)
    fields = {name: getattr(read, name) for key, name in LIBRARY_FIELDS.items() if key in present}
    name = read.name.strip()
    return Item(id=read.id or official_id(name), name=name, fields=to_plain(fields))


def _refuse_twins(items: tuple[Item, ...]) -> None:
    numbers: dict[str, int] = {}
    for number, item in enumerate(items, start=1):
        for key in (f"id {item.id}", f"name {item.name!r}"):
            if key in numbers:
                raise BadExercises(f"Items {numbers[key]} and {number} have the same {key}.")
            numbers[key] = number


def _name_of(item: Any) -> str:
    name = item.get("name") if isinstance(item, dict) else None
    return f" ({name[:80]!r})" if isinstance(name, str) else ""
