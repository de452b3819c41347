"""A run's frames for one reader, whatever the transport: SSE, WebSocket or long-poll.

The encoder sees every event from the first; frames go out only for what lies past the reader's
position, so a reader that comes back in the middle gets exactly what it would have got.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec
import structlog
from django.conf import settings

from agents.dialects.base import Dialect, Frame, RunHead
from conversations import events, log
from conversations.follow import follow
from conversations.log import Batch
from conversations.models import LIVE
from conversations.reads import RunRow

logger = structlog.get_logger(__name__)

PADDING: Final = b":" + b" " * 2048 + b"\n\n"
_LONG_POLL_LIMIT: Final = 1_000
_LINE_ENDS: Final = (
    ("\x85".encode(), b"\\u0085"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


class _Cursor:
    """A reader's place: feeds the encoder everything, gives out what lies past `after`."""

    def __init__(self, run: RunRow, dialect: Dialect, after: int) -> None:
        self.encoder = dialect.encoder(
            RunHead(run.run_id, run.thread_id, run.request_id, run.result_mode)
        )
        self.fed = 0
        self.ended = False
        self._after = after

    def take(self, batch: Batch) -> list[Frame]:
        """The frames of a batch that the reader does not have yet."""
        found: list[Frame] = []
        for event in batch.after(self.fed):
            made = self.encoder.feed(event)
            self.fed = event.seq
            if event.seq > self._after:
                found += made
        self.ended = batch.ends
        return found


async def frames(run: RunRow, dialect: Dialect, *, after: int) -> AsyncGenerator[list[Frame]]:
    """The frames past `after`, a list as they come, to the last; heartbeats fill silence."""
    cursor = _Cursor(run, dialect, after)
    following = follow(run.run_id, silence_s=settings.HEARTBEAT_S, live=run.status in LIVE)
    async with aclosing(following) as batches:
        async for batch in batches:
            if batch is not None:
                some = cursor.take(batch)
            else:
                beat = cursor.encoder.heartbeat(events.now_ms())
                some = [beat] if beat else []
            if some:
                yield some


def sse(frame: Frame) -> bytes:
    """A frame as a server-sent event (WHATWG HTML §9.2)."""
    data = frame.data if frame.data.isascii() else _on_one_line(frame.data)
    if frame.id is None:
        return b"event: %b\ndata: %b\n\n" % (frame.event.encode(), data)
    return b"event: %b\nid: %d\ndata: %b\n\n" % (frame.event.encode(), frame.id, data)


def _on_one_line(data: bytes) -> bytes:
    """JSON without the characters at which some clients, against the standard, end a line."""
    for character, escaped in _LINE_ENDS:
        data = data.replace(character, escaped)
    return data


def as_json(frame: Frame) -> bytes:
    """A frame as one JSON object: `{event, id, data}`; `id` only where the frame completes one."""
    place = b"" if frame.id is None else b',"id":%d' % frame.id
    return b'{"event":"%b"%b,"data":%b}' % (frame.event.encode(), place, frame.data)


async def event_stream(run: RunRow, dialect: Dialect, *, after: int) -> AsyncGenerator[bytes]:
    """The body of an SSE response; a client that takes nothing for too long is cut."""
    patience = _Patience()
    try:
        yield PADDING
        async with aclosing(frames(run, dialect, after=after)) as lists:
            async for some in lists:
                sent = b"".join(map(sse, some))
                patience.begin()
                yield sent
                patience.end()
    finally:
        patience.stop()


class _Patience:
    """Cancels the stream's task when the client takes nothing; one timer a stream."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._since: float | None = None
        self._timer = self._loop.call_later(settings.SLOW_READER_S, self._look)

    def begin(self) -> None:
        self._since = self._loop.time()

    def end(self) -> None:
        self._since = None

    def stop(self) -> None:
        self._timer.cancel()

    def _look(self) -> None:
        limit = settings.SLOW_READER_S
        left = limit if self._since is None else self._since + limit - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        elif self._task is not None:
            logger.info("slow reader cut")
            self._task.cancel()


async def long_poll(run: RunRow, dialect: Dialect, *, after: int, wait_s: float) -> bytes:
    """What there is past `after`, waiting up to `wait_s` seconds for the first of it, as JSON.

    `{"events": [{event, id, data}], "last_event_id": n, "done": bool}`; ask again with
    `after=last_event_id` until done.
    """
    cursor = _Cursor(run, dialect, after)
    found = await _stored(cursor, run)
    if not found and not cursor.ended and run.status in LIVE and wait_s > 0:
        found = await _first(cursor, run, wait_s)
    last = max((frame.id for frame in found if frame.id is not None), default=after)
    done = cursor.ended or (not found and run.status not in LIVE)
    answer: dict[str, Any] = {
        "events": [msgspec.Raw(as_json(frame)) for frame in found],
        "last_event_id": last,
        "done": done,
    }
    return msgspec.json.encode(answer)


async def _stored(cursor: _Cursor, run: RunRow) -> list[Frame]:
    found: list[Frame] = []
    async with aclosing(log.read(run.run_id)) as batches:
        async for batch in batches:
            found += cursor.take(batch)
            if len(found) >= _LONG_POLL_LIMIT:
                break
    return found


async def _first(cursor: _Cursor, run: RunRow, wait_s: float) -> list[Frame]:
    try:
        async with asyncio.timeout(wait_s), aclosing(follow(run.run_id, after=cursor.fed)) as batches:
            async for batch in batches:
                if batch is not None and (found := cursor.take(batch)):
                    return found
    except TimeoutError:
        pass
    return []
