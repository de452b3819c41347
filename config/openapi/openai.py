"""The OpenAPI operations of OpenAI's Responses API, Chat Completions and list of models."""

from __future__ import annotations

from functools import partial
from typing import Final

from config.openapi.builders import (
    CITATION,
    COUNT,
    FLAG,
    OPENAI_ERROR,
    STARTS_RUN,
    TEXT,
    Route,
    Schema,
    any_of,
    array,
    body,
    nullable,
    open_object,
    operation,
    query,
    record,
    ref,
    response,
    streamed,
)

_ITEM_STATUS: Final = {"enum": ["in_progress", "completed", "incomplete", "failed"]}
_RESPONSE_STATUS: Final = {
    "enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
}


def _item(kind: str, /, *, optional: dict[str, Schema] | None = None, **members: Schema) -> Schema:
    return record(id=TEXT, type={"const": kind}, **members, optional=optional)


def _part(kind: str, /, **members: Schema) -> Schema:
    return record(type={"const": kind}, **members)


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
_OUTPUT: Final[Schema] = any_of(
    _item("message", status=_ITEM_STATUS, role={"const": "assistant"}, content=array(_TEXT)),
    _item("reasoning", status=_ITEM_STATUS, summary=array(_SUMMARY)),
    _item("function_call", **_CALL, optional=_SPACE),
    _item("custom_tool_call", **_CUSTOM_CALL, optional=_SPACE),
    _item(
        "mcp_call",
        status=_ITEM_STATUS,
        approval_request_id=nullable(TEXT),
        arguments=TEXT,
        error=nullable(open_object("Why the tool failed: `type`, `content`.")),
        name=TEXT,
        output=nullable(TEXT),
        server_label=TEXT,
    ),
    _item("mcp_approval_request", arguments=TEXT, name=TEXT, server_label=TEXT),
    _item(
        "mcp_list_tools",
        server_label=TEXT,
        tools=array(open_object("A tool of the server: `name`, `input_schema` and others.")),
        error={"type": "null"},
    ),
)
_USAGE: Final = record(
    input_tokens=COUNT,
    input_tokens_details=record(cached_tokens=COUNT, cache_write_tokens=COUNT),
    output_tokens=COUNT,
    output_tokens_details=record(reasoning_tokens=COUNT),
    total_tokens=COUNT,
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
_CONTENT: Final = any_of(
    _part("input_text", text=TEXT),
    _TEXT,
    _part("input_image", image_url=TEXT, detail={"const": "auto"}),
    _part("input_file", file_url=TEXT, filename=TEXT),
)
_CALL_OUTPUT: Final = any_of(TEXT, array(_CONTENT)) | {
    "description": "A text, or a list if there are images or files."
}
_INPUT: Final[Schema] = any_of(
    _item(
        "message",
        status=_ITEM_STATUS,
        role={"enum": ["user", "assistant", "system", "developer"]},
        content=array(_CONTENT),
    ),
    _item("function_call", **_CALL, optional=_SPACE),
    _item("custom_tool_call", **_CUSTOM_CALL, optional=_SPACE),
    _item("function_call_output", status=_ITEM_STATUS, call_id=TEXT, output=_CALL_OUTPUT),
)
_CHAT_CALL: Final = record(
    id=TEXT,
    type={"const": "function"},
    function=record(name=TEXT, arguments=TEXT | {"description": "A JSON text."}),
)
_CHAT_MESSAGE: Final = record(
    role={"const": "assistant"},
    content=nullable(TEXT),
    refusal=nullable(TEXT),
    annotations=array(record(type={"const": "url_citation"}, url_citation=record(**CITATION))),
    optional={
        "reasoning_content": TEXT | {"description": "The model's reasoning, if it is shown."},
        "tool_calls": array(_CHAT_CALL),
    },
)
_CHOICE: Final = record(
    index={"const": 0},
    message=_CHAT_MESSAGE,
    logprobs={"type": "null"},
    finish_reason={"enum": ["stop", "length", "content_filter", "tool_calls"]},
)
_CHAT_USAGE: Final = record(
    prompt_tokens=COUNT,
    completion_tokens=COUNT,
    total_tokens=COUNT,
    prompt_tokens_details=record(cached_tokens=COUNT, cache_write_tokens=COUNT, audio_tokens=COUNT),
    completion_tokens_details=record(
        reasoning_tokens=COUNT,
        audio_tokens=COUNT,
        accepted_prediction_tokens=COUNT,
        rejected_prediction_tokens=COUNT,
    ),
)
SCHEMAS: Final[dict[str, Schema]] = {
    "Response": record(
        id={"type": "string", "pattern": "^resp_[0-9a-f]{32}$"},
        object={"const": "response"},
        created_at=COUNT,
        status=_RESPONSE_STATUS,
        completed_at=nullable(COUNT),
        error=nullable(
            record(
                code={"enum": ["rate_limit_exceeded", "invalid_prompt", "server_error"]},
                message=TEXT,
                type=TEXT | {"description": "The error code of the run."},
            )
        ),
        incomplete_details=nullable(record(reason={"const": "max_output_tokens"})),
        conversation=record(id=TEXT),
        output=array(_OUTPUT),
        usage=nullable(_USAGE),
        **_ECHOED,
    ),
    "ResponseItems": record(
        object={"const": "list"},
        data=array(_INPUT),
        first_id=nullable(TEXT),
        last_id=nullable(TEXT),
        has_more=FLAG,
    ),
    "ResponseDeleted": record(id=TEXT, object={"const": "response"}, deleted={"const": True}),
    "Completion": record(
        id={"type": "string", "pattern": "^chatcmpl-[0-9a-f]{32}$"},
        object={"const": "chat.completion"},
        created={"type": "integer"},
        model=TEXT,
        choices={"type": "array", "minItems": 1, "maxItems": 1, "items": _CHOICE},
        usage=_CHAT_USAGE,
        service_tier={"const": "default"},
        system_fingerprint={"type": "null"},
    ),
    "OpenAIModel": record(
        id=TEXT, object={"const": "model"}, created={"type": "integer"}, owned_by=TEXT
    ),
}
_MODELS: Final = record(object={"const": "list"}, data=array(ref("OpenAIModel")))
_FAILED: Final = {
    "409": response("The run was cancelled, or its key was used with another body.", OPENAI_ERROR),
    "410": response("The conversation was deleted.", OPENAI_ERROR),
    "500": response("The run failed; the code names the cause.", OPENAI_ERROR),
}
_operation = partial(operation, error=OPENAI_ERROR)
_streamed = partial(streamed, frame=ref("ResponsesEvent"), whole=ref("Response"))


def _unsupported(name: str, what: str) -> Route:
    return _operation(
        f"POST /v1/responses/{name}", f"responses_{name}", f"Not supported: {what}", {}, (404,)
    )


OPERATIONS: Final[list[Route]] = [
    _operation(
        "POST /v1/responses",
        "responses_create",
        "Create a response; /compatible-mode/v1/responses is an alias",
        _streamed("The response, or its events with `stream: true`."),
        STARTS_RUN,
        requestBody=body(ref("ResponsesRequest")),
    ),
    _unsupported("input_tokens", "counting tokens before a run"),
    _unsupported("compact", "compacting a response"),
    _operation(
        "GET /v1/responses/{response_id}",
        "responses_retrieve",
        "Get a response in its present state, or its events",
        _streamed("The response, or its events with `stream=true`."),
        (410,),
        parameters=[
            query("stream", "`true`: stream the events."),
            query("starting_after", "The sequence number of the last event received.", type="integer"),
        ],
    ),
    _operation(
        "DELETE /v1/responses/{response_id}",
        "responses_delete",
        "Delete a response and cancel it if it is live; only its metrics are kept",
        {"200": response("The response is deleted.", ref("ResponseDeleted"))},
    ),
    _operation(
        "GET /v1/responses/{response_id}/input_items",
        "responses_input_items",
        "List the input items of a response",
        {"200": response("A page of input items.", ref("ResponseItems"))},
        parameters=[
            query("limit", "The page size, 1 to 100. Default: 20.", type="integer"),
            query("order", "`asc` or `desc` (default)."),
            query("after", "The id of the last item received."),
        ],
    ),
    _operation(
        "POST /v1/responses/{response_id}/cancel",
        "responses_cancel",
        "Cancel a response; a finished one does not change",
        {"200": response("The response in its present state.", ref("Response"))},
        (410,),
    ),
    _operation(
        "POST /v1/chat/completions",
        "chat_completions_create",
        "Create a chat completion; /compatible-mode/v1/chat/completions is an alias",
        streamed(
            "The completion, or its chunks with `stream: true`. A failed run is an error response, or a "
            "chunk with `error` if the stream has begun.",
            ref("CompletionChunk"),
            any_of(ref("Completion"), OPENAI_ERROR),
        )
        | _FAILED,
        STARTS_RUN,
        requestBody=body(ref("CompletionRequest")),
    ),
    _operation(
        "GET /v1/models",
        "openai_models",
        "List the models for completions and responses",
        {"200": response("The list of models.", _MODELS)},
    ),
    _operation(
        "GET /v1/models/{model_id}",
        "openai_model",
        "Get a model",
        {"200": response("The model.", ref("OpenAIModel"))},
    ),
]
