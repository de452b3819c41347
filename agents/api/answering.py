"""The answers to clients: a run's stream, its outcome or its id, in one way for all addresses.

The dialect chooses between them by the body of a POST and its Accept header; `Door` holds what an
address writes in a way of its own. A reader holds a place (`stream_slots`) while it reads.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from agents.api import streaming
from agents.api.run_requests import Post
from agents.api.streaming import SERVER_SENT, STREAM_HEADERS, Format
from agents.dialects.base import (
    AnsweringDialect,
    AnsweringEncoder,
    Dialect,
    Frame,
    ReturningDialect,
    RunHead,
)
from agents.dialects.recognition import ANSWERING, RETURNING
from agents.intake import start, stream_slots
from agents.intake.start import Started
from agents.intake.stream_slots import Lease
from config.auth.bearer import Caller
from config.errors import NotFound
from config.http.api import JSON, json_response
from config.http.slow_readers import Leaving
from conversations import attachments
from conversations.metrics.reconnects import count_reconnect
from conversations.runs.client_queries import RunRow
from conversations.threads import stored_messages
from conversations.threads.stored_messages import ThreadMessage


def send_outcome(started: Started, dialect: AnsweringDialect) -> HttpResponseBase:
    """Return the run's outcome, for which the client waits in a place of its own.

    It waits for as long as a run may take; a run that has not even begun by then is answered as it
    stands.
    """
    body = outcome(started, dialect.encoder(streaming.head(started.row)))
    return StreamingHttpResponse(body, content_type=JSON, headers=STREAM_HEADERS)


def outcome(started: Started, encoder: AnsweringEncoder) -> AsyncGenerator[bytes]:
    """Return the body of an answer with the run's outcome."""
    pieces = streaming.outcome(started.row, encoder, wait_s=settings.RUN_DEADLINE_S)
    return started.lease.around(streaming.attended(pieces, started.leaving))


@dataclass(frozen=True)
class Door:
    """The part of an answer that an address writes in a way of its own."""

    form: Format = SERVER_SENT
    send_outcome: Callable[[Started, AnsweringDialect], HttpResponseBase] = send_outcome
    accepted: int = 202


OURS: Final = Door()


async def answer(
    request: HttpRequest, caller: Caller, post: Post, door: Door = OURS
) -> HttpResponseBase:
    """Start the run, and answer with its stream, its outcome or its id."""
    if post.dialect.streams(post.body, accept=request.headers.get("Accept", "")):
        return await stream(caller, post, door.form)
    answering = ANSWERING.get(post.request.dialect)
    if answering is not None and answering.waits(post.body):
        return door.send_outcome(await start.started(caller, post.request), answering)
    return await accept(caller, post, status=door.accepted)


async def stream(caller: Caller, post: Post, form: Format = SERVER_SENT) -> HttpResponseBase:
    """Start the run; return its stream, or for a client that starts it again what it has missed."""
    returning = RETURNING.get(post.request.dialect)
    started = await start.started(caller, post.request, resumed=returning is not None)
    with started.lease.or_released():
        if returning is None or started.created:
            lists = streaming.frames(streaming.reader_of(started.row, post.dialect))
        else:
            count_reconnect(started.row.run_id)
            lists = missed(started.row, returning, post.body)
        return send(started.lease, lists, post.dialect.OPENING, form=form, leaving=started.leaving)


async def missed(
    run: RunRow, dialect: ReturningDialect, body: dict[str, Any]
) -> AsyncGenerator[list[Frame]]:
    """Yield what a client that sends this body again has missed of the run, then the live run."""
    head = streaming.head(run)
    try:
        before, state = await _before(run)
    except NotFound:  # deleted a moment ago
        yield [*dialect.encoder(head).feed(streaming.deleted(run, 0))]
        return
    encoder = dialect.returning(head, body)
    cursor = streaming.Cursor(run, encoder)
    await cursor.catch_up()
    yield [*encoder.catch_up(before, state=state, sign=attachments.sign_url)]
    if not cursor.ended:
        async with aclosing(streaming.frames(cursor)) as lists:
            async for some in lists:
                yield some


async def _before(run: RunRow) -> tuple[list[ThreadMessage], Any]:
    """Return the thread's messages up to the run's own input, and its state; raise NotFound."""
    head = await stored_messages.fetch_thread_head(run.thread_id, owner_id=run.owner_id)
    rows = await stored_messages.fetch_messages_before(
        run.run_id,
        thread_id=run.thread_id,
        owner_id=run.owner_id,
        branched=head.branch is not None,
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
    return json_response(post.dialect.accepted(head), status)


async def admit(user_id: UUID, row: RunRow, *, after: int) -> Lease:
    """Return a place for a reader of the run; past the first event it counts as one that comes back."""
    lease = await stream_slots.admit(user_id, row.thread_id, resumed=after > 0)
    if after > 0:
        count_reconnect(row.run_id)
    return lease


def watch(lease: Lease, row: RunRow, dialect: Dialect, *, after: int) -> HttpResponseBase:
    """Return the stream, past `after`, of a run that was started before."""
    lists = streaming.frames(streaming.reader_of(row, dialect, after=after))
    return send(lease, lists, dialect.OPENING)


def send(
    lease: Lease,
    lists: AsyncGenerator[list[Frame]],
    opening: bytes = b"",
    *,
    form: Format = SERVER_SENT,
    leaving: Leaving | None = None,
) -> HttpResponseBase:
    """Return lists of frames as a response that holds the place."""
    pieces = streaming.written(lists, form, opening=opening)
    body = lease.around(streaming.attended(pieces, leaving))
    return StreamingHttpResponse(body, content_type=form.content_type, headers=form.headers)


def headers_of_stream() -> HttpResponseBase:
    """Return the answer to HEAD where GET gives a stream; it takes no reader's place."""
    return HttpResponse(content_type=SERVER_SENT.content_type, headers=STREAM_HEADERS)
