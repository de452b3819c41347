"""Convert exercises of free-exercise-db (github.com/yuhonas/free-exercise-db) into items.

Its `force` is left out: it calls a squat a push and a chest fly a pull, which no training split does.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

import msgspec
from msgspec import Meta, Struct

from agents.models import Category, Difficulty, Equipment, MuscleGroup, official_id
from agents.tools.exercises.file_items import Item, Name, Texts, UnusableItem, to_plain
from agents.tools.exercises.vocabulary import GROUP_OF

IMAGES: Final = "https://raw.githubusercontent.com/yuhonas/free-exercise-db/main/exercises/"


class _FreeItem(Struct, frozen=True, rename="camel"):
    """An exercise of free-exercise-db."""

    name: Name
    level: Literal["beginner", "intermediate", "expert"]
    category: Literal[
        "powerlifting",
        "strength",
        "stretching",
        "cardio",
        "olympic weightlifting",
        "strongman",
        "plyometrics",
    ]
    primary_muscles: tuple[str, ...]
    instructions: Texts
    equipment: str | None = None
    mechanic: str | None = None
    secondary_muscles: tuple[str, ...] = ()
    images: tuple[Annotated[str, Meta(max_length=500)], ...] = ()


_MUSCLES: Final = {
    "abdominals": MuscleGroup.ABS,
    "abductors": MuscleGroup.GLUTES,
    "adductors": MuscleGroup.LEGS,
    "biceps": MuscleGroup.BICEPS,
    "calves": MuscleGroup.CALVES,
    "chest": MuscleGroup.CHEST,
    "forearms": MuscleGroup.FOREARMS,
    "glutes": MuscleGroup.GLUTES,
    "hamstrings": MuscleGroup.HAMSTRINGS,
    "lats": MuscleGroup.BACK,
    "lower back": MuscleGroup.LOWER_BACK,
    "middle back": MuscleGroup.BACK,
    "neck": MuscleGroup.OTHER,
    "quadriceps": MuscleGroup.QUADRICEPS,
    "shoulders": MuscleGroup.SHOULDERS,
    "traps": MuscleGroup.TRAPEZIUS,
    "triceps": MuscleGroup.TRICEPS,
}
_EQUIPMENT: Final = {
    None: Equipment.NONE,
    "body only": Equipment.NONE,
    "medicine ball": Equipment.MEDICINE_BALL,
    "dumbbell": Equipment.DUMBBELL,
    "bands": Equipment.RESISTANCE_BAND,
    "kettlebells": Equipment.KETTLEBELL,
    "foam roll": Equipment.FOAM_ROLLER,
    "cable": Equipment.CABLE,
    "machine": Equipment.MACHINE,
    "barbell": Equipment.BARBELL,
    "e-z curl bar": Equipment.BARBELL,
    "exercise ball": Equipment.STABILITY_BALL,
    "other": Equipment.OTHER,
}
_PARTS: Final = {
    MuscleGroup.LEGS: Category.LOWER_BODY,
    MuscleGroup.CORE: Category.CORE,
    MuscleGroup.OTHER: Category.OTHER,
}


def read_free_item(raw: Any) -> Item:
    """Return the item of one raw item; raise msgspec.ValidationError or UnusableItem."""
    read = msgspec.convert(raw, _FreeItem)
    name = read.name.strip()
    targets = _each(_MUSCLES, read.primary_muscles, "primaryMuscles")
    group = _group(read.category, targets)
    (equipment,) = _each(_EQUIPMENT, (read.equipment,), "equipment")
    fields = {
        "description": _sentence(read),
        "muscle_group": group,
        "category": _part(read.category, group),
        "equipment": [equipment],
        "difficulty": Difficulty(read.level.upper()),
        "target_muscles": targets,
        "secondary_muscles": _each(_MUSCLES, read.secondary_muscles, "secondaryMuscles"),
        "steps": list(read.instructions),
        "tags": list(dict.fromkeys(tag for tag in (read.category, read.mechanic) if tag)),
        "media": _pictures(read.images),
    }
    return Item(id=official_id(name), name=name, fields=to_plain(fields))


def _sentence(read: _FreeItem) -> str:
    """Return a description, which the format lacks: "Beginner … exercise for the chest (barbell)."."""
    muscles = " and ".join(read.primary_muscles) or "body"
    equipment = read.equipment or "body only"
    return f"{read.level.capitalize()} {read.category} exercise for the {muscles} ({equipment})."


def _group(category: str, targets: list[MuscleGroup]) -> MuscleGroup:
    if category == "cardio":
        return MuscleGroup.CARDIO
    return MuscleGroup(GROUP_OF.get(targets[0], targets[0])) if targets else MuscleGroup.OTHER


def _part(category: str, group: MuscleGroup) -> Category:
    match category:
        case "stretching":
            return Category.FLEXIBILITY
        case "cardio":
            return Category.CARDIO
        case "olympic weightlifting" | "strongman":
            return Category.FULL_BODY
        case _:
            return _PARTS.get(group, Category.UPPER_BODY)


def _pictures(paths: tuple[str, ...]) -> dict[str, Any]:
    urls = [IMAGES + quote(path) for path in paths]
    return {"thumbnailUrl": urls[0], "imageUrls": urls} if urls else {}


def _each(table: dict[Any, Any], values: tuple[Any, ...], field: str) -> list[Any]:
    unknown = next((value for value in values if value not in table), None)
    if unknown is not None:
        raise UnusableItem(f"{field}: {unknown!r} is not known")
    return list(dict.fromkeys(table[value] for value in values))
