"""The OpenAPI operations of AG-UI clients (specs/ag-ui.md)."""

from __future__ import annotations

from typing import Any

from agents.dialects.agui.capabilities import CAPABILITIES
from config.openapi.parts import (
    BRANCH,
    STARTS_RUN,
    TEXT,
    Operation,
    Schema,
    array,
    body,
    open_object,
    operation,
    path_param,
    query,
    record,
    ref,
    response,
    sse,
)


def ag_ui_schemas() -> dict[str, Schema]:
    """Return the schemas by name."""
    call = record({"name": TEXT, "arguments": TEXT})
    calls = array(record({"id": TEXT, "type": {"const": "function"}, "function": call}))
    content = {
        "type": ["string", "array", "object"],
        "items": open_object("A content part of AG-UI: text or an image."),
        "additionalProperties": True,
        "description": "Text, the content parts of a user's message, or the object of an activity.",
    }
    more = {
        "content": content,
        "name": TEXT,
        "encryptedValue": TEXT,
        "metadata": open_object("Parley's additions to AG-UI, under the key `parley`."),
        "toolCalls": calls,
        "toolCallId": TEXT,
        "error": TEXT,
        "activityType": TEXT,
    }
    roles = ["user", "assistant", "system", "developer", "tool", "reasoning", "activity"]
    return {
        "AgUiMessage": record({"id": TEXT, "role": {"enum": roles}}, more),
        "AgUiCapabilities": _constant(CAPABILITIES),
    }


def _constant(value: Any) -> Schema:
    """Return the schema that only this value matches."""
    if isinstance(value, dict):
        return record({name: _constant(member) for name, member in value.items()})
    return {"const": value}


def _ag_ui() -> Operation:
    return operation(
        "agent_ag_ui",
        "Start a run from the whole history of an AG-UI client and stream its events",
        {
            "200": {
                "description": "The run's AG-UI events. The same runId attaches to a run that exists.",
                "content": sse(ref("AgUiEvent")),
            },
            "202": response("The run is accepted (Accept: application/json).", ref("AgUiAccepted")),
        },
        STARTS_RUN,
        requestBody=body(ref("AgUiInput")),
    )


def _connect() -> Operation:
    text = "The client's AG-UI version: 1.0, or 0 for an older client. Default: the version of the run."
    version = query("protocolVersion", text)
    return operation(
        "agent_thread_connect",
        "Read a thread as AG-UI snapshots, then follow its live run, if any",
        {"200": {"description": "A stream of AG-UI events.", "content": sse(ref("AgUiEvent"))}},
        (404,),
        parameters=[path_param("thread_id"), version, BRANCH],
    )


def _capabilities() -> Operation:
    return operation(
        "agent_capabilities",
        "Get the agent's capabilities as AgentCapabilities of AG-UI",
        {"200": response("The agent's capabilities.", ref("AgUiCapabilities"))},
    )


def ag_ui_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    return {
        "/api/v1/agent/ag-ui": {"post": _ag_ui()},
        "/api/v1/agent/capabilities": {"get": _capabilities()},
        "/api/v1/agent/threads/{thread_id}/connect": {"get": _connect()},
    }
