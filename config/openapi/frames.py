"""Schemas of the frames of event streams, by protocol: what each `data:` line may hold.

The test suite compares every frame that is sent with them, and with the protocols' own packages.
"""

from __future__ import annotations

from typing import Any, Final

from config.http.documentation.schema_builders import (
    CITATION,
    COUNT,
    FLAG,
    TEXT,
    Schema,
    any_of,
    array,
    nullable,
    record,
    ref,
)
from config.openapi.ag_ui import AG_UI_EVENT
from config.openapi.openai import CHAT_USAGE, CITED, OUTPUT, SUMMARY_PART, TEXT_PART

_ITEM: Final[dict[str, Schema]] = {"item_id": TEXT, "output_index": COUNT}
_IN_TEXT: Final = _ITEM | {"content_index": {"const": 0}}
_IN_SUMMARY: Final = _ITEM | {"summary_index": {"const": 0}}
_LOGPROBS: Final[dict[str, Schema]] = {"logprobs": {"type": "array", "maxItems": 0}}


def _responses_event(name: str, members: dict[str, Schema]) -> Schema:
    return record(type={"const": f"response.{name}"}, sequence_number=COUNT, **members)


def _streamed_text(name: str, key: str) -> dict[str, dict[str, Schema]]:
    """Return the events of a call's input: as one delta, then as a whole."""
    return {f"{name}.delta": _ITEM | {"delta": TEXT}, f"{name}.done": _ITEM | {key: TEXT}}


_WHOLE: Final[dict[str, Schema]] = {"response": ref("Response")}
_OF_ITEM: Final[dict[str, Schema]] = {"output_index": COUNT, "item": OUTPUT}
_OF_TEXT: Final = _IN_TEXT | {"part": TEXT_PART}
_OF_SUMMARY: Final = _IN_SUMMARY | {"part": SUMMARY_PART}
_RESPONSES_EVENTS: Final[dict[str, dict[str, Schema]]] = {
    "created": _WHOLE,
    "in_progress": _WHOLE,
    "completed": _WHOLE,
    "incomplete": _WHOLE,
    "failed": _WHOLE,
    "output_item.added": _OF_ITEM,
    "output_item.done": _OF_ITEM,
    "content_part.added": _OF_TEXT,
    "content_part.done": _OF_TEXT,
    "output_text.delta": _IN_TEXT | {"delta": TEXT} | _LOGPROBS,
    "output_text.done": _IN_TEXT | {"text": TEXT} | _LOGPROBS,
    "output_text.annotation.added": _IN_TEXT | {"annotation_index": COUNT, "annotation": CITED},
    "reasoning_summary_part.added": _OF_SUMMARY,
    "reasoning_summary_part.done": _OF_SUMMARY,
    "reasoning_summary_text.delta": _IN_SUMMARY | {"delta": TEXT},
    "reasoning_summary_text.done": _IN_SUMMARY | {"text": TEXT},
    "mcp_call.in_progress": _ITEM,
    "mcp_call.completed": _ITEM,
    "mcp_call.failed": _ITEM,
    **_streamed_text("mcp_call_arguments", "arguments"),
    **_streamed_text("function_call_arguments", "arguments"),
    **_streamed_text("custom_tool_call_input", "input"),
}

_CALL: Final = record(
    index=COUNT,
    function=record(optional={"name": TEXT, "arguments": TEXT}),
    optional={"id": TEXT, "type": {"const": "function"}},
)
_DELTA: Final = record(
    optional={
        "role": {"const": "assistant"},
        "content": nullable(TEXT),
        "refusal": nullable(TEXT),
        "reasoning_content": TEXT,
        "tool_calls": array(_CALL),
        "annotations": array(record(type={"const": "url_citation"}, url_citation=record(**CITATION))),
    }
)
_CHUNK: Final = record(
    id=TEXT,
    object={"const": "chat.completion.chunk"},
    created=COUNT,
    model=TEXT,
    choices=array(
        record(
            index={"const": 0},
            delta=_DELTA,
            logprobs={"type": "null"},
            finish_reason={"enum": ["stop", "length", "content_filter", "tool_calls", None]},
        )
    ),
    service_tier={"const": "default"},
    system_fingerprint={"type": "null"},
    optional={
        "usage": nullable(CHAT_USAGE)
        | {"description": "Only if the request asks for it, in a last chunk without choices."}
    },
)
_FAILED: Final = record(error=record(message=TEXT, type=TEXT, param=nullable(TEXT), code=TEXT)) | {
    "description": "The run failed after the stream had begun."
}


def _one_of(description: str, *schemas: Schema) -> Schema:
    return {"oneOf": list(schemas), "description": description}


_FRAME: Final = any_of(
    *(
        ref(name)
        for name in (
            "TextRunFrame",
            "AgUiEvent",
            "AgentApiObject",
            "ResponsesEvent",
            "CompletionChunk",
            "RunResult",
        )
    )
)
FRAMES: Final[dict[str, Any]] = {
    "AgUiEvent": _one_of("An event of AG-UI: https://docs.ag-ui.com/concepts/events.", *AG_UI_EVENT),
    "ResponsesEvent": _one_of(
        "An event of OpenAI's Responses API.",
        *(_responses_event(name, members) for name, members in _RESPONSES_EVENTS.items()),
    ),
    "CompletionChunk": _one_of("A chunk of OpenAI's Chat Completions.", _CHUNK, _FAILED),
    "RunFrame": _FRAME | {"description": "A frame in the run's dialect, or in the requested one."},
    "RunFrames": record(
        events=array(record(event=TEXT, data=ref("RunFrame"), optional={"id": {"type": "integer"}})),
        last_event_id=COUNT | {"description": "The `after` of the next request, until `done`."},
        done=FLAG,
    ),
}
