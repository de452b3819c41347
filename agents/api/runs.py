"""The endpoints of runs: start, watch, read, cancel (specs/text-run.md §1–§2, DESIGN §9)."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseBase

from agents.api import answering, streaming
from agents.dialects.ag_ui import dialect as ag_ui
from agents.dialects.base import prefers_json
from agents.dialects.recognition import dialect_named
from agents.intake import submit
from config.auth.bearer import Caller
from config.auth.requirements import READ, RUN
from config.errors import InvalidRequest, NotFound
from config.http.async_views import api, json_response
from conversations.identifiers import uuid_of
from conversations.runs import client_queries
from conversations.runs.client_queries import RunRow

_LONGEST_WAIT_S: Final = 55.0


@api(POST=RUN)
async def runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/runs`: accept a run in the dialect of its body.

    Answer 202, with the run's own stream if the client accepts one, or with its outcome if the dialect
    answers so.
    """
    return await answering.answer(request, caller, request.GET.get("dialect"))


@api(POST=RUN)
async def run_of_named_thread(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/run`, seed 001's spelling: accept a run, on a thread of any name."""
    return await answering.answer(request, caller, request.GET.get("dialect"), named_threads=True)


@api(POST=RUN)
async def ag_ui_runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/ag-ui`: accept a run of a client that speaks AG-UI and sets no headers."""
    return await answering.answer(request, caller, ag_ui.NAME)


@api(GET=READ)
async def run(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET /api/v1/agent/runs/{run_id}`: return its status, timings, usage and error."""
    return json_response(
        await client_queries.fetch_run_detail(parse_run_id(run_id), user_id=caller.user_id)
    )


@api(POST=RUN)
async def cancel(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`POST …/cancel`: request the run's end; return 202 with its status, also after its end."""
    row = await client_queries.fetch_run(parse_run_id(run_id), user_id=caller.user_id)
    await submit.cancel_run(row.run_id)
    after = await client_queries.fetch_started_run(row.run_id.hex, user_id=caller.user_id)
    location = {"Location": answering.run_address(row.run_id)}
    return json_response({"run_id": row.run_id.hex, "status": after.status}, 202, location)


@api(GET=READ)
async def events(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET …/events`: return the run's frames as SSE, or by long-poll (`Accept: application/json`)."""
    row = await client_queries.fetch_run(parse_run_id(run_id), user_id=caller.user_id)
    check_conversation(row, request.GET.get("conversation_id"))
    dialect = dialect_named(request.GET.get("dialect") or row.dialect)
    after = reader_position(request.headers.get("Last-Event-ID"), request.GET.get("after"))
    await client_queries.check_events_kept(row)
    wants_json = prefers_json(request.headers.get("Accept", ""))
    if request.method == "HEAD":
        return json_response(b"") if wants_json else answering.stream_head_response()
    if wants_json:
        wait_s = min(_seconds(request.GET.get("wait")), _LONGEST_WAIT_S)
        return json_response(
            await streaming.long_poll(row, dialect, after=after, wait_s=wait_s),
            headers={"Cache-Control": "no-store"},
        )
    slot = await answering.admit(caller.user_id, row, after=after)
    return answering.watch(slot, row, dialect, after=after)


def parse_run_id(text: str) -> str:
    """Return the id of a run; ids of responses and completions contain it."""
    return text.removeprefix("response_").removeprefix("resp_").removeprefix("chatcmpl-")


def check_conversation(row: RunRow, conversation_id: str | None) -> None:
    """Raise NotFound if the id is that of another thread; ignore a malformed one.

    A client that created the run with a malformed `conversation_id` watches with the same one (seed
    002).
    """
    if uuid_of(conversation_id) not in (None, row.thread_id):
        raise NotFound("There is no such run in this conversation.", code="run_not_found")


def reader_position(last_event_id: str | None, after: str | None) -> int:
    """Return the reader's position: `Last-Event-ID`, else `?after=`, else before the beginning.

    Raise InvalidRequest if it is no whole number: a silent new start would repeat everything.
    """
    text = (last_event_id or after or "").strip()
    if not text:
        return streaming.FROM_THE_START
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise InvalidRequest(
            "Last-Event-ID and after must be the id of an event of this run, a whole number.",
            code="invalid_last_event_id",
        )
    return int(text)


def _seconds(value: str | None) -> float:
    if not value:
        return 0.0
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 3600:
        raise InvalidRequest("wait must be a number of seconds.", code="invalid_wait")
    return seconds
