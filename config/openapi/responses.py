"""The OpenAPI operations of OpenAI's Responses API (README, "The openai SDK")."""

from __future__ import annotations

from typing import Any, Final

from config.openapi.parts import (
    CITATION,
    COUNT,
    FLAG,
    OPENAI_ERROR,
    STARTS_RUN,
    TEXT,
    Operation,
    Schema,
    array,
    body,
    nullable,
    open_object,
    operation,
    path_param,
    query,
    record,
    ref,
    response,
    sse,
)

_ITEM_STATUS: Final = {"enum": ["in_progress", "completed", "incomplete", "failed"]}
_RESPONSE_STATUS: Final = {
    "enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
}


def _item(kind: str, members: dict[str, Schema], more: dict[str, Schema] | None = None) -> Schema:
    return record({"id": TEXT, "type": {"const": kind}} | members, more)


def _part(kind: str, **members: Schema) -> Schema:
    return record({"type": {"const": kind}} | members)


_EMPTY: Final[Schema] = {"type": "array", "maxItems": 0}
_CITED: Final = _part("url_citation", **CITATION)
_TEXT: Final = _part("output_text", text=TEXT, annotations=array(_CITED), logprobs=_EMPTY)
_SUMMARY: Final = _part("summary_text", text=TEXT)
_CALL: Final[dict[str, Schema]] = {
    "status": _ITEM_STATUS,
    "call_id": TEXT,
    "name": TEXT,
    "arguments": TEXT | {"description": "A JSON text."},
}
_SPACE: Final[dict[str, Schema]] = {
    "namespace": TEXT | {"description": "The tool's namespace, if the request defined one."}
}
_CUSTOM_CALL: Final[dict[str, Schema]] = {"call_id": TEXT, "name": TEXT, "input": TEXT}
_SERVER_CALL: Final[dict[str, Schema]] = {
    "status": _ITEM_STATUS,
    "approval_request_id": nullable(TEXT),
    "arguments": TEXT,
    "error": nullable(open_object("Why the tool failed: `type`, `content`.")),
    "name": TEXT,
    "output": nullable(TEXT),
    "server_label": TEXT,
}
_OUTPUT: Final[Schema] = {
    "anyOf": [
        _item(
            "message",
            {"status": _ITEM_STATUS, "role": {"const": "assistant"}, "content": array(_TEXT)},
        ),
        _item("reasoning", {"status": _ITEM_STATUS, "summary": array(_SUMMARY)}),
        _item("function_call", _CALL, _SPACE),
        _item("custom_tool_call", _CUSTOM_CALL, _SPACE),
        _item("mcp_call", _SERVER_CALL),
        _item("mcp_approval_request", {"arguments": TEXT, "name": TEXT, "server_label": TEXT}),
        _item(
            "mcp_list_tools",
            {
                "server_label": TEXT,
                "tools": array(open_object("A tool of the server: `name`, `input_schema` and others.")),
                "error": {"type": "null"},
            },
        ),
    ]
}
_USAGE: Final = record(
    {
        "input_tokens": COUNT,
        "input_tokens_details": record({"cached_tokens": COUNT, "cache_write_tokens": COUNT}),
        "output_tokens": COUNT,
        "output_tokens_details": record({"reasoning_tokens": COUNT}),
        "total_tokens": COUNT,
    }
)
_ECHOED: Final[dict[str, Schema]] = {
    "background": FLAG,
    "instructions": nullable(TEXT),
    "max_output_tokens": nullable(COUNT),
    "max_tool_calls": nullable(COUNT),
    "model": TEXT,
    "parallel_tool_calls": FLAG,
    "previous_response_id": nullable(TEXT),
    "reasoning": open_object("`effort` and `summary` of the request."),
    "service_tier": {"const": "default"},
    "store": FLAG,
    "temperature": {"type": ["number", "null"]},
    "text": open_object("`format` and `verbosity` of the request."),
    "tool_choice": {
        "type": ["string", "object"],
        "additionalProperties": True,
        "description": "The `tool_choice` of the request.",
    },
    "tools": array(open_object("A tool of the request, without the credentials of its server.")),
    "top_p": {"type": ["number", "null"]},
    "truncation": {"enum": ["auto", "disabled"]},
    "user": nullable(TEXT),
    "safety_identifier": nullable(TEXT),
    "prompt_cache_key": nullable(TEXT),
    "prompt_cache_retention": nullable(TEXT),
    "metadata": {"type": "object", "additionalProperties": TEXT},
}
_CONTENT: Final = {
    "anyOf": [
        _part("input_text", text=TEXT),
        _TEXT,
        _part("input_image", image_url=TEXT, detail={"const": "auto"}),
        _part("input_file", file_url=TEXT, filename=TEXT),
    ]
}
_CALL_OUTPUT: Final = {
    "anyOf": [TEXT, array(_CONTENT)],
    "description": "A text, or a list if there are images or files.",
}
_INPUT: Final[Schema] = {
    "anyOf": [
        _item(
            "message",
            {
                "status": _ITEM_STATUS,
                "role": {"enum": ["user", "assistant", "system", "developer"]},
                "content": array(_CONTENT),
            },
        ),
        _item("function_call", _CALL, _SPACE),
        _item("custom_tool_call", _CUSTOM_CALL, _SPACE),
        _item("function_call_output", {"status": _ITEM_STATUS, "call_id": TEXT, "output": _CALL_OUTPUT}),
    ]
}
RESPONSE_SCHEMAS: Final[dict[str, Schema]] = {
    "Response": record(
        {
            "id": {"type": "string", "pattern": "^resp_[0-9a-f]{32}$"},
            "object": {"const": "response"},
            "created_at": COUNT,
            "status": _RESPONSE_STATUS,
            "completed_at": nullable(COUNT),
            "error": nullable(
                record(
                    {
                        "code": {"enum": ["rate_limit_exceeded", "invalid_prompt", "server_error"]},
                        "message": TEXT,
                        "type": TEXT | {"description": "The error code of the run."},
                    }
                )
            ),
            "incomplete_details": nullable(record({"reason": {"const": "max_output_tokens"}})),
            "conversation": record({"id": TEXT}),
            "output": array(_OUTPUT),
            "usage": nullable(_USAGE),
        }
        | _ECHOED
    ),
    "ResponseItems": record(
        {
            "object": {"const": "list"},
            "data": array(_INPUT),
            "first_id": nullable(TEXT),
            "last_id": nullable(TEXT),
            "has_more": FLAG,
        }
    ),
    "ResponseDeleted": record({"id": TEXT, "object": {"const": "response"}, "deleted": {"const": True}}),
}
_CONTENTS: Final[dict[str, Any]] = sse(ref("ResponsesEvent")) | {
    "application/json": {"schema": ref("Response")}
}
_RESPONSE_ID: Final = path_param("response_id", "`resp_` followed by the run's id.")


def _create() -> Operation:
    return operation(
        "responses_create",
        "Create a response; /compatible-mode/v1/responses is an alias",
        {
            "200": {
                "description": "The response, or its events with `stream: true`.",
                "content": _CONTENTS,
            }
        },
        STARTS_RUN,
        error=OPENAI_ERROR,
        requestBody=body(ref("ResponsesRequest")),
    )


def _retrieve() -> Operation:
    return operation(
        "responses_retrieve",
        "Get a response in its present state, or its events",
        {
            "200": {
                "description": "The response, or its events with `stream=true`.",
                "content": _CONTENTS,
            }
        },
        (404, 410),
        error=OPENAI_ERROR,
        parameters=[
            _RESPONSE_ID,
            query("stream", "`true`: stream the events."),
            query("starting_after", "The sequence number of the last event received.", "integer"),
        ],
    )


def _delete() -> Operation:
    return operation(
        "responses_delete",
        "Delete a response and cancel it if it is live; only its metrics are kept",
        {"200": response("The response is deleted.", ref("ResponseDeleted"))},
        (404, 408, 413),
        error=OPENAI_ERROR,
        parameters=[_RESPONSE_ID],
    )


def _input_items() -> Operation:
    return operation(
        "responses_input_items",
        "List the input items of a response",
        {"200": response("A page of input items.", ref("ResponseItems"))},
        (404,),
        error=OPENAI_ERROR,
        parameters=[
            _RESPONSE_ID,
            query("limit", "The page size, 1 to 100. Default: 20.", "integer"),
            query("order", "`asc` or `desc` (default)."),
            query("after", "The id of the last item received."),
        ],
    )


def _cancel() -> Operation:
    return operation(
        "responses_cancel",
        "Cancel a response; a finished one does not change",
        {"200": response("The response in its present state.", ref("Response"))},
        (404, 408, 410, 413),
        error=OPENAI_ERROR,
        parameters=[_RESPONSE_ID],
    )


def _absent(operation_id: str, summary: str) -> Operation:
    return operation(operation_id, summary, {}, (404, 408, 413), error=OPENAI_ERROR)


def responses_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    return {
        "/v1/responses": {"post": _create()},
        "/v1/responses/input_tokens": {
            "post": _absent("responses_input_tokens", "Not supported: counting tokens before a run")
        },
        "/v1/responses/compact": {
            "post": _absent("responses_compact", "Not supported: compacting a response")
        },
        "/v1/responses/{response_id}": {"get": _retrieve(), "delete": _delete()},
        "/v1/responses/{response_id}/input_items": {"get": _input_items()},
        "/v1/responses/{response_id}/cancel": {"post": _cancel()},
    }
