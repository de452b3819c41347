"""The schemas of runs and runners (specs/text-run.md §1–§2), and of approvals."""

from __future__ import annotations

from typing import Any, Final

from config.http.documentation.schema_builders import (
    COUNT,
    FLAG,
    TEXT,
    TIME,
    Schema,
    array,
    envelope,
    nullable,
    open_object,
    page,
    record,
    ref,
)

_STATUS: Final = {"enum": ["queued", "running", "completed", "failed", "cancelled"]}
_TASK_STATUS: Final = {"enum": ["pending", "running", "finished", "error"]}
_ID: Final = {"type": "integer"}
_HEX: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}

_COUNTS: Final[dict[str, Schema]] = {
    "input_tokens": COUNT,
    "output_tokens": COUNT,
    "cached_tokens": COUNT,
    "reasoning_tokens": COUNT,
    "cache_write_tokens": COUNT,
    "unpriced_tokens": COUNT,
    "cost_usd": nullable(TEXT) | {"description": "Of the known prices; null if none is known."},
}
_MODEL: Final = record(
    provider=TEXT, model=TEXT, endpoint_id={"type": ["integer", "null"]}, calls=COUNT, **_COUNTS
) | {"description": "The usage and cost of one model of the run."}
_USAGE: Final = record(**_COUNTS, models=nullable(array(_MODEL)))
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
_ARGUMENTS: Final = open_object("The arguments of the call, in the form that the tool declares.")
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
        "arguments": nullable(_ARGUMENTS) | {"description": "Arguments that replace those of the call."},
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
        interrupts=array(ref("Approval")),
    ),
    "TaskAccepted": record(**_ACCEPTED, created=TIME)
    | {"description": "TaskAcceptedResponse, the response to a RunAgentInput."},
    "AgUiAccepted": record(**_ACCEPTED)
    | {"description": "The response to an AG-UI run that is not streamed."},
    "AgentTask": record(task_id=_HEX, status={"const": "submitted"}, queue=TEXT, message=TEXT),
    "AgentTaskState": record(task_id=_HEX, status=_TASK_STATUS, result=nullable(ref("AgentResponse"))),
    "RunStatus": record(run_id=_HEX, status=_STATUS),
    "Approval": _APPROVAL,
    "Approvals": page(approvals=array(ref("Approval"))),
    "Decision": _DECISION,
    "Runners": record(runners=array(_RUNNER)),
    "Disconnected": envelope(record(user_id=TEXT | {"format": "uuid"}, disconnected=COUNT)),
}
