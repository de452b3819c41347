"""The Agent API's own addresses (specs/agent-api.md, "What to build" 1)."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, Literal

from django.http import HttpRequest, HttpResponseBase
from msgspec import Raw

from agents.api import answering, run_requests, runs, streaming
from agents.dialects.agent_api import dialect as agent_api
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.http.async_views import api, json_response
from config.http.documentation import groups
from config.http.documentation.json_types import Hex, Shown, component
from config.http.documentation.operations import (
    RUN_OPTIONS,
    STARTS_RUN,
    Route,
    body,
    described,
    operation,
    response,
    streamed,
)
from config.http.documentation.schema_builders import AGENT_API_ERROR, ref
from conversations.models import LIVE, RunStatus
from conversations.runs import client_queries

TaskStatus = Literal["pending", "running", "finished", "error"]
_TEXT: Final = {"type": "text", "text": "Which exercises train the chest?"}
_REQUEST: Final = {
    "model": "demo",
    "session_id": "chest-day",
    "input": [{"role": "user", "content": [_TEXT]}],
}
_operation: Final = partial(operation, group=groups.AGENT_API, error=AGENT_API_ERROR)
_start: Final = partial(
    _operation,
    more_errors=STARTS_RUN,
    parameters=RUN_OPTIONS,
    requestBody=body(ref("AgentRequest"), question=_REQUEST),
)


def _process(address: str, operation_id: str) -> Route:
    return _start(
        address,
        operation_id,
        "Start a run over the Agent API; /process and /api/v1/agent/process are aliases",
        streamed(
            "The run's stream, or its AgentResponse with `stream: false`.",
            ref("AgentApiObject"),
            ref("AgentResponse"),
        ),
    )


class AgentTaskState(Shown, frozen=True):
    """The state of a task, and its AgentResponse when it has ended."""

    task_id: Hex
    status: TaskStatus
    result: Annotated[Any, component("AgentResponse")] | None


_STATES: Final[dict[RunStatus, TaskStatus]] = {
    RunStatus.QUEUED: "pending",
    RunStatus.RUNNING: "running",
    RunStatus.COMPLETED: "finished",
    RunStatus.FAILED: "error",
    RunStatus.CANCELLED: "error",
}


@described(
    _process("POST /api/v1/agent/process", "agent_process"),
    _process("POST /process", "process"),
)
@api(POST=RUN)
async def process(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /process`: run an AgentRequest; return a stream, or an AgentResponse (`stream: false`)."""
    return await answering.answer(request, caller, agent_api.NAME)


@described(
    _start(
        "POST /process/task",
        "process_task",
        "Start a run over the Agent API in the background",
        {"200": response("The task is accepted.", ref("AgentTask"))},
    )
)
@api(POST=RUN)
async def tasks(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /process/task`: run an AgentRequest in the background."""
    post = await run_requests.read_post(request, caller, agent_api.NAME)
    return await answering.accept(caller, post, status=200)


@described(
    _operation(
        "GET /process/task/{task_id}",
        "process_task_retrieve",
        "Get the status of a task, and its AgentResponse when it has finished",
        {"200": response("The state of the task.", ref("AgentTaskState"))},
        (410,),
    )
)
@api(GET=READ)
async def task(request: HttpRequest, caller: Caller, task_id: str) -> HttpResponseBase:
    """`GET /process/task/{task_id}`: return its status, and its AgentResponse once there is one."""
    row = await client_queries.fetch_run(runs.parse_run_id(task_id), user_id=caller.user_id)
    result = None
    if row.status not in LIVE:
        await client_queries.check_events_kept(row)
        result = Raw(await streaming.current_outcome(row, agent_api))
    return json_response(AgentTaskState(row.run_id.hex, _STATES[RunStatus(row.status)], result))
