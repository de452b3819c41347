"""The searchable library: frozen exercises and an inverted index of their words.

A library never changes; a new state of the table is a new library. The ranking is specs/text-run.md §3:
each word of the query adds 10 if it is in a name, 6 in an alias, tag or trained muscle, 3 in the
description (with equipment, difficulty and assisting muscles); nothing scores zero; ties are sorted by
name. Three rules of coaches are added: a staple leads its muscle group, a stretch is not the first
answer to a muscle's name, and circumstances (at home, for beginners) count less than muscles.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import chain, islice, zip_longest
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from agents.tools.exercises.file_items import to_plain
from agents.tools.exercises.typing_errors import Spellings
from agents.tools.exercises.vocabulary import (
    CATEGORIES,
    DAYS,
    DIFFICULTIES,
    EQUIPMENT,
    GROUP_OF,
    MUSCLES,
)
from agents.tools.exercises.words import is_chinese_pair, read_query, words
from config.http.documentation.json_types import Count, Shown, component

Day = Literal["push", "pull", "legs"]

NAME_WEIGHT: Final = 10
ALIAS_WEIGHT: Final = 6
DESCRIPTION_WEIGHT: Final = 3

STAPLE: Final = "首选"  # the tag of the exercises that coaches name first for a muscle group

_vocabulary_words: Final = cache(words)
_MUSCLE_WORDS: Final = frozenset(word for names in MUSCLES.values() for word in words(names))
_CIRCUMSTANCES: Final = frozenset(words("居家 在家 家里 home")).union(*map(words, DIFFICULTIES.values()))
_DAY_TAGS: Final[Mapping[str, Day]] = {
    "推": "push",
    "拉": "pull",
    "腿": "legs",
    "push": "push",
    "pull": "pull",
    "legs": "legs",
}
_DAY_GROUPS: Final[Mapping[str, Day]] = {
    **dict.fromkeys(("CHEST", "SHOULDERS", "TRICEPS"), "push"),
    **dict.fromkeys(("BACK", "BICEPS", "FOREARMS", "TRAPEZIUS"), "pull"),
    **dict.fromkeys(("LEGS", "QUADRICEPS", "HAMSTRINGS", "GLUTES", "CALVES"), "legs"),
}


class Exercise(Struct, frozen=True, kw_only=True):
    """One exercise of the library; times are epoch milliseconds."""

    id: str
    name: str
    name_en: str = ""
    aliases: tuple[str, ...] = ()
    description: str = ""
    description_en: str = ""
    muscle_group: str
    category: str
    equipment: tuple[str, ...] = ()
    difficulty: str = "BEGINNER"
    target_muscles: tuple[str, ...] = ()
    secondary_muscles: tuple[str, ...] = ()
    default_sets: int | None = None
    default_reps: int | None = None
    steps: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    media: dict[str, Any] = {}
    source: str = "OFFICIAL"
    is_custom: bool = False
    is_official: bool = True
    created_at: int = 0
    updated_at: int = 0


class ExerciseDto(Shown, frozen=True, rename="camel", omit_defaults=True):
    """An ExerciseDto; members without a value are left out."""

    id: str
    name: str
    description: str
    muscle_group: str
    category: str
    equipment: tuple[str, ...]
    difficulty: str
    source: str
    is_custom: bool
    is_official: bool
    created_at: Count
    updated_at: Count
    target_muscles: tuple[str, ...] = ()
    secondary_muscles: tuple[str, ...] = ()
    default_sets: Count | UnsetType = UNSET
    default_reps: Count | UnsetType = UNSET
    steps: tuple[str, ...] = ()
    tips: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    media: Annotated[Any, component("Media")] = UNSET


class Library:
    """All exercises by name, with the index for the search."""

    __slots__ = ("_days", "_postings", "_spellings", "exercises")

    def __init__(self, rows: Iterable[Exercise]) -> None:
        self.exercises = tuple(sorted(rows, key=lambda row: (row.name, row.id)))
        self._days = tuple(day_of(exercise) for exercise in self.exercises)
        postings: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for position, exercise in enumerate(self.exercises):
            for word, weight in _weights(exercise).items():
                postings[word].append((position, weight))
        self._postings = {word: tuple(found) for word, found in postings.items()}
        self._spellings = Spellings(self._postings)

    def search(self, query: str, top_k: int) -> tuple[Exercise, ...]:
        """Return the best `top_k` of the exercises that match."""
        parsed = read_query(query)
        scores: defaultdict[int, int] = defaultdict(int)
        for word in self._known_words(parsed.words):
            for position, weight in self._postings[word]:
                scores[position] += weight
        ranked: Iterable[int] = (at for _, at in sorted((-score, at) for at, score in scores.items()))
        best = islice(self._alternate_days(ranked) if parsed.wants_split else ranked, top_k)
        return tuple(self.exercises[at] for at in best)

    def _known_words(self, query_words: Iterable[str]) -> tuple[str, ...]:
        """Return the query's words that occur, and the corrections of others, if there are any."""
        known: dict[str, None] = {}
        for word in query_words:
            parts = (word,) if word in self._postings else self._correct(word)
            known.update((part, None) for part in parts if part in self._postings)
        return tuple(known)

    def _correct(self, unknown: str) -> Iterable[str]:
        """Return the characters of a pair such as 胸背, or the correction of a misspelled word."""
        return unknown if is_chinese_pair(unknown) else self._spellings.find_nearest(unknown)

    def _alternate_days(self, ranked: Iterable[int]) -> Iterator[int]:
        """Yield exercises of each training day in turn, best first; those without a day come last."""
        days: dict[Day | None, list[int]] = {}
        for at in ranked:
            days.setdefault(self._days[at], []).append(at)
        rest = days.pop(None, [])
        for turn in zip_longest(*days.values()):
            yield from (at for at in turn if at is not None)
        yield from rest


def to_dto(exercise: Exercise) -> dict[str, Any]:
    """Return the exercise as an ExerciseDto in JSON."""
    values = {name: getattr(exercise, name) for name in ExerciseDto.__struct_fields__}
    values |= {name: values[name] or UNSET for name in ("default_sets", "default_reps", "media")}
    return to_plain(ExerciseDto(**values | {"description": _description(exercise)}))


def day_of(exercise: Exercise) -> Day | None:
    """Return the exercise's day in a push, pull and legs split: by its tags, else by its muscles."""
    by_tag = map(_DAY_TAGS.get, exercise.tags)
    by_muscle = map(_DAY_GROUPS.get, (exercise.muscle_group, *exercise.target_muscles))
    return next(filter(None, chain(by_tag, by_muscle)), None)


def _description(exercise: Exercise) -> str:
    """Return both languages in one text, because the DTO has one name and one description."""
    if not exercise.description_en:
        return exercise.description
    english = (
        f"{exercise.name_en}: {exercise.description_en}" if exercise.name_en else exercise.description_en
    )
    return f"{exercise.description} {english}".strip()


def _weights(exercise: Exercise) -> dict[str, int]:
    """Return the weight of each word of an exercise."""
    weights: defaultdict[str, int] = defaultdict(int)
    aliases = (*exercise.aliases, *exercise.tags)
    for weight, texts, phrases in (
        (NAME_WEIGHT, _names(exercise), ()),
        (1, _stretch_names(exercise), ()),
        (ALIAS_WEIGHT, aliases, _trained_words(exercise)),
        (
            DESCRIPTION_WEIGHT,
            (exercise.description, exercise.description_en),
            _circumstance_words(exercise),
        ),
    ):
        found = {word for text in texts for word in words(text)}
        for word in found.union(*map(_vocabulary_words, phrases)):
            weights[word] += weight
    staple = STAPLE in exercise.tags
    for word in _CIRCUMSTANCES.intersection(weights):
        weights[word] = 2 * DESCRIPTION_WEIGHT if staple else DESCRIPTION_WEIGHT
    return weights


def _names(exercise: Exercise) -> tuple[str, ...]:
    """Return the searched names; those of a stretch are without the words of muscles."""
    names = (exercise.name, exercise.name_en)
    if exercise.category != "FLEXIBILITY":
        return names
    return tuple(word for name in names for word in words(name) if word not in _MUSCLE_WORDS)


def _stretch_names(exercise: Exercise) -> tuple[str, ...]:
    """Return the names of a stretch again, so that the stretch that is named after the muscle leads."""
    return (exercise.name, exercise.name_en) if exercise.category == "FLEXIBILITY" else ()


def _trained_words(exercise: Exercise) -> Iterator[str]:
    """Yield words of its muscle group and of targets within it: a bench press is no answer to 练肩."""
    for muscle in (exercise.muscle_group, *exercise.target_muscles):
        if _is_in_group(muscle, exercise):
            yield MUSCLES.get(muscle, "")


def _circumstance_words(exercise: Exercise) -> Iterator[str]:
    """Yield common words for equipment, assisting muscles, part of a programme, difficulty and day."""
    yield from (EQUIPMENT.get(item, "") for item in exercise.equipment)
    yield from (MUSCLES.get(muscle, "") for muscle in _assisting_muscles(exercise))
    yield CATEGORIES.get(exercise.category, "")
    yield DIFFICULTIES.get(exercise.difficulty, "")
    day = day_of(exercise)
    if day and exercise.category != "FLEXIBILITY":
        yield DAYS[day]


def _assisting_muscles(exercise: Exercise) -> Iterator[str]:
    """Yield muscles that also work; a staple repeats its own, so that it leads its group."""
    for muscle in (*exercise.target_muscles, *exercise.secondary_muscles):
        if not _is_in_group(muscle, exercise):
            yield muscle
    if STAPLE in exercise.tags:
        yield from (exercise.muscle_group, *exercise.target_muscles[:1])


def _is_in_group(muscle: str, exercise: Exercise) -> bool:
    group = exercise.muscle_group
    return muscle == group or GROUP_OF.get(muscle) == group or GROUP_OF.get(group) == muscle
