"""The schemas of runs and runners (specs/text-run.md §1–§2), and of approvals."""

from __future__ import annotations

from typing import Any, Final

from config.http.documentation.schema_builders import (
    COUNT,
    FLAG,
    TEXT,
    TIME,
    array,
    envelope,
    nullable,
    open_object,
    page,
    record,
    ref,
)
from config.openapi.derived_schemas import derive_structs
from conversations.runs.client_queries import Approval, RunDetail

_STATUS: Final = {"enum": ["queued", "running", "completed", "failed", "cancelled"]}
_TASK_STATUS: Final = {"enum": ["pending", "running", "finished", "error"]}
_ID: Final = {"type": "integer"}
_HEX: Final = {"type": "string", "pattern": "^[0-9a-f]{32}$"}

_ACCEPTED: Final = {
    "taskId": _HEX | {"description": "The run's id on this server."},
    "threadId": TEXT,
    "runId": TEXT,
}
_ARGUMENTS: Final = open_object("The arguments of the call, in the form that the tool declares.")
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
SCHEMAS: Final[dict[str, Any]] = derive_structs(RunDetail, Approval) | {
    "TaskAccepted": record(**_ACCEPTED, created=TIME)
    | {"description": "TaskAcceptedResponse, the response to a RunAgentInput."},
    "AgUiAccepted": record(**_ACCEPTED)
    | {"description": "The response to an AG-UI run that is not streamed."},
    "AgentTask": record(task_id=_HEX, status={"const": "submitted"}, queue=TEXT, message=TEXT),
    "AgentTaskState": record(task_id=_HEX, status=_TASK_STATUS, result=nullable(ref("AgentResponse"))),
    "RunStatus": record(run_id=_HEX, status=_STATUS),
    "Approvals": page(approvals=array(ref("Approval"))),
    "Decision": _DECISION,
    "Runners": record(runners=array(_RUNNER)),
    "Disconnected": envelope(record(user_id=TEXT | {"format": "uuid"}, disconnected=COUNT)),
}
