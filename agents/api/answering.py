"""The answers to clients: a run's stream, its outcome or its id, in one way for all addresses.

The dialect chooses between them by the body of a POST and its Accept header; `AnswerStyle` holds what an
address writes in a way of its own. A reader holds a place (`stream_slots`) while it reads.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from agents.api import streaming
from agents.api.run_requests import Post, read_post
from agents.api.streaming import SSE, STREAM_HEADERS, Format
from agents.dialects.ag_ui import dialect as ag_ui
from agents.dialects.ag_ui.reconnect import ReturningAgUiEncoder
from agents.dialects.base import AnsweringDialect, AnsweringEncoder, Dialect, Frame, RunHead
from agents.dialects.recognition import ANSWERING
from agents.intake import start, stream_slots
from agents.intake.start import StartedRun
from agents.intake.stream_slots import StreamSlot
from config.auth.bearer import Caller
from config.errors import NotFound
from config.http.async_views import JSON, StreamedResponse, json_response
from config.http.slow_readers import Leaving
from conversations import attachments
from conversations.metrics.reconnects import count_reconnect
from conversations.runs.client_queries import RunRow
from conversations.threads import newest_messages
from conversations.threads.newest_messages import ThreadMessage


def send_outcome(started: StartedRun, dialect: AnsweringDialect) -> HttpResponseBase:
    """Return the run's outcome, for which the client waits in a place of its own.

    It waits for as long as a run may take; a run that has not even begun by then is answered as it
    stands.
    """
    body = outcome_body(started, dialect.encoder(streaming.run_head(started.row)))
    return StreamedResponse(body, content_type=JSON, headers=STREAM_HEADERS)


def outcome_body(started: StartedRun, encoder: AnsweringEncoder) -> AsyncGenerator[bytes]:
    """Return the body of an answer with the run's outcome."""
    pieces = streaming.wait_for_outcome(started.row, encoder, wait_s=settings.RUN_DEADLINE_S)
    return started.slot.hold_during(streaming.guard_slow_reader(pieces, started.on_leaving))


@dataclass(frozen=True)
class AnswerStyle:
    """The part of an answer that an address writes in a way of its own."""

    form: Format = SSE
    send_outcome: Callable[[StartedRun, AnsweringDialect], HttpResponseBase] = send_outcome
    accepted_status: int = 202


DEFAULT_STYLE: Final = AnswerStyle()


async def answer(
    request: HttpRequest,
    caller: Caller,
    dialect: str | None,
    style: AnswerStyle = DEFAULT_STYLE,
    *,
    named_threads: bool = False,
) -> HttpResponseBase:
    """Start the run that a POST requests, and answer with its stream, its outcome or its id."""
    post = await read_post(request, caller, dialect, named_threads=named_threads)
    if post.dialect.streams(post.body, accept=request.headers.get("Accept", "")):
        return await stream(caller, post, style.form)
    answering = ANSWERING.get(post.request.dialect)
    if answering is not None and answering.waits(post.body):
        return style.send_outcome(await start.start_for_reader(caller, post.request), answering)
    return await accept(caller, post, status=style.accepted_status)


async def stream(caller: Caller, post: Post, form: Format = SSE) -> HttpResponseBase:
    """Start the run; return its stream, or for a client of AG-UI that starts it again what it missed."""
    may_return = post.request.dialect == ag_ui.NAME
    started = await start.start_for_reader(caller, post.request, resumed=may_return)
    with started.slot.release_on_error():
        if started.created or not may_return:
            lists = streaming.frames(streaming.open_cursor(started.row, post.dialect))
        else:
            count_reconnect(started.row.run_id)
            lists = missed_frames(started.row, post.body)
        return send(started.slot, lists, post.dialect.OPENING, form=form, on_leaving=started.on_leaving)


async def missed_frames(run: RunRow, body: dict[str, Any]) -> AsyncGenerator[list[Frame]]:
    """Yield what a client of AG-UI that sends this body again has missed, then the live run."""
    head = streaming.run_head(run)
    try:
        before, state = await _before(run)
    except NotFound:  # deleted a moment ago
        yield [*ag_ui.encoder(head).feed(streaming.deletion_event(run, 0))]
        return
    encoder = ReturningAgUiEncoder(head, body)
    cursor = streaming.Cursor(run, encoder)
    await cursor.catch_up()
    yield [*encoder.catch_up(before, state=state, sign=attachments.sign_url)]
    if not cursor.ended:
        async with aclosing(streaming.frames(cursor)) as lists:
            async for some in lists:
                yield some


async def _before(run: RunRow) -> tuple[list[ThreadMessage], Any]:
    """Return the thread's messages up to the run's own input, and its state; raise NotFound."""
    head = await newest_messages.fetch_thread_head(run.thread_id, owner_id=run.owner_id)
    rows = await newest_messages.fetch_messages_before(
        run.run_id, thread_id=run.thread_id, owner_id=run.owner_id, branched=head.branch is not None
    )
    return rows, head.state


async def accept(caller: Caller, post: Post, *, status: int) -> HttpResponseBase:
    """Start the run; return its id, in the dialect's form."""
    request = post.request
    accepted = await start.start(caller, request)
    head = RunHead(
        accepted.run_id,
        accepted.thread_id,
        request.request_id,
        request.model,
        client_run_id=request.client_run_id,
        created_at_ms=accepted.created_at_ms,
        wire=request.wire,
    )
    location = {"Location": run_address(accepted.run_id)} if status == 202 else None
    return json_response(post.dialect.accepted(head), status, location)


def run_address(run_id: UUID) -> str:
    """Return the address at which a client reads the run: the Location of a 202."""
    return f"/api/v1/agent/runs/{run_id.hex}"


async def admit(user_id: UUID, row: RunRow, *, after: int) -> StreamSlot:
    """Return a place for a reader of the run; past the first event it counts as one that comes back."""
    slot = await stream_slots.admit(user_id, row.thread_id, resumed=after > 0)
    if after > 0:
        count_reconnect(row.run_id)
    return slot


def watch(slot: StreamSlot, row: RunRow, dialect: Dialect, *, after: int) -> HttpResponseBase:
    """Return the stream, past `after`, of a run that was started before."""
    lists = streaming.frames(streaming.open_cursor(row, dialect, after=after))
    return send(slot, lists, dialect.OPENING)


def send(
    slot: StreamSlot,
    lists: AsyncGenerator[list[Frame]],
    opening: bytes = b"",
    *,
    form: Format = SSE,
    on_leaving: Leaving | None = None,
) -> HttpResponseBase:
    """Return lists of frames as a response that holds the place."""
    pieces = streaming.write_frames(lists, form, opening=opening)
    body = slot.hold_during(streaming.guard_slow_reader(pieces, on_leaving))
    return StreamedResponse(body, content_type=form.content_type, headers=form.headers)


def stream_head_response() -> HttpResponseBase:
    """Return the answer to HEAD where GET gives a stream; it takes no reader's place."""
    return HttpResponse(content_type=SSE.content_type, headers=STREAM_HEADERS)
