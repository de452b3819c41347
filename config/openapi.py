"""Put the plain async endpoints into the OpenAPI document beside those of DRF.

drf-spectacular describes DRF views; the run endpoints are plain async ones, so their operations are
written here, around the published JSON Schemas, and a test keeps them and the routes together.
"""

from __future__ import annotations

import json
from typing import Any, Final

from django.conf import settings

from config.openapi_ag_ui import ag_ui_operations
from config.openapi_approvals import approval_operations
from config.openapi_attachments import attachment_operations
from config.openapi_feedback import feedback_operations
from config.openapi_history import history_operations
from config.openapi_library import library_operations
from config.openapi_metrics import metrics_operations
from config.openapi_parts import ERROR, Operation, answer, operation, query
from config.openapi_responses import responses_operations
from config.openapi_runners import runner_operations
from config.openapi_usage import usage_operations


def _schema(name: str) -> dict[str, Any]:
    path = settings.BASE_DIR / "docs" / "api-contracts" / "schemas" / f"{name}.schema.json"
    whole: dict[str, Any] = json.loads(path.read_text())
    return {key: value for key, value in whole.items() if not key.startswith("$")}


_RUN_ID: Final = {
    "name": "run_id",
    "in": "path",
    "required": True,
    "schema": {"type": "string"},
    "description": "32 hex digits or a UUID.",
}


def _start() -> Operation:
    return operation(
        "agent_runs_create",
        "Start a run",
        {"202": answer("The run is durably accepted.", _schema("agent_run_create_response"))},
        (401, 403, 404, 405, 413, 422, 429),
        parameters=[
            query("dialect", "Force a dialect instead of recognising it."),
            {
                "name": "X-Prompt-Version",
                "in": "header",
                "schema": {
                    "type": "string",
                    "pattern": "^([1-9][0-9]{0,8}|label:[a-z0-9][a-z0-9_-]{0,31})$",
                },
                "description": "Staff who see prompts: run with the version of this id, or with those "
                "that carry this label, instead of the active ones.",
            },
        ],
        requestBody={
            "required": True,
            "content": {"application/json": {"schema": _schema("agent_run_create_request")}},
        },
    )


def _watch(operation_id: str) -> Operation:
    return operation(
        operation_id,
        "Watch a run: server-sent events, or long-poll with Accept: application/json",
        {
            "200": {
                "description": "Frames to `completed` or `error`; resume with Last-Event-ID or after.",
                "content": {
                    "text/event-stream": {},
                    "application/json": {"schema": {"type": "object"}},
                },
            }
        },
        (401, 404, 405, 422, 429),
        parameters=[
            _RUN_ID,
            {"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}},
            query("after", "The id of the last event that you have.", "integer"),
            query("wait", "Long-poll: seconds to wait for the first new event.", "number"),
            query(
                "conversation_id",
                "The id of another conversation is refused; what is no id does nothing.",
            ),
            query("dialect", "Read the run in another dialect."),
        ],
    )


def _process() -> Operation:
    message = {"type": "object", "description": "A Message of the Agent API."}
    fields = {
        "input": {"type": "array", "items": message},
        "stream": {"type": "boolean", "default": True},
        "session_id": {"type": "string", "description": "A conversation, by any name of the caller's."},
        "model": {"type": "string"},
    }
    return operation(
        "agent_process",
        "Start a run over the Agent API; POST /process is the same",
        {
            "200": {
                "description": "The run's stream, or with `stream: false` its AgentResponse.",
                "content": {
                    "text/event-stream": {},
                    "application/json": {"schema": {"type": "object"}},
                },
            }
        },
        (401, 404, 405, 413, 422, 429),
        requestBody={
            "required": True,
            "content": {
                "application/json": {
                    "schema": {"type": "object", "required": ["input"], "properties": fields}
                }
            },
        },
    )


def _look() -> Operation:
    return operation(
        "agent_run_retrieve",
        "Status, timings, usage and error of a run",
        {"200": answer("The run.", {"type": "object"})},
        (401, 404, 405),
        parameters=[_RUN_ID],
    )


def _cancel() -> Operation:
    return operation(
        "agent_run_cancel",
        "Cancel a run; one that has ended stays as it is",
        {"202": answer("Its status now.", {"type": "object"})},
        (401, 404, 405),
        parameters=[_RUN_ID],
    )


def _force_disconnect() -> Operation:
    return operation(
        "llm_sse_force_disconnect",
        "End a user's streams in every process, for staff",
        {"200": answer("How many there were.", {"type": "object"})},
        (401, 403, 405, 422),
        parameters=[query("user_id", "Whose streams; the caller's own if left out.")],
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
            "200": answer("The schema.", {"type": "object"}, "application/schema+json"),
            "404": answer("No such schema.", ERROR),
        },
    }


def add_async_operations(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """drf-spectacular's post-processing hook."""
    result["paths"] |= (
        history_operations()
        | ag_ui_operations()
        | attachment_operations()
        | library_operations()
        | approval_operations()
        | feedback_operations()
        | runner_operations()
        | responses_operations()
        | metrics_operations()
        | usage_operations()
        | {
            "/api/v1/agent/runs": {"post": _start()},
            "/api/v1/agent/run": {"post": _start() | {"operationId": "agent_run_create_alias"}},
            "/api/v1/agent/process": {"post": _process()},
            "/process": {"post": _process() | {"operationId": "process"}},
            "/api/v1/agent/runs/{run_id}": {"get": _look()},
            "/api/v1/agent/runs/{run_id}/events": {"get": _watch("agent_run_events")},
            "/api/v1/agent/runs/{run_id}/cancel": {"post": _cancel()},
            "/api/v1/llm/sse/force-disconnect": {"post": _force_disconnect()},
            "/api/v1/messages/{run_id}/events": {"get": _watch("message_events")},
            "/api/v1/schemas/{name}": {"get": _contract()},
        }
    )
    schemes = result.setdefault("components", {}).setdefault("securitySchemes", {})
    schemes["bearer"] = {"type": "http", "scheme": "bearer", "description": "JWT or API token"}
    return result
