"""Put the plain async endpoints into the OpenAPI document beside those of DRF.

drf-spectacular describes DRF views; the run endpoints are plain async ones, so their operations are
written here, around the published JSON Schemas, and a test keeps them and the routes together.
"""

from __future__ import annotations

import json
from typing import Any, Final

from django.conf import settings

from agents.dialects.run_agent_input import LONGEST_RUN_ID, MOST_MESSAGES, RunAgentInputBody
from config.openapi_ag_ui import ag_ui_operations
from config.openapi_approvals import approval_operations
from config.openapi_attachments import attachment_operations
from config.openapi_completions import completion_operations
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


_ACCEPTED: Final = {
    "type": "object",
    "description": "Of a RunAgentInput: TaskAcceptedResponse.",
    "additionalProperties": False,
    "required": ["taskId", "threadId", "runId", "created"],
    "properties": {
        "taskId": {"type": "string", "description": "The run's id here, 32 hex digits."},
        "threadId": {"type": "string"},
        "runId": {"type": "string"},
        "created": {"type": "string", "format": "date-time"},
    },
}
_AGENT_INPUT: Final = {
    "type": "object",
    "required": ["input"],
    "properties": {
        "input": {
            "type": "array",
            "items": {"type": "object", "description": "A Message of the Agent API."},
        },
        "stream": {"type": "boolean", "default": True},
        "session_id": {"type": "string", "description": "A conversation, by any name of the caller's."},
        "model": {"type": "string"},
    },
}


def _header(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "schema": {"type": "string"} | schema,
        "description": description,
    }


_START_PARAMETERS: Final = [
    query("dialect", "Force a dialect instead of recognising it."),
    query("on_busy", "While the conversation has a live run: enqueue (default), reject or interrupt."),
    query("on_disconnect", "When the stream of this answer breaks: continue (default) or cancel."),
    _header("X-On-Disconnect", "The same."),
    _header(
        "Idempotency-Key",
        "The same key and body start one run.",
        pattern=r"^[\x21-\x7e]{1,128}$",
    ),
    _header("X-Run-Deadline", "Seconds from the run's start.", pattern="^[0-9]{1,9}$"),
    _header(
        "X-Request-Id",
        "1 to 128 visible ASCII characters are kept; anything else is replaced, and the answer carries "
        "`X-Request-Id-Replaced: true`.",
    ),
    _header(
        "X-Prompt-Version",
        "Staff who see prompts: run with the version of this id, or with those that carry this label, "
        "instead of the active ones.",
        pattern="^([1-9][0-9]{0,8}|label:[a-z0-9][a-z0-9_-]{0,31})$",
    ),
]


def _start() -> Operation:
    bodies = [
        _schema("agent_run_create_request"),
        {"$ref": "#/components/schemas/RunAgentInput"},
        _AGENT_INPUT,
    ]
    taken = [_schema("agent_run_create_response"), _ACCEPTED]
    return operation(
        "agent_runs_create",
        "Start a run: a text run, a RunAgentInput, or a request of the Agent API",
        {
            "200": {
                "description": "The run's stream, where the client accepts one; the Agent API's answer.",
                "content": {
                    "text/event-stream": {},
                    "application/json": {"schema": {"type": "object"}},
                },
            },
            "202": answer("The run is durably accepted.", {"anyOf": taken}),
        },
        (401, 403, 404, 405, 409, 413, 422, 429),
        parameters=_START_PARAMETERS,
        requestBody={
            "required": True,
            "content": {"application/json": {"schema": {"anyOf": bodies}}},
        },
    )


def _run_agent_input() -> dict[str, Any]:
    """The schemas of a RunAgentInput, as it is read (seed 000)."""
    whole = RunAgentInputBody.model_json_schema(
        ref_template="#/components/schemas/RunAgentInput.{model}"
    )
    parts = {f"RunAgentInput.{name}": part for name, part in whole.pop("$defs").items()}
    whole |= {"title": "RunAgentInput", "description": "The run of seed 000: one question."}
    whole["properties"]["threadId"]["format"] = "uuid"
    whole["properties"]["runId"]["maxLength"] = LONGEST_RUN_ID
    whole["properties"]["messages"] |= {"minItems": 1, "maxItems": MOST_MESSAGES}
    return parts | {"RunAgentInput": whole}


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
            "content": {"application/json": {"schema": _AGENT_INPUT}},
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
        | completion_operations()
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
    components = result.setdefault("components", {})
    components["schemas"] = components.get("schemas", {}) | _run_agent_input()
    schemes = components.setdefault("securitySchemes", {})
    schemes["bearer"] = {"type": "http", "scheme": "bearer", "description": "JWT or API token"}
    return result
