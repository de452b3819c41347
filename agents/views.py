"""The run endpoints: start, watch, look, cancel (specs/text-run.md §1–§2, DESIGN §9)."""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final, NamedTuple
from uuid import UUID, uuid4

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from agents import actions, guards, request_limits, returning, streaming, trying
from agents.actions import Accepted
from agents.dialects import ag_ui
from agents.dialects.base import (
    AnsweringDialect,
    Dialect,
    Frame,
    RunHead,
    accepts,
    refuses_stream,
    wants_stream,
)
from agents.dialects.recognise import ANSWERING, dialect_named, recognise, with_named_threads
from agents.guards import Lease
from agents.requests import OnBusy, OnDisconnect, RunRequest
from config.auth.access import READ, RUN
from config.auth.bearer import Caller
from config.errors import InvalidRequest, NotFound, current_request_id
from config.http import JSON, api, json_object, json_response
from config.parsing import parsed
from conversations import naming, reads
from conversations.metrics.reconnects import came_back
from conversations.reads import RunRow

_KEY: Final = re.compile(r"[\x21-\x7e]{1,128}")
_LONGEST_WAIT_S: Final = 55.0
_EVENT_STREAM: Final = "text/event-stream; charset=utf-8"
STREAM_HEADERS: Final = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}


@api(POST=RUN)
async def runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/runs`: accept a run in whichever dialect the body speaks.

    Answers 202, with the run's own stream where the client accepts one, or with its outcome where
    that is how the dialect answers.
    """
    return await _start(request, caller, request.GET.get("dialect"))


@api(POST=RUN)
async def run_of_named_thread(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/run`, seed 001's spelling: the same, with threads of any name."""
    return await _start(request, caller, request.GET.get("dialect"), named_threads=True)


@api(POST=RUN)
async def ag_ui_runs(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`POST /api/v1/agent/ag-ui`: the same for clients that speak AG-UI and set no headers."""
    return await _start(request, caller, ag_ui.NAME)


async def _start(
    request: HttpRequest, caller: Caller, forced: str | None, *, named_threads: bool = False
) -> HttpResponseBase:
    dialect, asked, body = await posted(request, forced, named_threads=named_threads)
    accept = request.headers.get("Accept", "")
    if dialect is ag_ui and dialect.streams(body, accept=accept):
        return await _attached(caller, asked, body)
    if dialect.streams(body, accept=accept):
        return await streamed(caller, dialect, asked)
    answering = ANSWERING.get(asked.dialect)
    if answering is not None and answering.waits(body):
        return await answered(caller, answering, asked)
    return json_response(await accepted(caller, dialect, asked), 202)


class Posted(NamedTuple):
    """What a POST asks for, and its body for what only the dialect reads of it."""

    dialect: Dialect
    asked: RunRequest
    body: dict[str, Any]


async def posted(
    request: HttpRequest, dialect: str | None = None, *, named_threads: bool = False
) -> Posted:
    """What has been posted, in this dialect or in the one that the body speaks."""
    return await parsed(request.body, functools.partial(_posted, request, dialect, named_threads))


def _posted(request: HttpRequest, named: str | None, named_threads: bool, raw: bytes) -> Posted:
    body = json_object(raw)
    dialect = dialect_named(named) if named else recognise(body)
    dialect = with_named_threads(dialect) if named_threads else dialect
    asked = _asked(request, dialect, body)
    request_limits.check(asked, size=len(raw))
    return Posted(dialect, asked, body)


def _asked(request: HttpRequest, dialect: Dialect, body: dict[str, Any]) -> RunRequest:
    """What the body asks for, with what the address and the headers say of it."""
    asked = dialect.parse(body, request_id=current_request_id())
    return msgspec.structs.replace(
        asked,
        on_busy=on_busy(request.GET.get("on_busy")),
        on_disconnect=on_disconnect(request, asked),
        deadline_s=deadline(request.headers.get("X-Run-Deadline")),
        prompts=trying.wanted(request.headers.get("X-Prompt-Version")),
        client_run_id=asked.client_run_id or idempotency_key(request.headers.get("Idempotency-Key")),
    )


async def accepted(caller: Caller, dialect: Dialect, asked: RunRequest) -> dict[str, Any]:
    """Start the run; the body that says so."""
    asked = await _placed(caller, asked)
    return dialect.accepted(_head(await _start_run(caller, asked), asked))


async def streamed(caller: Caller, dialect: Dialect, asked: RunRequest) -> HttpResponseBase:
    """Start the run; its stream."""
    lease, row, _ = await _started(caller, asked)
    ends_with_it = asked.on_disconnect == "cancel"
    return stream(lease, row, dialect, after=streaming.FROM_THE_START, cancel=ends_with_it)


async def begun(caller: Caller, asked: RunRequest) -> tuple[Lease, RunRow, streaming.Leaving | None]:
    """Start the run for a view that writes its frames in a format of its own."""
    lease, row, _ = await _started(caller, asked)
    return lease, row, _leaving(row) if asked.on_disconnect == "cancel" else None


async def _attached(caller: Caller, asked: RunRequest, body: dict[str, Any]) -> HttpResponseBase:
    """The same for AG-UI, whose client comes back to a run by starting it again."""
    lease, row, created = await _started(caller, asked, resumed=True)
    with lease.or_released():
        leaving = _leaving(row) if asked.on_disconnect == "cancel" else None
        if created:
            whole = streaming.event_stream(
                row, ag_ui, after=streaming.FROM_THE_START, on_leaving=leaving
            )
            return _sse(lease, whole)
        await reads.check_events_kept(row)
        came_back(row.run_id)
        return sent(lease, returning.run_again(row, returning.known_messages(body)), leaving)


async def answered(caller: Caller, dialect: AnsweringDialect, asked: RunRequest) -> HttpResponseBase:
    """Start the run; its outcome, for which the client waits in a place of its own.

    It waits for as long as a run may take; one that has not even begun by then is answered as it stands.
    """
    lease, row, _ = await _started(caller, asked)
    leaving = _leaving(row) if asked.on_disconnect == "cancel" else None
    encoder = dialect.encoder(streaming.head(row))
    told = streaming.outcome(row, encoder, wait_s=settings.RUN_DEADLINE_S, on_leaving=leaving)
    return StreamingHttpResponse(lease.around(told), content_type=JSON, headers=STREAM_HEADERS)


async def _started(
    caller: Caller, asked: RunRequest, *, resumed: bool = False
) -> tuple[Lease, RunRow, bool]:
    """The place that a reader holds, the run, and whether it is new; without a place none is started."""
    asked = await _placed(caller, asked)
    thread_id = UUID(asked.thread_id) if asked.thread_id else None
    lease = await guards.admit(caller.user_id, thread_id, resumed=resumed)
    with lease.or_released():
        started = await _start_run(caller, asked)
        try:
            row = await reads.started_run(started.run_id.hex, user_id=caller.user_id)
        except NotFound:
            raise NotFound(
                "The conversation was deleted while the run was being started.", code="thread_not_found"
            ) from None
        return lease, row, started.created


async def _placed(caller: Caller, asked: RunRequest) -> RunRequest:
    """The request with the prompt version that staff try, and in its thread.

    A run with a parent and no thread of its own goes on from its parent, in its thread. NotFound
    without one.
    """
    asked = await trying.completed(caller, asked)
    if not asked.parent_run_id or asked.thread_id or asked.session:
        return asked
    parent = await reads.run_row(asked.parent_run_id, user_id=caller.user_id)
    run_id = parent.run_id.hex
    return msgspec.structs.replace(
        asked, thread_id=str(parent.thread_id), parent_run_id=run_id, continues=run_id
    )


async def _start_run(caller: Caller, asked: RunRequest) -> Accepted:
    thread_id = await _thread_of(caller, asked)
    return await actions.start_run(asked, owner_id=caller.user_id, thread_id=thread_id)


async def _thread_of(caller: Caller, asked: RunRequest) -> UUID:
    """The thread asked for, or a new one; for a repeatable request always the same new one."""
    if asked.thread_id:
        return UUID(asked.thread_id)
    if asked.session:
        return await naming.thread_of_session(asked.session, caller=caller)
    if asked.client_run_id:
        return await naming.thread_of_run(asked.client_run_id, caller=caller)
    return uuid4()


def _head(accepted: Accepted, asked: RunRequest) -> RunHead:
    return RunHead(
        accepted.run_id,
        accepted.thread_id,
        asked.request_id,
        asked.model,
        client_run_id=asked.client_run_id,
        created_at_ms=accepted.created_at_ms,
        wire=asked.wire,
    )


@api(GET=READ)
async def run(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET /api/v1/agent/runs/{run_id}`: status, timings, usage, error."""
    return json_response(await reads.run_detail(run_id_of(run_id), user_id=caller.user_id))


@api(POST=RUN)
async def cancel(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`POST …/cancel`: ask for the run's end; 202 with its status, also when it has ended already."""
    row = await reads.run_row(run_id_of(run_id), user_id=caller.user_id)
    await actions.cancel_run(row.run_id)
    after = await reads.started_run(row.run_id.hex, user_id=caller.user_id)
    return json_response({"run_id": row.run_id.hex, "status": after.status}, 202)


@api(GET=READ)
async def events(request: HttpRequest, caller: Caller, run_id: str) -> HttpResponseBase:
    """`GET …/events`: the run's frames as SSE, or by long-poll with `Accept: application/json`."""
    row = await reads.run_row(run_id_of(run_id), user_id=caller.user_id)
    check_conversation(row, request.GET.get("conversation_id"))
    dialect = reading_dialect(row, request.GET.get("dialect"))
    after = position(request.headers.get("Last-Event-ID"), request.GET.get("after"))
    await reads.check_events_kept(row)
    if request.method == "HEAD":
        return json_response(b"") if _wants_json(request) else headers_of_stream()
    if _wants_json(request):
        wait_s = min(_seconds(request.GET.get("wait")), _LONGEST_WAIT_S)
        return json_response(
            await streaming.long_poll(row, dialect, after=after, wait_s=wait_s),
            headers={"Cache-Control": "no-store"},
        )
    lease = await guards.admit(caller.user_id, row.thread_id, resumed=after > 0)
    if after > 0:
        came_back(row.run_id)
    return stream(lease, row, dialect, after=after)


def stream(
    lease: Lease, row: RunRow, dialect: Dialect, *, after: int, cancel: bool = False
) -> HttpResponseBase:
    """The run's frames past `after`; the response holds the place."""
    leaving = _leaving(row) if cancel else None
    return _sse(lease, streaming.event_stream(row, dialect, after=after, on_leaving=leaving))


def sent(
    lease: Lease,
    lists: AsyncGenerator[list[Frame]],
    leaving: streaming.Leaving | None = None,
    *,
    write: Callable[[Frame], bytes] = streaming.sse,
) -> HttpResponseBase:
    """Lists of frames as an SSE response that holds the place."""
    return _sse(lease, streaming.server_sent(lists, on_leaving=leaving, write=write))


def _sse(lease: Lease, body: AsyncGenerator[bytes]) -> HttpResponseBase:
    return StreamingHttpResponse(
        lease.around(body),
        content_type=_EVENT_STREAM,
        headers=STREAM_HEADERS,
    )


def headers_of_stream() -> HttpResponseBase:
    """The answer to HEAD where GET gives a stream; it takes no reader's place."""
    return HttpResponse(content_type=_EVENT_STREAM, headers=STREAM_HEADERS)


def _leaving(row: RunRow) -> streaming.Leaving:
    return functools.partial(actions.cancel_run, row.run_id)


def run_id_of(given: str) -> str:
    """A run's id, of which the ids of responses and completions are made."""
    return given.removeprefix("response_").removeprefix("resp_").removeprefix("chatcmpl-")


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


def on_disconnect(request: HttpRequest, asked: RunRequest) -> OnDisconnect:
    """Whether a POST whose stream breaks off ends its run: `?on_disconnect=` or `X-On-Disconnect`."""
    given = request.GET.get("on_disconnect") or request.headers.get("X-On-Disconnect")
    match given:
        case None | "":
            return asked.on_disconnect
        case "cancel":
            return "cancel"
        case "continue":
            return "continue"
    raise InvalidRequest("on_disconnect must be continue or cancel.", code="invalid_on_disconnect")


def deadline(given: str | None) -> int | None:
    """`X-Run-Deadline`: whole seconds from the run's start; more than RUN_DEADLINE_S is cut to that."""
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= 9 and int(given) > 0):
        raise InvalidRequest(
            "X-Run-Deadline must be a whole number of seconds, 1 or more.", code="invalid_deadline"
        )
    return int(given)


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
