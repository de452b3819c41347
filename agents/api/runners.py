"""Runners over REST, for operators: their list, and a run of one of them in the seed's envelope."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Final

from django.http import HttpRequest, HttpResponseBase
from msgspec.structs import asdict

from agents.api import answering, run_requests
from agents.api.streaming import SSE, Format
from agents.dialects import runner as dialect
from agents.dialects.base import wants_stream
from agents.host import runner_catalogue
from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.runner_id import Home, home_of
from agents.runtimes import runner_sources
from config import sql
from config.auth.bearer import Caller
from config.auth.models import Scope
from config.auth.requirements import Access
from config.errors import InvalidRequest, NotFound
from config.http.async_views import api, json_response
from config.http.documentation import groups
from config.http.documentation.json_types import Shown, noted
from config.http.documentation.operations import (
    RUN_OPTIONS,
    STARTS_RUN,
    body,
    described,
    operation,
    response,
    sse,
)
from config.http.documentation.schema_builders import ref

runner_sources.add_sources()
_NDJSON: Final = Format(
    "application/x-ndjson; charset=utf-8", lambda frame: frame.data + b"\n", b"\n", headers={}
)
_operation: Final = partial(operation, group=groups.ADMINISTRATION)
_LINE: Final = ref("RunResult") | {"description": "Each line of the stream is one result."}
_RESULTS: Final = {
    "description": "The run's results: one AgentRunResult per line or per server-sent event.",
    "content": {"application/x-ndjson": {"schema": _LINE}} | sse(ref("RunResult")),
}
_BINDINGS: Final = """
SELECT runner_id, array_agg(name ORDER BY position, id) FROM agents_runnerbinding WHERE is_active
GROUP BY runner_id
"""


class ListedRunner(RunnerManifest, frozen=True, kw_only=True):
    """The manifest of a runner, where its code is, and what uses it."""

    home: Home
    bindings: Annotated[list[str], noted("The names of the bindings that use it.")]


class Runners(Shown, frozen=True):
    runners: list[ListedRunner]


@described(
    _operation(
        "GET /api/v1/agent/runners",
        "agent_runners",
        "List the available runners, for staff",
        {"200": response("The manifests of the runners.", ref("Runners"))},
    )
)
@api(GET=Access(Scope.ADMIN, "agents.view_runnerbinding"))
async def runners(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /api/v1/agent/runners`: return every runner that is available now, with its manifest."""
    await runner_sources.refresh()
    bound = dict(await sql.every(_BINDINGS, ()))
    listed = [
        ListedRunner(**asdict(one), home=home_of(one.id), bindings=bound.get(one.id, []))
        for one in runner_catalogue.list_manifests()
    ]
    return json_response(Runners(listed))


@described(
    _operation(
        "POST /api/v1/agent/runners/{runner_id}/run",
        "agent_runner_run",
        "Start a run on one runner, for staff",
        {"200": _RESULTS},
        STARTS_RUN,
        parameters=RUN_OPTIONS,
        requestBody=body(
            ref("RunnerBody"), question={"input": {"text": "Which exercises train the chest?"}}
        ),
    )
)
@api(POST=Access(Scope.RUN, "agents.change_runnerbinding"))
async def run(request: HttpRequest, caller: Caller, runner_id: str) -> HttpResponseBase:
    """`POST /api/v1/agent/runners/{runner_id}/run`: return its result stream, as NDJSON or as SSE."""
    post = await run_requests.read_post(request, caller, dialect.NAME, runner=runner_id)
    await runner_sources.refresh()
    if runner_catalogue.find(runner_id) is None and runner_id not in runner_catalogue.BUILTIN:
        why = runner_catalogue.explain_absence(runner_id) or "See GET /api/v1/agent/runners."
        raise NotFound(f"There is no such runner now. {why}")
    run_request = post.request
    if run_request.event and not run_request.messages and runner_id in runner_catalogue.BUILTIN:
        raise InvalidRequest(
            f"{runner_id} answers messages only: input.text is missing.", code="text_required"
        )
    form = SSE if wants_stream(request.headers.get("Accept", "")) else _NDJSON
    return await answering.stream(caller, post, form)
