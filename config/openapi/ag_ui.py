"""The schemas of AG-UI (specs/ag-ui.md): messages, events and capabilities."""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.ag_ui.capabilities import CAPABILITIES
from config.http.documentation.schema_builders import (
    COUNT,
    FLAG,
    TEXT,
    Schema,
    any_of,
    array,
    open_object,
    part,
    record,
    ref,
)


def _constant(value: Any) -> Schema:
    """Return the schema that only this value matches."""
    if isinstance(value, dict):
        return record(**{name: _constant(member) for name, member in value.items()})
    return {"const": value}


_METADATA: Final[dict[str, Schema]] = {"metadata": ref("AgUiMetadata")}
_SOURCE: Final = record(
    type={"enum": ["url", "data"]}, value=TEXT, optional={"mimeType": TEXT | {"minLength": 1}}
)
_PART: Final = any_of(
    part("text", text=TEXT),
    part("image", source=_SOURCE),
    part("document", source=_SOURCE, optional={"metadata": record(filename=TEXT)}),
)
_CALL: Final = record(
    id=TEXT,
    type={"const": "function"},
    function=record(name=TEXT, arguments=TEXT | {"description": "A JSON text."}),
    optional=_METADATA,
)
_ACTIVITY: Final = open_object("The content of an activity; `activityType` says of which form it is.")
_ROLES: Final = ["user", "assistant", "system", "developer", "tool", "reasoning", "activity"]
_CARD: Final[dict[str, Schema]] = {"uiSchema": ref("UiSchema")}
_FACTS: Final[dict[str, Schema]] = {
    "seq": COUNT | {"description": "The number of the event in the run."},
    "stage": TEXT,
    "latency_ms": {"type": "integer", "description": "As the tool's runner says it."},
    "ok": FLAG,
    "kind": TEXT | {"description": "Whose the tool is."},
    "finish_reason": TEXT,
    "retryable": FLAG,
    "run_id": TEXT,
    "tool_name": TEXT,
    "contents": array(ref("MessageContent")),
    "artifact_refs": array(TEXT),
}
SCHEMAS: Final[dict[str, Schema]] = {
    "AgUiMessage": record(
        id=TEXT,
        role={"enum": _ROLES},
        optional=_METADATA
        | {
            "content": any_of(TEXT, array(_PART), _ACTIVITY),
            "name": TEXT,
            "encryptedValue": TEXT,
            "toolCalls": array(_CALL),
            "toolCallId": TEXT,
            "error": TEXT,
            "activityType": TEXT,
        },
    ),
    "AgUiMetadata": record(optional={"parley": record(optional=_FACTS | _CARD)})
    | {"description": "What Parley adds to AG-UI."},
    "AgUiCapabilities": _constant(CAPABILITIES),
}


def _event(kind: str, /, *, optional: dict[str, Schema] | None = None, **members: Schema) -> Schema:
    """Return the schema of an event; those of a thread at rest have neither time nor metadata."""
    shared = _METADATA | {"timestamp": COUNT | {"description": "Milliseconds since 1970."}}
    return part(kind, **members, optional=shared | (optional or {}))


_RUN: Final[dict[str, Schema]] = {"threadId": TEXT, "runId": TEXT}
_MESSAGE: Final[dict[str, Schema]] = {"messageId": TEXT}
_TOOL: Final[dict[str, Schema]] = {"toolCallId": TEXT}
_STATE: Final[Schema] = {"description": "The thread's state, which is the client's: any JSON."}
_INTERRUPT: Final = record(
    id=TEXT,
    reason=TEXT,
    optional={
        "message": TEXT,
        "toolCallId": TEXT,
        "expiresAt": TEXT,
        "responseSchema": open_object("The JSON Schema of the answer."),
        "metadata": open_object("What else the tool says of its question."),
    },
)
_OUTCOME: Final = any_of(
    part("success", optional={"pendingToolCallIds": array(TEXT)}),
    part("interrupt", interrupts=array(_INTERRUPT)),
    part("cancelled"),
)
_USAGE: Final = record(
    inputTokens=COUNT,
    outputTokens=COUNT,
    totalTokens=COUNT,
    optional={
        "provider": TEXT,
        "model": TEXT,
        "cachedInputTokens": COUNT,
        "reasoningTokens": COUNT,
    },
)
_PATCH: Final = record(op={"enum": ["add", "replace", "remove"]}, path=TEXT, optional={"value": _STATE})


def _custom(name: str, value: Schema) -> Schema:
    return _event("CUSTOM", name={"const": f"parley.{name}"}, value=value)


_CUSTOM: Final = (
    _custom("left_out", record(what=array(TEXT))),
    _custom("ui_schema", record(messageId=TEXT, **_CARD, optional=_TOOL)),
    _custom("state_updated", ref("StateUpdated")),
    _custom("action_requested", ref("ActionRequested")),
)
AG_UI_EVENT: Final = (
    _event("RUN_STARTED", **_RUN, optional={"protocolVersion": {"const": "1.0"}}),
    _event("RUN_FINISHED", **_RUN, outcome=_OUTCOME, optional={"usage": array(_USAGE)}),
    _event("RUN_ERROR", message=TEXT, code=TEXT),
    _event("STEP_STARTED", stepName=TEXT),
    _event("STEP_FINISHED", stepName=TEXT),
    _event("TEXT_MESSAGE_START", **_MESSAGE, role={"enum": ["assistant", "user", "system"]}),
    _event("TEXT_MESSAGE_CONTENT", **_MESSAGE, delta=TEXT),
    _event("TEXT_MESSAGE_END", **_MESSAGE),
    _event("REASONING_START", **_MESSAGE),
    _event("REASONING_MESSAGE_START", **_MESSAGE, role={"const": "reasoning"}),
    _event("REASONING_MESSAGE_CONTENT", **_MESSAGE, delta=TEXT),
    _event("REASONING_MESSAGE_END", **_MESSAGE),
    _event("REASONING_END", **_MESSAGE),
    _event("TOOL_CALL_START", **_TOOL, toolCallName=TEXT, parentMessageId=TEXT),
    _event("TOOL_CALL_ARGS", **_TOOL, delta=TEXT | {"description": "The arguments, as a JSON text."}),
    _event("TOOL_CALL_END", **_TOOL),
    _event("TOOL_CALL_RESULT", **_MESSAGE, **_TOOL, role={"const": "tool"}, content=TEXT),
    _event("STATE_SNAPSHOT", snapshot=_STATE),
    _event("STATE_DELTA", delta=array(_PATCH)),
    _event("MESSAGES_SNAPSHOT", messages=array(ref("AgUiMessage"))),
    _event("ACTIVITY_SNAPSHOT", **_MESSAGE, activityType=TEXT, content=_ACTIVITY),
    *_CUSTOM,
)
