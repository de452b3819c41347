"""The Agent API's own addresses (specs/agent-api.md, "What to build" 1)."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest, HttpResponseBase
from msgspec import Raw

from agents.api import answering, run_requests, runs, streaming
from agents.dialects.agent_api import dialect as agent_api
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.http.async_views import api, json_response
from conversations.models import LIVE, RunStatus
from conversations.runs import client_queries

_STATES: Final = {
    RunStatus.QUEUED: "pending",
    RunStatus.RUNNING: "running",
    RunStatus.COMPLETED: "finished",
    RunStatus.FAILED: "error",
    RunStatus.CANCELLED: "error",
}


@api(POST=RUN)
async def process(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /process`: run an AgentRequest; return a stream, or an AgentResponse (`stream: false`)."""
    return await answering.answer(request, caller, agent_api.NAME)


@api(POST=RUN)
async def tasks(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /process/task`: run an AgentRequest in the background."""
    post = await run_requests.read_post(request, caller, agent_api.NAME)
    return await answering.accept(caller, post, status=200)


@api(GET=READ)
async def task(request: HttpRequest, caller: Caller, task_id: str) -> HttpResponseBase:
    """`GET /process/task/{task_id}`: return its status, and its AgentResponse once there is one."""
    row = await client_queries.fetch_run(runs.parse_run_id(task_id), user_id=caller.user_id)
    body: dict[str, Any] = {
        "task_id": row.run_id.hex,
        "status": _STATES[RunStatus(row.status)],
        "result": None,
    }
    if row.status not in LIVE:
        await client_queries.check_events_kept(row)
        body["result"] = Raw(await streaming.current_outcome(row, agent_api))
    return json_response(body)
