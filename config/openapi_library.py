"""How the OpenAPI document describes the published exercise library (specs/text-run.md §3)."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import Operation, answer, operation, query

_TAG: Final[dict[str, Any]] = {"tags": ["exercises"]}
_COUNT: Final = {"type": "integer", "minimum": 0}
_TEXTS: Final = {"type": "array", "items": {"type": "string"}}
_EXERCISE: Final = {
    "type": "object",
    "description": "An ExerciseDto; more keys where an exercise has them.",
    "required": ["id", "name", "description", "muscleGroup", "category", "equipment", "difficulty"],
}
_EXERCISES: Final = {"type": "array", "items": _EXERCISE}
_KNOWN: Final = {"name": "If-None-Match", "in": "header", "schema": {"type": "string"}}
_UNCHANGED: Final = {"304": {"description": "The caller has it already."}}
_REFUSALS: Final = (401, 404, 405, 422)


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


_META: Final = _object(
    version=_COUNT,
    totalCount=_COUNT,
    lastUpdated=_COUNT,
    checksum={"type": "string"},
    downloadUrl={"type": "string"},
)
_UPDATES: Final = _object(
    fromVersion=_COUNT,
    toVersion=_COUNT,
    added=_EXERCISES,
    updated=_EXERCISES,
    deleted=_TEXTS,
    timestamp=_COUNT,
)


def library_operations() -> dict[str, dict[str, Operation]]:
    """By path."""
    root = "/api/v1/exercise/library"
    return {
        f"{root}/meta": {"get": _meta()},
        f"{root}/full": {"get": _full()},
        f"{root}/updates": {"get": _updates()},
    }


def _meta() -> Operation:
    return operation(
        "exercise_library_meta",
        "The newest published version of the exercise library",
        {"200": answer("The version.", _META)} | _UNCHANGED,
        (401, 404, 405),
        parameters=[_KNOWN],
        **_TAG,
    )


def _full() -> Operation:
    return operation(
        "exercise_library_full",
        "Every exercise of a published version",
        {"200": answer("ExerciseDtos, gzipped to who takes it.", _EXERCISES)} | _UNCHANGED,
        _REFUSALS,
        parameters=[query("version", "By default the newest.", "integer"), _KNOWN],
        **_TAG,
    )


def _updates() -> Operation:
    return operation(
        "exercise_library_updates",
        "What changed between two published versions",
        {"200": answer("The changes.", _UPDATES)},
        _REFUSALS,
        parameters=[
            query("from", "The caller's version; 0 for none.", "integer"),
            query("to", "By default the newest.", "integer"),
        ],
        **_TAG,
    )
