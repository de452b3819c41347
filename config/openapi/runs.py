"""The OpenAPI operations of runs: start, follow, get, cancel (specs/text-run.md §1–§2)."""

from __future__ import annotations

from typing import Any, Final

from config.openapi.approvals import APPROVAL
from config.openapi.parts import (
    AGENT_API_ERROR,
    COUNT,
    FLAG,
    STARTS_RUN,
    TEXT,
    TIME,
    Operation,
    array,
    body,
    header,
    nullable,
    open_object,
    operation,
    path_param,
    query,
    record,
    ref,
    response,
    sse,
)

_RUN_ID: Final = path_param("run_id", "The run's id (32 hex digits or a UUID), or the client's `runId`.")
_STATUS: Final = {"enum": ["queued", "running", "completed", "failed", "cancelled"]}
_TASK_STATUS: Final = {"enum": ["pending", "running", "finished", "error"]}
_ID: Final = {"type": "integer"}
_HEX: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}

_TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cache_write_tokens",
    "unpriced_tokens",
)
_USAGE: Final = record(
    dict.fromkeys(_TOKENS, COUNT)
    | {
        "cost_usd": nullable(TEXT) | {"description": "Of the known prices; null if none is known."},
        "models": nullable(array(open_object("The usage and cost of one model of the run."))),
    }
)
_MS: Final = nullable(COUNT)
_TIMINGS: Final = record(
    {
        "created_at": TIME,
        "started_at": nullable(TIME),
        "first_token_at": nullable(TIME),
        "finished_at": nullable(TIME),
        "queue_ms": _MS,
        "first_token_ms": _MS,
        "total_ms": _MS,
    }
)
_VERSION: Final = record(
    {"kind": TEXT, "name": TEXT, "number": _ID, "prompt_id": _ID, "version_id": _ID}
)
_ACCEPTED: Final = {
    "taskId": _HEX | {"description": "The run's id on this server."},
    "threadId": TEXT,
    "runId": TEXT,
}
RUN_SCHEMAS: Final[dict[str, Any]] = {
    "Run": record(
        {
            "run_id": _HEX,
            "message_id": _HEX,
            "conversation_id": TEXT | {"format": "uuid"},
            "client_run_id": nullable(TEXT),
            "dialect": TEXT,
            "model": TEXT,
            "status": _STATUS,
            "attempt": COUNT,
            "provider": nullable(TEXT),
            "resolved_model": nullable(TEXT),
            "endpoint_id": {"type": ["integer", "null"]},
            "finish_reason": nullable(TEXT),
            "error": nullable(record({"code": TEXT, "message": TEXT})),
            "usage": _USAGE,
            "timings": _TIMINGS,
            "prompt_versions": array(_VERSION),
            "cancel_requested": FLAG,
            "request_id": TEXT,
            "metadata": open_object("The metadata of the request, for the caller's reconciliation."),
            "interrupts": array(APPROVAL),
        }
    ),
    "TaskAccepted": record(_ACCEPTED | {"created": TIME})
    | {"description": "TaskAcceptedResponse, the response to a RunAgentInput."},
    "AgUiAccepted": record(_ACCEPTED)
    | {"description": "The response to an AG-UI run that is not streamed."},
    "AgentTask": record(
        {"task_id": _HEX, "status": {"const": "submitted"}, "queue": TEXT, "message": TEXT}
    ),
    "AgentTaskState": record(
        {"task_id": _HEX, "status": _TASK_STATUS, "result": nullable(ref("AgentResponse"))}
    ),
}

_START_PARAMETERS: Final = [
    query("dialect", "The dialect of the body. Default: detected from the body."),
    query("on_busy", "If the thread has a live run: `enqueue` (default), `reject` or `interrupt`."),
    query("on_disconnect", "If the client disconnects: `continue` (default) or `cancel` the run."),
    header("X-On-Disconnect", "The same as the parameter `on_disconnect`."),
    header(
        "Idempotency-Key",
        "Requests with the same key and body start one run.",
        pattern=r"^[\x21-\x7e]{1,128}$",
    ),
    header("X-Run-Deadline", "The run's time limit in seconds.", pattern="^[0-9]{1,9}$"),
    header(
        "X-Request-Id",
        "1 to 128 visible ASCII characters. Other values are replaced, and the response has the header "
        "`X-Request-Id-Replaced: true`.",
    ),
    header(
        "X-Prompt-Version",
        "For staff who may view prompts: the id of a prompt version, or a label, that replaces the "
        "active versions in this run.",
        pattern="^([1-9][0-9]{0,8}|label:[a-z0-9][a-z0-9_-]{0,31})$",
    ),
]
_ACCEPTS: Final = [ref("TextRunAccepted"), ref("TaskAccepted"), ref("AgUiAccepted"), ref("AgentTask")]


def _start(operation_id: str, run_agent_input: str) -> Operation:
    bodies = [ref("TextRun"), ref(run_agent_input), ref("AgentRequest")]
    whole = {"anyOf": [ref("AgentResponse"), ref("Response")]}
    return operation(
        operation_id,
        "Start a run from a text run, a RunAgentInput or a request of the Agent API",
        {
            "200": {
                "description": "The run's stream if the client accepts one, or the whole response.",
                "content": sse(ref("RunFrame")) | {"application/json": {"schema": whole}},
            },
            "202": response("The run is accepted and stored.", {"anyOf": _ACCEPTS}),
        },
        STARTS_RUN,
        parameters=_START_PARAMETERS,
        requestBody=body({"anyOf": bodies}),
    )


def _watch(operation_id: str) -> Operation:
    polled = {"application/json": {"schema": ref("RunFrames")}}
    return operation(
        operation_id,
        "Follow a run by server-sent events, or by long polling with Accept: application/json",
        {
            "200": {
                "description": "Frames until `completed` or `error`; Last-Event-ID or `after` resume.",
                "content": sse(ref("RunFrame")) | polled,
            }
        },
        (404, 410),
        parameters=[
            _RUN_ID,
            header("Last-Event-ID", "The id of the last event received."),
            query("after", "The same as the header Last-Event-ID.", "integer"),
            query("wait", "For long polling: seconds to wait for the first new event.", "number"),
            query(
                "conversation_id",
                "The run's thread. The id of another thread is an error; other values are ignored.",
            ),
            query("dialect", "The dialect of the frames. Default: the run's own."),
        ],
    )


def _process(operation_id: str) -> Operation:
    whole = {"application/json": {"schema": ref("AgentResponse")}}
    return operation(
        operation_id,
        "Start a run over the Agent API; /process and /api/v1/agent/process are aliases",
        {
            "200": {
                "description": "The run's stream, or its AgentResponse with `stream: false`.",
                "content": sse(ref("AgentApiObject")) | whole,
            }
        },
        STARTS_RUN,
        error=AGENT_API_ERROR,
        requestBody=body(ref("AgentRequest")),
    )


def _task() -> Operation:
    return operation(
        "process_task",
        "Start a run over the Agent API in the background",
        {"200": response("The task is accepted.", ref("AgentTask"))},
        STARTS_RUN,
        error=AGENT_API_ERROR,
        requestBody=body(ref("AgentRequest")),
    )


def _task_state() -> Operation:
    return operation(
        "process_task_retrieve",
        "Get the status of a task, and its AgentResponse when it has finished",
        {"200": response("The state of the task.", ref("AgentTaskState"))},
        (404, 410),
        error=AGENT_API_ERROR,
        parameters=[path_param("task_id", "The run's id.")],
    )


def _retrieve() -> Operation:
    return operation(
        "agent_run_retrieve",
        "Get the status, timings, usage and error of a run",
        {"200": response("The run.", ref("Run"))},
        (404,),
        parameters=[_RUN_ID],
    )


def _cancel() -> Operation:
    return operation(
        "agent_run_cancel",
        "Cancel a run; a finished one does not change",
        {"202": response("The present status of the run.", record({"run_id": _HEX, "status": _STATUS}))},
        (404, 408, 413),
        parameters=[_RUN_ID],
    )


def _force_disconnect() -> Operation:
    ended = record({"user_id": TEXT | {"format": "uuid"}, "disconnected": COUNT})
    envelope = record({"code": {"const": 200}, "msg": TEXT, "data": ended})
    return operation(
        "llm_sse_force_disconnect",
        "End all streams of a user in every process, for staff",
        {"200": response("The number of ended streams.", envelope)},
        (408, 413),
        parameters=[query("user_id", "The user's id. Default: the caller.")],
    )


def run_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    return {
        "/api/v1/agent/runs": {"post": _start("agent_runs_create", "RunAgentInput")},
        "/api/v1/agent/run": {"post": _start("agent_run_create_alias", "NamedRunAgentInput")},
        "/api/v1/agent/process": {"post": _process("agent_process")},
        "/process": {"post": _process("process")},
        "/process/task": {"post": _task()},
        "/process/task/{task_id}": {"get": _task_state()},
        "/api/v1/agent/runs/{run_id}": {"get": _retrieve()},
        "/api/v1/agent/runs/{run_id}/events": {"get": _watch("agent_run_events")},
        "/api/v1/agent/runs/{run_id}/cancel": {"post": _cancel()},
        "/api/v1/llm/sse/force-disconnect": {"post": _force_disconnect()},
        "/api/v1/messages/{run_id}/events": {"get": _watch("message_events")},
    }
