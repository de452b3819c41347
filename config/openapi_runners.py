"""How the OpenAPI document describes runners."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import Operation, answer, operation

_TAG: Final[dict[str, Any]] = {"tags": ["runners"]}
_TEXT: Final = {"type": "string"}
_RUNNER: Final = {
    "type": "object",
    "required": ["id", "name", "label", "capabilities", "permissions", "config_schema", "home"],
    "properties": {
        "id": _TEXT,
        "name": _TEXT,
        "label": {"type": "object"},
        "description": {"type": ["object", "null"]},
        "capabilities": {"type": "object"},
        "permissions": {"type": "object"},
        "context": {"type": "object"},
        "config_schema": {"type": "array", "items": {"type": "object"}},
        "metadata": {"type": "object"},
        "home": {"enum": ["builtin", "python", "plugin"]},
        "bindings": {"type": "array", "items": _TEXT},
    },
}
_LIST: Final = {
    "type": "object",
    "required": ["runners"],
    "properties": {"runners": {"type": "array", "items": _RUNNER}},
}
_EVENT: Final = {
    "type": "object",
    "required": ["input"],
    "properties": {
        "input": {
            "type": "object",
            "properties": {"text": _TEXT, "contents": {"type": "array", "items": {"type": "object"}}},
        },
        "conversation": {"type": "object", "properties": {"conversation_id": _TEXT}},
        "run_id": _TEXT,
        "model": _TEXT,
        "metadata": {"type": "object"},
    },
}
_ID: Final = {"name": "runner_id", "in": "path", "required": True, "schema": _TEXT}


def runner_operations() -> dict[str, dict[str, Operation]]:
    """By path."""
    root = "/api/v1/agent/runners"
    return {root: {"get": _list()}, f"{root}/{{runner_id}}/run": {"post": _run()}}


def _list() -> Operation:
    return operation(
        "agent_runners",
        "Every runner that is there now, for staff",
        {"200": answer("Their manifests.", _LIST)},
        (401, 403, 405, 429),
        **_TAG,
    )


def _run() -> Operation:
    streamed: dict[str, Any] = {
        "200": {
            "description": "The run's result stream: an AgentRunResult a line, or a server-sent event.",
            "content": {"application/x-ndjson": {}, "text/event-stream": {}},
        }
    }
    return operation(
        "agent_runner_run",
        "Run one runner, for staff",
        streamed,
        (401, 403, 404, 405, 413, 422, 429),
        parameters=[_ID],
        requestBody={"required": True, "content": {"application/json": {"schema": _EVENT}}},
        **_TAG,
    )
