"""How the OpenAPI document describes OpenAI's Responses API (README, "The openai SDK")."""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.openai.request import ResponsesBody
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
    "additionalProperties": False,
    "properties": {name: {} for name in ResponsesBody.model_fields}
    | {
        "input": {
            "description": "A text, or a list of items. Needed unless a response or a conversation goes "
            "on, or an approval is given.",
        },
        "model": {"type": "string"},
        "stream": {"type": "boolean"},
        "background": {"type": "boolean", "description": "Not together with `store: false`."},
        "store": {
            "type": "boolean",
            "description": "`false`: nothing that was said is kept once the run has ended.",
        },
        "instructions": {"type": "string", "description": "For this response alone."},
        "previous_response_id": {"type": "string"},
        "tools": {"type": "array", "items": {"type": "object"}},
    },
}
_ITEMS: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["object", "data", "first_id", "last_id", "has_more"],
    "properties": {
        "object": {"type": "string"},
        "data": {"type": "array", "items": {"type": "object"}},
        "first_id": {"type": ["string", "null"]},
        "last_id": {"type": ["string", "null"]},
        "has_more": {"type": "boolean"},
    },
}
_DELETED: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "object", "deleted"],
    "properties": {
        "id": {"type": "string"},
        "object": {"type": "string"},
        "deleted": {"type": "boolean"},
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


def _delete() -> Operation:
    return operation(
        "responses_delete",
        "Delete a response: nothing of it is kept but its numbers; a live one is cancelled",
        {"200": answer("It is gone.", _DELETED)},
        (401, 404, 405),
        error=OPENAI_ERROR,
        parameters=[_RESPONSE_ID],
    )


def _input_items() -> Operation:
    return operation(
        "responses_input_items",
        "What was said with a response",
        {"200": answer("A page of items.", _ITEMS)},
        (401, 404, 405, 422),
        error=OPENAI_ERROR,
        parameters=[
            _RESPONSE_ID,
            query("limit", "1 to 100, 20 if left out.", "integer"),
            query("order", "`asc` or, by default, `desc`."),
            query("after", "The id of the last item that you have."),
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
        "/v1/responses/{response_id}": {"get": _retrieve(), "delete": _delete()},
        "/v1/responses/{response_id}/input_items": {"get": _input_items()},
        "/v1/responses/{response_id}/cancel": {"post": _cancel()},
    }
