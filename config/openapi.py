"""Put the plain async endpoints into the OpenAPI document beside those of DRF.

drf-spectacular describes DRF views; the run endpoints are plain async ones, so their operations are
written here, around the published JSON Schemas, and a test keeps them and the routes together.
"""

from __future__ import annotations

import json
from typing import Any, Final

from django.conf import settings

Operation = dict[str, Any]


def _schema(name: str) -> dict[str, Any]:
    path = settings.BASE_DIR / "docs" / "api-contracts" / "schemas" / f"{name}.schema.json"
    whole: dict[str, Any] = json.loads(path.read_text())
    return {key: value for key, value in whole.items() if not key.startswith("$")}


_ERROR: Final = {
    "type": "object",
    "required": ["detail", "code", "request_id"],
    "properties": {
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
    },
}
_RUN_ID: Final = {
    "name": "run_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "32 hex digits or a UUID.",
}


def _query(name: str, description: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": kind}, "description": description}


def _answer(description: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def _operation(
    operation_id: str, summary: str, answers: dict[str, Any], refusals: tuple[int, ...], **more: Any
) -> Operation:
    refused = {str(status): _answer(_REFUSALS[status], _ERROR) for status in refusals}
    return {
        "operationId": operation_id,
        "summary": summary,
        "tags": ["agent"],
        "security": [{"bearer": []}],
        "responses": answers | refused,
    } | more


_REFUSALS: Final = {
    401: "No valid token.",
    404: "No such run of this user.",
    405: "Wrong method.",
    413: "Body over 256 KiB.",
    422: "The request is not valid.",
}


def _start() -> Operation:
    return _operation(
        "agent_runs_create",
        "Start a run",
        {"202": _answer("The run is durably accepted.", _schema("agent_run_create_response"))},
        (401, 404, 405, 413, 422),
        parameters=[_query("dialect", "Force a dialect instead of recognising it: text.")],
        requestBody={
            "required": True,
            "content": {"application/json": {"schema": _schema("agent_run_create_request")}},
        },
    )


def _watch(operation_id: str) -> Operation:
    return _operation(
        operation_id,
        "Watch a run: server-sent events, or long-poll with Accept: application/json",
        {
            "200": {
                "description": "Frames to `completed` or `error`; resume with Last-Event-ID or after.",
                "content": {
                    "text/event-stream": {"schema": {"type": "string"}},
                    "application/json": {"schema": {"type": "object"}},
                },
            }
        },
        (401, 404, 405, 422),
        parameters=[
            _RUN_ID,
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
            _query("after", "The id of the last event that you have.", "integer"),
            _query("wait", "Long-poll: seconds to wait for the first new event.", "number"),
            _query("conversation_id", "Must be the run's, if given."),
            _query("dialect", "Read the run in another dialect."),
        ],
    )


def _look() -> Operation:
    return _operation(
        "agent_run_retrieve",
        "Status, timings, usage and error of a run",
        {"200": _answer("The run.", {"type": "object"})},
        (401, 404, 405),
        parameters=[_RUN_ID],
    )


def _cancel() -> Operation:
    return _operation(
        "agent_run_cancel",
        "Cancel a run; one that has ended stays as it is",
        {"202": _answer("Its status now.", {"type": "object"})},
        (401, 404, 405),
        parameters=[_RUN_ID],
    )


def _contract() -> Operation:
    name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
    return {
        "operationId": "contract_schema",
        "summary": "A JSON Schema of the published contracts",
        "tags": ["schemas"],
        "security": [],
        "parameters": [name],
        "responses": {
            "200": _answer("The schema.", {"type": "object"}, "application/schema+json"),
            "404": _answer("No such schema.", _ERROR),
        },
    }


def add_async_operations(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's post-processing hook."""
    result["paths"] |= {
        "/api/v1/agent/runs": {"post": _start()},
        "/api/v1/agent/run": {"post": _start() | {"operationId": "agent_run_create_alias"}},
        "/api/v1/agent/runs/{run_id}": {"get": _look()},
        "/api/v1/agent/runs/{run_id}/events": {"get": _watch("agent_run_events")},
        "/api/v1/agent/runs/{run_id}/cancel": {"post": _cancel()},
        "/api/v1/messages/{run_id}/events": {"get": _watch("message_events")},
        "/api/v1/schemas/{name}": {"get": _contract()},
    }
    schemes = result.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["bearer"] = {"type": "http", "scheme": "bearer", "description": "JWT or API token"}
    return result
