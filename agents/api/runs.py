"""The run endpoints: start, watch, look, cancel (specs/text-run.md §1–§2, DESIGN §9)."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponseBase

from agents.api import answering, run_requests, streaming
from agents.dialects import ag_ui
from agents.dialects.base import accepts, refuses_stream, wants_stream
from agents.dialects.recognition import dialect_named
from agents.intake import submit
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.errors import InvalidRequest, NotFound
from config.http.api import JSON, api, json_response
from conversations.runs import client_queries
from conversations.runs.client_queries import RunRow

_LONGEST_WAIT_S: Final = 55.0


@api(POST=RUN)
async def runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/runs`: accept a run in whichever dialect the body speaks.

    Answers 202, with the run's own stream where the client accepts one, or with its outcome where
    that is how the dialect answers.
    """
    post = await run_requests.read(request, caller, request.GET.get("dialect"))
    return await answering.answer(request, caller, post)


@api(POST=RUN)
async def run_of_named_thread(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/run`, seed 001's spelling: the same, with threads of any name."""
    post = await run_requests.read(request, caller, request.GET.get("dialect"), named_threads=True)
    return await answering.answer(request, caller, post)


@api(POST=RUN)
async def ag_ui_runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/ag-ui`: the same for clients that speak AG-UI and set no headers."""
    return await answering.answer(request, caller, await run_requests.read(request, caller, ag_ui.NAME))


@api(GET=READ)
async def run(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET /api/v1/agent/runs/{run_id}`: status, timings, usage, error."""
    return json_response(await client_queries.run_detail(run_id_of(run_id), user_id=caller.user_id))


@api(POST=RUN)
async def cancel(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`POST …/cancel`: ask for the run's end; 202 with its status, also when it has ended already."""
    row = await client_queries.run_row(run_id_of(run_id), user_id=caller.user_id)
    await submit.cancel_run(row.run_id)
    after = await client_queries.started_run(row.run_id.hex, user_id=caller.user_id)
    return json_response({"run_id": row.run_id.hex, "status": after.status}, 202)


@api(GET=READ)
async def events(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET …/events`: the run's frames as SSE, or by long-poll with `Accept: application/json`."""
    row = await client_queries.run_row(run_id_of(run_id), user_id=caller.user_id)
    check_conversation(row, request.GET.get("conversation_id"))
    dialect = dialect_named(request.GET.get("dialect") or row.dialect)
    after = position(request.headers.get("Last-Event-ID"), request.GET.get("after"))
    await client_queries.check_events_kept(row)
    if request.method == "HEAD":
        return json_response(b"") if _wants_json(request) else answering.headers_of_stream()
    if _wants_json(request):
        wait_s = min(_seconds(request.GET.get("wait")), _LONGEST_WAIT_S)
        return json_response(
            await streaming.long_poll(row, dialect, after=after, wait_s=wait_s),
            headers={"Cache-Control": "no-store"},
        )
    lease = await answering.admit(caller.user_id, row, after=after)
    return answering.watch(lease, row, dialect, after=after)


def run_id_of(given: str) -> str:
    """A run's id, of which the ids of responses and completions are made."""
    return given.removeprefix("response_").removeprefix("resp_").removeprefix("chatcmpl-")


def check_conversation(row: RunRow, given: str | None) -> None:
    """The id of another thread hides the run; what is no id is taken as when the run was created.

    A client that created with a malformed `conversation_id` watches with the same (seed 002).
    """
    try:
        named = UUID(given) if given else row.thread_id
    except ValueError:
        return
    if named != row.thread_id:
        raise NotFound("There is no such run in this conversation.", code="run_not_found")


def position(last_event_id: str | None, after: str | None) -> int:
    """Where the reader is: `Last-Event-ID`, else `?after=`, else before the beginning.

    InvalidRequest when it is no whole number: silently starting anew would repeat everything.
    """
    given = (last_event_id or after or "").strip()
    if not given:
        return streaming.FROM_THE_START
    if not (given.isascii() and given.isdigit() and len(given) <= 9):
        raise InvalidRequest(
            "Last-Event-ID and after must be the id of an event of this run, a whole number.",
            code="invalid_last_event_id",
        )
    return int(given)


def _wants_json(request: HttpRequest) -> bool:
    accept = request.headers.get("Accept", "")
    return not wants_stream(accept) and (accepts(accept, JSON) or refuses_stream(accept))


def _seconds(given: str | None) -> float:
    if not given:
        return 0.0
    try:
        seconds = float(given)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise InvalidRequest("wait must be a number of seconds.", code="invalid_wait")
    return seconds
