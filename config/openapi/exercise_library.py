"""The OpenAPI operations of the published exercise library (specs/text-run.md §3)."""

from __future__ import annotations

from functools import partial
from typing import Final

from config.openapi.builders import (
    COUNT,
    FLAG,
    TEXT,
    Route,
    array,
    header,
    nullable,
    open_object,
    operation,
    query,
    record,
    response,
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
        "media": open_object("`thumbnailUrl`, `videoUrl`, `imageUrls`, `stepImages`, `version`."),
    },
) | {"description": "An ExerciseDto; members without a value are left out."}
_EXERCISES: Final = array(_EXERCISE)
_KNOWN: Final = header("If-None-Match", "The ETag of the caller's copy.")
_UNCHANGED: Final = {"304": {"description": "The caller's copy is current."}}
LIBRARY_META: Final = record(
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

_operation = partial(operation, tags=["exercises"])

OPERATIONS: Final[list[Route]] = [
    _operation(
        "GET /api/v1/exercise/library/meta",
        "exercise_library_meta",
        "Describe the newest published version of the exercise library",
        {"200": response("The newest version.", LIBRARY_META)} | _UNCHANGED,
        (404,),
        parameters=[_KNOWN],
    ),
    _operation(
        "GET /api/v1/exercise/library/full",
        "exercise_library_full",
        "Get all exercises of a published version",
        {"200": response("The ExerciseDtos; gzip if the client accepts it.", _EXERCISES)} | _UNCHANGED,
        (404,),
        parameters=[query("version", "The version. Default: the newest.", type="integer"), _KNOWN],
    ),
    _operation(
        "GET /api/v1/exercise/library/updates",
        "exercise_library_updates",
        "Get the changes between two published versions",
        {"200": response("The changed exercises.", _UPDATES)},
        (404,),
        parameters=[
            query("from", "The caller's version; 0 if it has none.", type="integer"),
            query("to", "The target version. Default: the newest.", type="integer"),
        ],
    ),
]
