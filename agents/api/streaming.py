"""A run's frames for one reader, whatever the transport: SSE, WebSocket or long-poll.

The encoder reads every event from the first; only frames past the reader's position go out. So a reader
that comes back in the middle gets exactly what it would have got.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from math import inf
from typing import Any, Final, NamedTuple

import msgspec
from django.conf import settings

from agents.dialects.base import AnsweringDialect, AnsweringEncoder, Dialect, Encoder, Frame, RunHead
from config.http.slow_readers import Leaving, patiently
from config.process import cancellation
from conversations import events
from conversations.events import RunEvent
from conversations.log import event_log
from conversations.log.batches import Batch
from conversations.log.follow import follow
from conversations.models import LIVE
from conversations.runs.client_queries import RunRow

FROM_THE_START: Final = -1
STREAM_HEADERS: Final = {"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"}
_NO_FRAMES: Final = sys.maxsize
"""A position past every frame: the encoder reads the events, and no frame goes out."""
_LONG_POLL_LIMIT: Final = 1_000
_DELETED: Final = events.RunFailed(
    "thread_deleted", "The conversation was deleted while its run was being followed."
)
_FORGOTTEN: Final = events.RunFailed(
    "run_not_stored", "What this run said was not to be stored, and is gone."
)
_LINE_ENDS: Final = (
    ("\x85".encode(), b"\\u0085"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def run_head(run: RunRow) -> RunHead:
    """Return what the encoders of a run must know of it."""
    return RunHead(
        run.run_id,
        run.thread_id,
        run.request_id,
        run.model,
        run.result_mode,
        run.client_run_id,
        run.created_at_ms,
        run.wire or {},
    )


class Cursor:
    """A reader's position: it feeds every event to the encoder, and returns the frames past `after`."""

    def __init__(self, run: RunRow, encoder: Encoder, *, after: int = FROM_THE_START) -> None:
        self.run = run
        self.encoder = encoder
        self.fed = 0
        self.ended = False
        self._after = after

    def take(self, batch: Batch) -> list[Frame]:
        """Return the frames of a batch that the reader does not have yet."""
        found: list[Frame] = []
        for event in batch.after(self.fed):
            made = self.encoder.feed(event)
            self.fed = event.seq
            if not made:
                continue
            last = made[-1].id
            if (FROM_THE_START + 1 if last is None else last) > self._after:
                found += made if len(made) == 1 else self._unseen(made)
        self.ended = batch.is_last
        return found

    async def catch_up(self, *, most: float = inf) -> list[Frame]:
        """Take the stored events until there are `most` frames; return the frames."""
        found: list[Frame] = []
        async with aclosing(event_log.read(self.run.run_id)) as batches:
            async for batch in batches:
                found += self.take(batch)
                if len(found) >= most:
                    break
        return found

    def _unseen(self, made: Sequence[Frame]) -> Sequence[Frame]:
        """Return the frames past `after`; a dialect that numbers frames may resume within an event."""
        return [frame for frame in made if frame.id is None or frame.id > self._after]


def open_cursor(run: RunRow, dialect: Dialect, *, after: int = FROM_THE_START) -> Cursor:
    """Return a reader of the run in this dialect."""
    return Cursor(run, dialect.encoder(run_head(run)), after=after)


async def _followed(cursor: Cursor) -> AsyncGenerator[list[Frame] | None]:
    """Yield the reader's frames of each batch, and None for each silence, to the run's end.

    A run that is deleted under its reader ends as a failure: no client may take it for a success.
    """
    run = cursor.run
    live, silence_s = run.status in LIVE, settings.HEARTBEAT_S
    following = follow(run.run_id, after=cursor.fed, silence_s=silence_s, live=live)
    async with aclosing(following) as batches:
        async for batch in batches:
            yield None if batch is None else cursor.take(batch)
    if not cursor.ended:
        yield [*cursor.encoder.feed(deletion_event(run, cursor.fed))]


async def frames(cursor: Cursor) -> AsyncGenerator[list[Frame]]:
    """Yield the frames that the reader does not have yet, in lists as they come, to the last.

    Silence becomes the dialect's heartbeat, or an empty list if it has none.
    """
    async with aclosing(_followed(cursor)) as lists:
        async for some in lists:
            if some is None:
                beat = cursor.encoder.heartbeat(events.now_ms())
                yield [beat] if beat else []
            elif some:
                yield some


def deletion_event(run: RunRow, seq: int) -> RunEvent:
    """Return the last event of a run whose log, read as far as `seq`, no longer exists."""
    return RunEvent(seq + 1, events.now_ms(), _DELETED if run.stored else _FORGOTTEN)


def to_sse(frame: Frame) -> bytes:
    """Return a frame as a server-sent event (WHATWG HTML §9.2)."""
    data = frame.data if frame.data.isascii() else _on_one_line(frame.data)
    name = b"event: %b\n" % frame.event.encode() if frame.event else b""
    if frame.id is None:
        return b"%bdata: %b\n\n" % (name, data)
    return b"%bid: %d\ndata: %b\n\n" % (name, frame.id, data)


def _on_one_line(data: bytes) -> bytes:
    """Return JSON without the characters at which some clients, against the standard, end a line."""
    for character, escaped in _LINE_ENDS:
        data = data.replace(character, escaped)
    return data


def to_json(frame: Frame) -> bytes:
    """Return a frame as one JSON object: `{event, id, data}`; `id` only if the frame has one."""
    place = b"" if frame.id is None else b',"id":%d' % frame.id
    return b'{"event":"%b"%b,"data":%b}' % (frame.event.encode(), place, frame.data)


class Format(NamedTuple):
    """The form of frames in the body of a response, and the bytes that fill silence there."""

    content_type: str = "text/event-stream; charset=utf-8"
    write: Callable[[Frame], bytes] = to_sse
    silence: bytes = b": ping\n\n"
    headers: Mapping[str, str] = STREAM_HEADERS


SSE: Final = Format()


async def write_frames(
    lists: AsyncGenerator[list[Frame]], form: Format, *, opening: bytes
) -> AsyncGenerator[bytes]:
    """Yield lists of frames as the body of a response; an empty list is silence."""
    if opening:
        yield opening
    async with aclosing(lists):
        async for some in lists:
            yield b"".join(map(form.write, some)) if some else form.silence


def guard_slow_reader(
    pieces: AsyncGenerator[bytes], on_leaving: Leaving | None
) -> AsyncGenerator[bytes]:
    """Return the pieces for a reader, which is cut off if it takes nothing for too long.

    `on_leaving` is awaited if the reader leaves before the end.
    """
    taken = patiently(pieces)
    return taken if on_leaving is None else _whole(taken, on_leaving)


async def _whole(pieces: AsyncGenerator[bytes], on_leaving: Leaving) -> AsyncGenerator[bytes]:
    whole = False
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                yield piece
        whole = True
    finally:
        if not whole:
            cancellation.run_detached(on_leaving())


async def wait_for_outcome(
    run: RunRow, encoder: AnsweringEncoder, *, wait_s: float
) -> AsyncGenerator[bytes]:
    """Yield a JSON response's body: the run at its end, or as it stands after about `wait_s` seconds.

    Blanks, which JSON allows before its beginning, fill silence, so that no proxy cuts the connection.
    """
    now = asyncio.get_running_loop().time
    until, filled_at = now() + wait_s, now()
    async with aclosing(_followed(Cursor(run, encoder, after=_NO_FRAMES))) as lists:
        async for some in lists:
            if now() > until:
                break
            if some is None or now() > filled_at + settings.HEARTBEAT_S:
                yield b" "
                filled_at = now()
    yield encoder.answer()


async def final_outcome(run: RunRow, dialect: AnsweringDialect, *, wait_s: float) -> bytes:
    """Return the run as one JSON object once it has ended, at the latest after `wait_s` seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s), aclosing(follow(run.run_id)) as batches:
            async for _ in batches:
                pass
    return await current_outcome(run, dialect)


async def current_outcome(run: RunRow, dialect: AnsweringDialect) -> bytes:
    """Return the run as one JSON object, as far as it has come."""
    encoder = dialect.encoder(run_head(run))
    await Cursor(run, encoder, after=_NO_FRAMES).catch_up()
    return encoder.answer()


async def long_poll(run: RunRow, dialect: Dialect, *, after: int, wait_s: float) -> bytes:
    """Return the frames past `after` as JSON; wait up to `wait_s` seconds for the first of them.

    The form is `{"events": [{event, id, data}], "last_event_id": n, "done": bool}`; a client repeats the
    request with `after=last_event_id` until done.
    """
    cursor = open_cursor(run, dialect, after=after)
    found = await cursor.catch_up(most=_LONG_POLL_LIMIT)
    if not found and not cursor.ended and run.status in LIVE and wait_s > 0:
        found = await _first(cursor, wait_s)
    last = max((frame.id for frame in found if frame.id is not None), default=max(after, 0))
    done = cursor.ended or (not found and run.status not in LIVE)
    answer: dict[str, Any] = {
        "events": [msgspec.Raw(to_json(frame)) for frame in found],
        "last_event_id": last,
        "done": done,
    }
    return msgspec.json.encode(answer)


async def _first(cursor: Cursor, wait_s: float) -> list[Frame]:
    """Return the next frames, if any come within the time."""
    with suppress(TimeoutError):
        following = follow(cursor.run.run_id, after=cursor.fed)
        async with asyncio.timeout(wait_s), aclosing(following) as batches:
            async for batch in batches:
                if batch is not None and (found := cursor.take(batch)):
                    return found
    return []
