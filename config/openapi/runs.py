"""The OpenAPI operations of runs and runners (specs/text-run.md §1–§2), and of approvals."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from config.openapi.builders import (
    AGENT_API_ERROR,
    COUNT,
    ERROR,
    FLAG,
    PAGING,
    STARTS_RUN,
    TEXT,
    TIME,
    Route,
    any_of,
    array,
    body,
    envelope,
    header,
    nullable,
    open_object,
    operation,
    page,
    query,
    record,
    ref,
    response,
    sse,
    streamed,
)

_STATUS: Final = {"enum": ["queued", "running", "completed", "failed", "cancelled"]}
_TASK_STATUS: Final = {"enum": ["pending", "running", "finished", "error"]}
_ID: Final = {"type": "integer"}
_HEX: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}

_USAGE: Final = record(
    input_tokens=COUNT,
    output_tokens=COUNT,
    cached_tokens=COUNT,
    reasoning_tokens=COUNT,
    cache_write_tokens=COUNT,
    unpriced_tokens=COUNT,
    cost_usd=nullable(TEXT) | {"description": "Of the known prices; null if none is known."},
    models=nullable(array(open_object("The usage and cost of one model of the run."))),
)
_MS: Final = nullable(COUNT)
_TIMINGS: Final = record(
    created_at=TIME,
    started_at=nullable(TIME),
    first_token_at=nullable(TIME),
    finished_at=nullable(TIME),
    queue_ms=_MS,
    first_token_ms=_MS,
    total_ms=_MS,
)
_VERSION: Final = record(kind=TEXT, name=TEXT, number=_ID, prompt_id=_ID, version_id=_ID)
_ACCEPTED: Final = {
    "taskId": _HEX | {"description": "The run's id on this server."},
    "threadId": TEXT,
    "runId": TEXT,
}
_DECISION_STATUS: Final = {"enum": ["pending", "approved", "refused", "expired", "cancelled"]}
_ARGUMENTS: Final = open_object("The arguments of the tool call.")
_APPROVAL: Final = record(
    id=TEXT,
    status=_DECISION_STATUS,
    run_id=TEXT,
    thread_id=TEXT,
    tool_call_id=TEXT,
    tool_name=TEXT,
    arguments=_ARGUMENTS,
    edited_arguments=nullable(_ARGUMENTS),
    message=TEXT,
    reason=nullable(TEXT),
    created_at=TIME,
    expires_at=TIME,
    decided_at=nullable(TIME),
    decided_by=nullable(TEXT),
    told_run_id=nullable(TEXT),
)
_DECISION: Final = record(
    approve=FLAG,
    optional={
        "arguments": nullable(open_object("Arguments that replace those of the call.")),
        "reason": nullable(TEXT) | {"description": "Why it is refused; sent to the model."},
    },
)
_RUNNER: Final = {
    "allOf": [
        ref("RunnerManifest"),
        {
            "type": "object",
            "required": ["home", "bindings"],
            "properties": {
                "home": {"enum": ["builtin", "python", "plugin"]},
                "bindings": array(TEXT) | {"description": "The names of the bindings that use it."},
            },
        },
    ]
}
SCHEMAS: Final[dict[str, Any]] = {
    "Run": record(
        run_id=_HEX,
        message_id=_HEX,
        conversation_id=TEXT | {"format": "uuid"},
        client_run_id=nullable(TEXT),
        dialect=TEXT,
        model=TEXT,
        status=_STATUS,
        attempt=COUNT,
        provider=nullable(TEXT),
        resolved_model=nullable(TEXT),
        endpoint_id={"type": ["integer", "null"]},
        finish_reason=nullable(TEXT),
        error=nullable(record(code=TEXT, message=TEXT)),
        usage=_USAGE,
        timings=_TIMINGS,
        prompt_versions=array(_VERSION),
        cancel_requested=FLAG,
        request_id=TEXT,
        metadata=open_object("The metadata of the request, for the caller's reconciliation."),
        interrupts=array(_APPROVAL),
    ),
    "TaskAccepted": record(**_ACCEPTED, created=TIME)
    | {"description": "TaskAcceptedResponse, the response to a RunAgentInput."},
    "AgUiAccepted": record(**_ACCEPTED)
    | {"description": "The response to an AG-UI run that is not streamed."},
    "AgentTask": record(task_id=_HEX, status={"const": "submitted"}, queue=TEXT, message=TEXT),
    "AgentTaskState": record(task_id=_HEX, status=_TASK_STATUS, result=nullable(ref("AgentResponse"))),
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
_ACCEPTED_RUN: Final = any_of(
    ref("TextRunAccepted"), ref("TaskAccepted"), ref("AgUiAccepted"), ref("AgentTask")
)
_RESULTS: Final = "The run's results: one AgentRunResult per line or per server-sent event."
_LINES: Final = {"application/x-ndjson": {"x-itemSchema": ref("RunResult")}}
_DISCONNECTED: Final = record(user_id=TEXT | {"format": "uuid"}, disconnected=COUNT)
_agent_api_operation = partial(operation, error=AGENT_API_ERROR)
_approval_operation = partial(operation, tags=["approvals"])
_runner_operation = partial(operation, tags=["runners"])


def _start(address: str, operation_id: str, run_agent_input: str) -> Route:
    return operation(
        address,
        operation_id,
        "Start a run from a text run, a RunAgentInput or a request of the Agent API",
        streamed(
            "The run's stream if the client accepts one, or the whole response.",
            ref("RunFrame"),
            any_of(ref("AgentResponse"), ref("Response")),
        )
        | {"202": response("The run is accepted and stored.", _ACCEPTED_RUN)},
        STARTS_RUN,
        parameters=_START_PARAMETERS,
        requestBody=body(any_of(ref("TextRun"), ref(run_agent_input), ref("AgentRequest"))),
    )


def _watch(address: str, operation_id: str) -> Route:
    return operation(
        address,
        operation_id,
        "Follow a run by server-sent events, or by long polling with Accept: application/json",
        streamed(
            "Frames until `completed` or `error`; Last-Event-ID or `after` resume.",
            ref("RunFrame"),
            ref("RunFrames"),
        ),
        (410,),
        parameters=[
            header("Last-Event-ID", "The id of the last event received."),
            query("after", "The same as the header Last-Event-ID.", type="integer"),
            query("wait", "For long polling: seconds to wait for the first new event.", type="number"),
            query(
                "conversation_id",
                "The run's thread. The id of another thread is an error; other values are ignored.",
            ),
            query("dialect", "The dialect of the frames. Default: the run's own."),
        ],
    )


def _process(address: str, operation_id: str) -> Route:
    return _agent_api_operation(
        address,
        operation_id,
        "Start a run over the Agent API; /process and /api/v1/agent/process are aliases",
        streamed(
            "The run's stream, or its AgentResponse with `stream: false`.",
            ref("AgentApiObject"),
            ref("AgentResponse"),
        ),
        STARTS_RUN,
        requestBody=body(ref("AgentRequest")),
    )


OPERATIONS: Final[list[Route]] = [
    _start("POST /api/v1/agent/runs", "agent_runs_create", "RunAgentInput"),
    _start("POST /api/v1/agent/run", "agent_run_create_alias", "NamedRunAgentInput"),
    _process("POST /api/v1/agent/process", "agent_process"),
    _process("POST /process", "process"),
    _agent_api_operation(
        "POST /process/task",
        "process_task",
        "Start a run over the Agent API in the background",
        {"200": response("The task is accepted.", ref("AgentTask"))},
        STARTS_RUN,
        requestBody=body(ref("AgentRequest")),
    ),
    _agent_api_operation(
        "GET /process/task/{task_id}",
        "process_task_retrieve",
        "Get the status of a task, and its AgentResponse when it has finished",
        {"200": response("The state of the task.", ref("AgentTaskState"))},
        (410,),
    ),
    operation(
        "GET /api/v1/agent/runs/{run_id}",
        "agent_run_retrieve",
        "Get the status, timings, usage and error of a run",
        {"200": response("The run.", ref("Run"))},
    ),
    _watch("GET /api/v1/agent/runs/{run_id}/events", "agent_run_events"),
    operation(
        "POST /api/v1/agent/runs/{run_id}/cancel",
        "agent_run_cancel",
        "Cancel a run; a finished one does not change",
        {"202": response("The present status of the run.", record(run_id=_HEX, status=_STATUS))},
    ),
    operation(
        "POST /api/v1/llm/sse/force-disconnect",
        "llm_sse_force_disconnect",
        "End all streams of a user in every process, for staff",
        {"200": response("The number of ended streams.", envelope(_DISCONNECTED))},
        parameters=[query("user_id", "The user's id. Default: the caller.")],
    ),
    _watch("GET /api/v1/messages/{run_id}/events", "message_events"),
    _approval_operation(
        "GET /api/v1/agent/approvals",
        "agent_approvals",
        "List the caller's approvals, pending and decided, newest first",
        {"200": response("A page of approvals.", page(approvals=array(_APPROVAL)))},
        parameters=[
            query("status", "Only approvals with this status."),
            query("user_id", "For staff: the id of a user, or `all`."),
            *PAGING,
        ],
    ),
    _approval_operation(
        "GET /api/v1/agent/approvals/{approval_id}",
        "agent_approval_retrieve",
        "Get an approval",
        {"200": response("The approval.", _APPROVAL)},
    ),
    _approval_operation(
        "POST /api/v1/agent/approvals/{approval_id}",
        "agent_approval_decide",
        "Approve or refuse a tool call; the last decision of a run continues the run",
        {
            "200": response("The decided approval.", _APPROVAL),
            "409": response("The approval was already decided differently, or it has expired.", ERROR),
        },
        requestBody=body(_DECISION),
    ),
    _runner_operation(
        "GET /api/v1/agent/runners",
        "agent_runners",
        "List the available runners, for staff",
        {"200": response("The manifests of the runners.", record(runners=array(_RUNNER)))},
    ),
    _runner_operation(
        "POST /api/v1/agent/runners/{runner_id}/run",
        "agent_runner_run",
        "Start a run on one runner, for staff",
        {"200": {"description": _RESULTS, "content": _LINES | sse(ref("RunResult"))}},
        STARTS_RUN,
        requestBody=body(ref("RunnerBody")),
    ),
]
