"""How the OpenAPI document describes feedback."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import ERROR, Operation, answer, operation

_TAG: Final[dict[str, Any]] = {"tags": ["feedback"]}
_TEXT: Final = {"type": "string"}
_FIELDS: Final[dict[str, Any]] = {
    "score": {"type": "integer", "enum": [-1, 0, 1], "description": "1 good, -1 bad, 0 neither."},
    "comment": {"type": ["string", "null"], "maxLength": 4000},
    "tags": {
        "type": ["array", "null"],
        "maxItems": 20,
        "items": {"type": "string", "minLength": 1, "maxLength": 50},
    },
}
_GIVEN: Final = {
    "type": "object",
    "required": ["run_id", "score", "comment", "tags", "created_at", "updated_at"],
    "properties": {
        "run_id": _TEXT,
        "score": _FIELDS["score"],
        "comment": _TEXT,
        "tags": {"type": "array", "items": _TEXT},
        "created_at": _TEXT,
        "updated_at": _TEXT,
    },
}
_BODY: Final = {
    "type": "object",
    "required": ["score"],
    "additionalProperties": False,
    "properties": _FIELDS,
}
_RUN: Final = {
    "name": "run_id",
    "in": "path",
    "required": True,
    "schema": _TEXT,
    "description": "Our id of the run, or the client's own `runId`.",
}


def feedback_operations() -> dict[str, dict[str, Operation]]:
    """By path."""
    path = "/api/v1/agent/runs/{run_id}/feedback"
    return {path: {"get": _read(), "post": _give(), "delete": _withdraw()}}


def _give() -> Operation:
    given: dict[str, Any] = {
        "200": answer("It replaces what the caller said before.", _GIVEN),
        "201": answer("The caller's first on this run.", _GIVEN),
    }
    return operation(
        "agent_run_feedback_give",
        "Say what you think of a run; said again it replaces the former",
        given,
        (401, 404, 405, 413, 422, 429),
        parameters=[_RUN],
        requestBody={"required": True, "content": {"application/json": {"schema": _BODY}}},
        **_TAG,
    )


def _read() -> Operation:
    return operation(
        "agent_run_feedback",
        "What the caller said of a run",
        {"200": answer("It.", _GIVEN), "404": answer("No such run, or nothing was said.", ERROR)},
        (401, 405),
        parameters=[_RUN],
        **_TAG,
    )


def _withdraw() -> Operation:
    return operation(
        "agent_run_feedback_withdraw",
        "Take back what was said of a run",
        {"204": {"description": "There is none any more."}},
        (401, 404, 405),
        parameters=[_RUN],
        **_TAG,
    )
