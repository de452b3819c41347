"""The run endpoints: start, watch, look, cancel (specs/text-run.md §1–§2, DESIGN §9)."""

from __future__ import annotations

import re
from typing import Final

import msgspec
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse

from agents import actions, streaming
from agents.dialects.base import Dialect
from agents.dialects.recognise import dialect_named, recognise
from agents.requests import OnBusy
from config.auth.bearer import Caller
from config.errors import InvalidRequest, NotFound, current_request_id
from config.http import allow, api, json_object, json_response
from conversations import reads
from conversations.reads import RunRow

_KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")
_LONGEST_WAIT_S: Final = 55.0
_STREAM_HEADERS: Final = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


@api
async def runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/runs`: accept a run in whichever dialect the body speaks; 202."""
    allow(request, "POST")
    caller.require("run")
    body = json_object(request.body)
    forced = request.GET.get("dialect")
    dialect = dialect_named(forced) if forced else recognise(body)
    asked = msgspec.structs.replace(
        dialect.parse(body, request_id=current_request_id()),
        on_busy=on_busy(request.GET.get("on_busy")),
        client_run_id=idempotency_key(request.headers.get("Idempotency-Key")),
    )
    accepted = await actions.start_run(asked, owner_id=caller.user_id)
    return json_response(
        {
            "run_id": accepted.run_id.hex,
            "message_id": accepted.run_id.hex,
            "conversation_id": str(accepted.thread_id),
        },
        202,
    )


@api
async def run(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET /api/v1/agent/runs/{run_id}`: status, timings, usage, error."""
    allow(request, "GET")
    caller.require("read")
    return json_response(await reads.run_detail(reads.run_id_of(run_id), user_id=caller.user_id))


@api
async def cancel(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`POST …/cancel`: ask for the run's end; 202 with its status, also when it has ended already."""
    allow(request, "POST")
    caller.require("run")
    row = await reads.run_row(reads.run_id_of(run_id), user_id=caller.user_id)
    await actions.cancel_run(row.run_id)
    after = await reads.run_row(row.run_id, user_id=caller.user_id)
    return json_response({"run_id": row.run_id.hex, "status": after.status}, 202)


@api
async def events(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET …/events`: the run's frames as SSE, or by long-poll with `Accept: application/json`."""
    allow(request, "GET")
    caller.require("read")
    row = await reads.run_row(reads.run_id_of(run_id), user_id=caller.user_id)
    check_conversation(row, request.GET.get("conversation_id"))
    dialect = reading_dialect(row, request.GET.get("dialect"))
    after = position(request.headers.get("Last-Event-ID"), request.GET.get("after"))
    await reads.check_events_kept(row)
    if _wants_json(request):
        wait_s = min(_seconds(request.GET.get("wait")), _LONGEST_WAIT_S)
        return json_response(
            await streaming.long_poll(row, dialect, after=after, wait_s=wait_s),
            headers={"Cache-Control": "no-store"},
        )
    return StreamingHttpResponse(
        streaming.event_stream(row, dialect, after=after),
        content_type="text/event-stream; charset=utf-8",
        headers=_STREAM_HEADERS,
    )


def on_busy(given: str | None) -> OnBusy:
    """What to do while the conversation has a live run: `?on_busy=`, by default wait behind it."""
    match given:
        case None | "" | "enqueue":
            return "enqueue"
        case "reject":
            return "reject"
        case "interrupt":
            return "interrupt"
    raise InvalidRequest("on_busy must be enqueue, reject or interrupt.", code="invalid_on_busy")


def idempotency_key(given: str | None) -> str | None:
    """The caller's `Idempotency-Key`: the same key and body start one run (promise P5)."""
    if given is None:
        return None
    if not _KEY.fullmatch(given):
        raise InvalidRequest(
            "Idempotency-Key must be 1 to 128 visible ASCII characters.", code="invalid_idempotency_key"
        )
    return given


def reading_dialect(row: RunRow, asked: str | None) -> Dialect:
    """The run's own dialect, or the one asked for."""
    return dialect_named(asked or row.dialect)


def check_conversation(row: RunRow, given: str | None) -> None:
    """A `conversation_id` that is not the run's hides the run (specs/text-run.md §2)."""
    if given and given.replace("-", "").lower() != row.thread_id.hex:
        raise NotFound("There is no such run in this conversation.", code="run_not_found")


def position(last_event_id: str | None, after: str | None) -> int:
    """Where the reader is: `Last-Event-ID`, else `?after=`, else the beginning.

    InvalidRequest when it is no whole number: silently starting anew would repeat everything.
    """
    given = (last_event_id or after or "").strip()
    if not given:
        return 0
    if not (given.isascii() and given.isdigit() and len(given) <= 9):
        raise InvalidRequest(
            "Last-Event-ID and after must be the id of an event of this run, a whole number.",
            code="invalid_last_event_id",
        )
    return int(given)


def _wants_json(request: HttpRequest) -> bool:
    accept = request.headers.get("Accept", "")
    return "application/json" in accept and "text/event-stream" not in accept


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
