"""The schemas of OpenAI's Responses API, Chat Completions and list of models."""

from __future__ import annotations

from functools import partial
from typing import Final

from config.http.documentation.schema_builders import (
    CITATION,
    COUNT,
    FLAG,
    TEXT,
    Schema,
    any_of,
    array,
    nullable,
    open_object,
    part,
    record,
    ref,
)

_ITEM_STATUS: Final = {"enum": ["in_progress", "completed", "incomplete", "failed"]}
_RESPONSE_STATUS: Final = {
    "enum": ["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
}
_item: Final = partial(part, id=TEXT)
_EMPTY: Final[Schema] = {"type": "array", "maxItems": 0}
CITED: Final = part("url_citation", **CITATION)
TEXT_PART: Final = part("output_text", text=TEXT, annotations=array(CITED), logprobs=_EMPTY)
SUMMARY_PART: Final = part("summary_text", text=TEXT)
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
_TOOL_ERROR: Final = part("mcp_tool_execution_error", content=array(part("text", text=TEXT)))
_MCP_TOOL: Final = {
    "type": "object",
    "required": ["name", "input_schema"],
    "properties": {"name": TEXT, "input_schema": open_object("The JSON Schema of its arguments.")},
    "description": "A tool of the server, with whatever else the server says of it.",
}
OUTPUT: Final[Schema] = any_of(
    _item("message", status=_ITEM_STATUS, role={"const": "assistant"}, content=array(TEXT_PART)),
    _item("reasoning", status=_ITEM_STATUS, summary=array(SUMMARY_PART)),
    _item("function_call", **_CALL, optional=_SPACE),
    _item("custom_tool_call", **_CUSTOM_CALL, optional=_SPACE),
    _item(
        "mcp_call",
        status=_ITEM_STATUS,
        approval_request_id=nullable(TEXT),
        arguments=TEXT,
        error=nullable(_TOOL_ERROR),
        name=TEXT,
        output=nullable(TEXT),
        server_label=TEXT,
    ),
    _item("mcp_approval_request", arguments=TEXT, name=TEXT, server_label=TEXT),
    _item(
        "mcp_list_tools",
        server_label=TEXT,
        tools=array(_MCP_TOOL),
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
    "reasoning": ref("ResponsesRequest.Reasoning"),
    "service_tier": {"const": "default"},
    "store": FLAG,
    "temperature": {"type": ["number", "null"]},
    "text": ref("ResponsesRequest.Text"),
    "tool_choice": {
        "type": ["string", "object"],
        "additionalProperties": True,
        "description": "The `tool_choice` of the request, in OpenAI's form.",
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
    part("input_text", text=TEXT),
    TEXT_PART,
    part("input_image", image_url=TEXT, detail={"const": "auto"}),
    part("input_file", file_url=TEXT, filename=TEXT),
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
CHAT_USAGE: Final = record(
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
        output=array(OUTPUT),
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
        usage=CHAT_USAGE,
        service_tier={"const": "default"},
        system_fingerprint={"type": "null"},
    ),
    "OpenAIModel": record(
        id=TEXT, object={"const": "model"}, created={"type": "integer"}, owned_by=TEXT
    ),
    "OpenAIModels": record(object={"const": "list"}, data=array(ref("OpenAIModel"))),
}
