"""The schemas of runs and runners (specs/text-run.md §1–§2), and of approvals."""

from __future__ import annotations

from typing import Any, Final

from agents.api.agent_api import AgentTaskState
from agents.api.approvals import Approvals, DecisionBody
from agents.api.runners import Runners
from agents.api.runs import PresentStatus
from agents.api.staff import Disconnected
from agents.dialects.ag_ui.dialect import AgUiAccepted
from agents.dialects.agent_api.dialect import AgentTask
from agents.dialects.run_agent_input import TaskAccepted
from config.http.documentation.schema_builders import envelope
from config.openapi.derived_schemas import derive_structs
from conversations.runs.client_queries import RunDetail

_SHOWN: Final = (
    RunDetail,
    Approvals,
    DecisionBody,
    Runners,
    TaskAccepted,
    AgUiAccepted,
    AgentTask,
    AgentTaskState,
)
SCHEMAS: Final[dict[str, Any]] = derive_structs(*_SHOWN) | {
    "RunStatus": derive_structs(PresentStatus)["PresentStatus"],
    "Disconnected": envelope(derive_structs(Disconnected)["Disconnected"]),
}
