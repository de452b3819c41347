"""The schemas of runs and runners (specs/text-run.md §1–§2), and of approvals."""

from __future__ import annotations

from typing import Any, Final

from agents.api.agent_api import AgentTaskState
from agents.api.approvals import Approvals
from agents.api.runners import Runners
from agents.api.runs import PresentStatus
from agents.api.staff import Disconnected
from agents.dialects.ag_ui.dialect import AgUiAccepted
from agents.dialects.agent_api.dialect import AgentTask
from agents.dialects.run_agent_input import TaskAccepted
from config.http.documentation.schema_builders import (
    FLAG,
    TEXT,
    envelope,
    nullable,
    open_object,
    record,
)
from config.openapi.derived_schemas import derive_structs
from conversations.runs.client_queries import RunDetail

_RENDERED: Final = (RunDetail, Approvals, Runners, TaskAccepted, AgUiAccepted, AgentTask, AgentTaskState)
_ARGUMENTS: Final = open_object("The arguments of the call, in the form that the tool declares.")
_DECISION: Final = record(
    approve=FLAG,
    optional={
        "arguments": nullable(_ARGUMENTS) | {"description": "Arguments that replace those of the call."},
        "reason": nullable(TEXT) | {"description": "Why it is refused; sent to the model."},
    },
)
SCHEMAS: Final[dict[str, Any]] = derive_structs(*_RENDERED) | {
    "RunStatus": derive_structs(PresentStatus)["PresentStatus"],
    "Decision": _DECISION,
    "Disconnected": envelope(derive_structs(Disconnected)["Disconnected"]),
}
