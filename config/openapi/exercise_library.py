"""The schemas of the published exercise library (specs/text-run.md §3)."""

from __future__ import annotations

from typing import Final

from config.http.documentation.schema_builders import (
    COUNT,
    FLAG,
    TEXT,
    Schema,
    array,
    nullable,
    record,
    ref,
)

_TEXTS: Final = array(TEXT)
_EXERCISE: Final = record(
    id=TEXT,
    name=TEXT,
    description=TEXT,
    muscleGroup=nullable(TEXT),
    category=nullable(TEXT),
    equipment=_TEXTS,
    difficulty=nullable(TEXT),
    source=TEXT,
    isCustom=FLAG,
    isOfficial=FLAG,
    createdAt=COUNT,
    updatedAt=COUNT,
    optional={
        "targetMuscles": _TEXTS,
        "secondaryMuscles": _TEXTS,
        "defaultSets": COUNT,
        "defaultReps": COUNT,
        "steps": _TEXTS,
        "tips": _TEXTS,
        "tags": _TEXTS,
        "media": ref("Media"),
    },
) | {"description": "An ExerciseDto; members without a value are left out."}
_EXERCISES: Final = array(ref("Exercise"))
_META: Final = record(
    version=COUNT, totalCount=COUNT, lastUpdated=COUNT, checksum=TEXT, downloadUrl=TEXT
)
_UPDATES: Final = record(
    fromVersion=COUNT,
    toVersion=COUNT,
    added=_EXERCISES,
    updated=_EXERCISES,
    deleted=_TEXTS,
    timestamp=COUNT,
)
SCHEMAS: Final[dict[str, Schema]] = {
    "Exercise": _EXERCISE,
    "LibraryMeta": _META,
    "LibraryUpdates": _UPDATES,
}
