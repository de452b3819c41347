"""The OpenAPI operations of AG-UI clients (specs/ag-ui.md)."""

from __future__ import annotations

from typing import Any, Final

from agents.dialects.ag_ui.capabilities import CAPABILITIES
from config.openapi.builders import (
    BRANCH,
    STARTS_RUN,
    TEXT,
    Route,
    Schema,
    array,
    body,
    open_object,
    operation,
    query,
    record,
    ref,
    response,
    streamed,
)


def _constant(value: Any) -> Schema:
    """Return the schema that only this value matches."""
    if isinstance(value, dict):
        return record(**{name: _constant(member) for name, member in value.items()})
    return {"const": value}


_CALL: Final = record(id=TEXT, type={"const": "function"}, function=record(name=TEXT, arguments=TEXT))
_CONTENT: Final = {
    "type": ["string", "array", "object"],
    "items": open_object("A content part of AG-UI: text or an image."),
    "additionalProperties": True,
    "description": "Text, the content parts of a user's message, or the object of an activity.",
}
_ROLES: Final = ["user", "assistant", "system", "developer", "tool", "reasoning", "activity"]
SCHEMAS: Final[dict[str, Schema]] = {
    "AgUiMessage": record(
        id=TEXT,
        role={"enum": _ROLES},
        optional={
            "content": _CONTENT,
            "name": TEXT,
            "encryptedValue": TEXT,
            "metadata": open_object("Parley's additions to AG-UI, under the key `parley`."),
            "toolCalls": array(_CALL),
            "toolCallId": TEXT,
            "error": TEXT,
            "activityType": TEXT,
        },
    ),
    "AgUiCapabilities": _constant(CAPABILITIES),
}

OPERATIONS: Final[list[Route]] = [
    operation(
        "POST /api/v1/agent/ag-ui",
        "agent_ag_ui",
        "Start a run from the whole history of an AG-UI client and stream its events",
        streamed(
            "The run's AG-UI events. The same runId attaches to a run that exists.", ref("AgUiEvent")
        )
        | {"202": response("The run is accepted (Accept: application/json).", ref("AgUiAccepted"))},
        STARTS_RUN,
        requestBody=body(ref("AgUiInput")),
    ),
    operation(
        "GET /api/v1/agent/capabilities",
        "agent_capabilities",
        "Get the agent's capabilities as AgentCapabilities of AG-UI",
        {"200": response("The agent's capabilities.", ref("AgUiCapabilities"))},
    ),
    operation(
        "GET /api/v1/agent/threads/{thread_id}/connect",
        "agent_thread_connect",
        "Read a thread as AG-UI snapshots, then follow its live run, if any",
        streamed("A stream of AG-UI events.", ref("AgUiEvent")),
        parameters=[
            query(
                "protocolVersion",
                "The client's AG-UI version: 1.0, or 0 for an older client. Default: the version of the "
                "run.",
            ),
            BRANCH,
        ],
    ),
]
