"""How the OpenAPI document describes OpenAI's Responses API (README, "The openai SDK")."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import OPENAI_ERROR, Operation, answer, operation, query

_RESPONSE: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "object", "status", "output"],
    "properties": {
        "id": {"type": "string", "pattern": "^resp_"},
        "object": {"type": "string"},
        "status": {"type": "string"},
        "output": {"type": "array", "items": {"type": "object"}},
    },
}
_REQUEST: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["input"],
    "properties": {
        "input": {"description": "A text, or a list of items."},
        "model": {"type": "string"},
        "stream": {"type": "boolean"},
        "background": {"type": "boolean"},
        "instructions": {"type": "string"},
        "previous_response_id": {"type": "string"},
        "tools": {"type": "array", "items": {"type": "object"}},
    },
}
_CONTENT: Final[dict[str, Any]] = {
    "text/event-stream": {},
    "application/json": {"schema": _RESPONSE},
}
_RESPONSE_ID: Final = {
    "name": "response_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "`resp_` and the run's id.",
}


def _create() -> Operation:
    return operation(
        "responses_create",
        "Create a response; the same under /compatible-mode/v1/responses",
        {
            "200": {
                "description": "The response, or with `stream: true` its events.",
                "content": _CONTENT,
            }
        },
        (401, 404, 405, 409, 413, 422, 429),
        error=OPENAI_ERROR,
        requestBody={"required": True, "content": {"application/json": {"schema": _REQUEST}}},
    )


def _retrieve() -> Operation:
    return operation(
        "responses_retrieve",
        "A response as it stands, or its events",
        {"200": {"description": "The response, or with `stream=true` its events.", "content": _CONTENT}},
        (401, 404, 405, 422, 429),
        error=OPENAI_ERROR,
        parameters=[
            _RESPONSE_ID,
            query("stream", "`true` for its events."),
            query("starting_after", "The sequence number of the last event that you have.", "integer"),
        ],
    )


def _cancel() -> Operation:
    return operation(
        "responses_cancel",
        "Cancel a response; one that has ended stays as it is",
        {"200": answer("The response.", _RESPONSE)},
        (401, 404, 405),
        error=OPENAI_ERROR,
        parameters=[_RESPONSE_ID],
    )


def responses_operations() -> dict[str, dict[str, Operation]]:
    """The operations by path and method."""
    return {
        "/v1/responses": {"post": _create()},
        "/v1/responses/{response_id}": {"get": _retrieve()},
        "/v1/responses/{response_id}/cancel": {"post": _cancel()},
    }
