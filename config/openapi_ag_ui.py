"""How the OpenAPI document describes the endpoints of AG-UI clients (specs/ag-ui.md)."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import BRANCH, Operation, answer, operation

_STREAM: Final[dict[str, Any]] = {"text/event-stream": {}}
_RUN_AGENT_INPUT: Final = {
    "type": "object",
    "required": ["threadId", "runId", "messages"],
    "properties": {
        "threadId": {"type": "string"},
        "runId": {"type": "string", "maxLength": 128},
        "messages": {
            "type": "array",
            "items": {"type": "object"},
            "description": "The whole conversation as the client shows it: what differs from the thread "
            "begins a branch.",
        },
        "parentRunId": {"type": "string", "description": "A run of the thread to go on from."},
    },
}


def _ag_ui() -> Operation:
    return operation(
        "agent_ag_ui",
        "Run as AG-UI clients do: the whole history in, the run's events back",
        {
            "200": {"description": "AG-UI events; the same runId re-attaches.", "content": _STREAM},
            "202": answer("With Accept: application/json.", {"type": "object"}),
        },
        (401, 404, 405, 413, 422),
        requestBody={
            "required": True,
            "content": {"application/json": {"schema": _RUN_AGENT_INPUT}},
        },
    )


def _connect() -> Operation:
    thread_id = {"name": "thread_id", "in": "path", "required": True, "schema": {"type": "string"}}
    version = {
        "name": "protocolVersion",
        "in": "query",
        "description": "Of the client that reads: 1.0, or 0 for an older one; else the run's own.",
        "schema": {"type": "string"},
    }
    return operation(
        "agent_thread_connect",
        "A thread as AG-UI snapshots, then its live run if there is one",
        {"200": {"description": "AG-UI events.", "content": _STREAM}},
        (401, 404, 405),
        parameters=[thread_id, version, BRANCH],
    )


def _capabilities() -> Operation:
    return operation(
        "agent_capabilities",
        "What this agent can do, as AG-UI's AgentCapabilities",
        {"200": answer("The capabilities.", {"type": "object"})},
        (401, 405),
    )


def ag_ui_operations() -> dict[str, dict[str, Operation]]:
    """The operations by path and method."""
    return {
        "/api/v1/agent/ag-ui": {"post": _ag_ui()},
        "/api/v1/agent/capabilities": {"get": _capabilities()},
        "/api/v1/agent/threads/{thread_id}/connect": {"get": _connect()},
    }
