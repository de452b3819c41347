"""The OpenAPI operations of feedback."""

from __future__ import annotations

from typing import Any, Final

from config.openapi.parts import (
    ERROR,
    TEXT,
    TIME,
    Operation,
    array,
    body,
    operation,
    path_param,
    record,
    response,
)

_TAG: Final[dict[str, Any]] = {"tags": ["feedback"]}
_FIELDS: Final[dict[str, Any]] = {
    "score": {"type": "integer", "enum": [-1, 0, 1], "description": "1: good, -1: bad, 0: neutral."},
    "comment": {"type": ["string", "null"], "maxLength": 4000},
    "tags": {
        "type": ["array", "null"],
        "maxItems": 20,
        "items": {"type": "string", "minLength": 1, "maxLength": 50},
    },
}
FEEDBACK: Final = record(
    {
        "run_id": TEXT,
        "score": _FIELDS["score"],
        "comment": TEXT,
        "tags": array(TEXT),
        "created_at": TIME,
        "updated_at": TIME,
    }
)
_BODY: Final = record({"score": _FIELDS["score"]}, {name: _FIELDS[name] for name in ("comment", "tags")})
_RUN: Final = path_param("run_id", "The run's id, or the client's `runId`.")


def feedback_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    path = "/api/v1/agent/runs/{run_id}/feedback"
    return {path: {"get": _read(), "post": _put(), "delete": _withdraw()}}


def _put() -> Operation:
    responses: dict[str, Any] = {
        "200": response("The feedback that replaces the caller's previous feedback.", FEEDBACK),
        "201": response("The caller's first feedback on this run.", FEEDBACK),
    }
    return operation(
        "agent_run_feedback_give",
        "Give feedback on a run, or replace it",
        responses,
        (404,),
        parameters=[_RUN],
        requestBody=body(_BODY),
        **_TAG,
    )


def _read() -> Operation:
    return operation(
        "agent_run_feedback",
        "Get the caller's feedback on a run",
        {"200": response("The feedback.", FEEDBACK), "404": response("No run or no feedback.", ERROR)},
        parameters=[_RUN],
        **_TAG,
    )


def _withdraw() -> Operation:
    return operation(
        "agent_run_feedback_withdraw",
        "Delete the caller's feedback on a run",
        {"204": {"description": "The feedback is deleted."}},
        (404, 408, 413),
        parameters=[_RUN],
        **_TAG,
    )
