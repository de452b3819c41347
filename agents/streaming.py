"""A run's frames for one reader, whatever the transport: SSE, WebSocket or long-poll.

The encoder sees every event from the first; frames go out only for what lies past the reader's
position, so a reader that comes back in the middle gets exactly what it would have got.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import Any, Final

import msgspec
from django.conf import settings

from agents.dialects.base import AnsweringDialect, AnsweringEncoder, Dialect, Frame, RunHead
from config.slow_readers import Patience
from conversations import events, log
from conversations.events import RunEvent
from conversations.follow import follow
from conversations.log import Batch
from conversations.models import LIVE
from conversations.reads import RunRow

Leaving = Callable[[], Awaitable[None]]

FROM_THE_START: Final = -1
BLANK: Final = b" "
_KEEP_ALIVE: Final = b": ping\n\n"
_LONG_POLL_LIMIT: Final = 1_000
_DELETED: Final = events.RunFailed(
    "thread_deleted", "The conversation was deleted while its run was being followed."
)
_LINE_ENDS: Final = (
    ("\x85".encode(), b"\\u0085"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)


def head(run: RunRow) -> RunHead:
    """What the encoders of a run must know of it."""
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


class _Cursor:
    """A reader's place: feeds the encoder everything, gives out what lies past `after`."""

    def __init__(self, run: RunRow, dialect: Dialect, after: int) -> None:
        self.encoder = dialect.encoder(head(run))
        self.fed = 0
        self.ended = False
        self._after = after

    def take(self, batch: Batch) -> list[Frame]:
        """The frames of a batch that the reader does not have yet."""
        found: list[Frame] = []
        for event in batch.after(self.fed):
            made = self.encoder.feed(event)
            self.fed = event.seq
            if made and _reached(made) > self._after:
                found += self._unseen(made)
        self.ended = batch.ends
        return found

    def gone(self) -> Sequence[Frame]:
        """The end of a run that was deleted under its reader: no client may take it for a success."""
        return () if self.ended else self.encoder.feed(deleted(self.fed))

    def _unseen(self, made: Sequence[Frame]) -> Sequence[Frame]:
        """A dialect that numbers every frame may resume between those of one event."""
        if len(made) == 1:
            return made
        return [frame for frame in made if frame.id is None or frame.id > self._after]


def _reached(made: Sequence[Frame]) -> int:
    last = made[-1].id
    return FROM_THE_START + 1 if last is None else last


async def frames(run: RunRow, dialect: Dialect, *, after: int) -> AsyncGenerator[list[Frame]]:
    """The frames past `after`, a list as they come, to the last.

    Silence is filled with the dialect's heartbeat, or with an empty list if it has none.
    """
    cursor = _Cursor(run, dialect, after)
    following = follow(run.run_id, silence_s=settings.HEARTBEAT_S, live=run.status in LIVE)
    async with aclosing(following) as batches:
        async for batch in batches:
            if batch is None:
                beat = cursor.encoder.heartbeat(events.now_ms())
                yield [beat] if beat else []
            elif some := cursor.take(batch):
                yield some
    if last := cursor.gone():
        yield [*last]


def deleted(seq: int) -> RunEvent:
    """The last event of a run whose log, read as far as `seq`, is there no more."""
    return RunEvent(seq + 1, events.now_ms(), _DELETED)


def sse(frame: Frame) -> bytes:
    """A frame as a server-sent event (WHATWG HTML §9.2)."""
    data = frame.data if frame.data.isascii() else _on_one_line(frame.data)
    name = b"event: %b\n" % frame.event.encode() if frame.event else b""
    if frame.id is None:
        return b"%bdata: %b\n\n" % (name, data)
    return b"%bid: %d\ndata: %b\n\n" % (name, frame.id, data)


def _on_one_line(data: bytes) -> bytes:
    """JSON without the characters at which some clients, against the standard, end a line."""
    for character, escaped in _LINE_ENDS:
        data = data.replace(character, escaped)
    return data


def as_json(frame: Frame) -> bytes:
    """A frame as one JSON object: `{event, id, data}`; `id` only where the frame has one."""
    place = b"" if frame.id is None else b',"id":%d' % frame.id
    return b'{"event":"%b"%b,"data":%b}' % (frame.event.encode(), place, frame.data)


async def event_stream(
    run: RunRow, dialect: Dialect, *, after: int, on_leaving: Leaving | None = None
) -> AsyncGenerator[bytes]:
    """The body of an SSE response with the run's frames past `after`; see `server_sent`."""
    lists = frames(run, dialect, after=after)
    async with aclosing(server_sent(lists, opening=dialect.OPENING, on_leaving=on_leaving)) as sent:
        async for some in sent:
            yield some


async def server_sent(
    lists: AsyncGenerator[list[Frame]],
    *,
    opening: bytes = b"",
    on_leaving: Leaving | None = None,
    write: Callable[[Frame], bytes] = sse,
    silence: bytes = _KEEP_ALIVE,
) -> AsyncGenerator[bytes]:
    """Lists of frames as the body of an SSE response; a client that takes nothing for too long is cut.

    An empty list is silence. `on_leaving` is awaited if the reader goes before the run's end. Another
    format than SSE has a `write` and a `silence` of its own.
    """
    patience, whole = Patience(), False
    try:
        if opening:
            yield opening
        async with aclosing(lists):
            async for some in lists:
                sent = b"".join(map(write, some)) if some else silence
                patience.begin()
                yield sent
                patience.end()
        whole = True
    finally:
        patience.stop()
        if on_leaving is not None and not whole:
            _keep(asyncio.ensure_future(on_leaving()))


async def outcome(
    run: RunRow, encoder: AnsweringEncoder, *, wait_s: float, on_leaving: Leaving | None = None
) -> AsyncGenerator[bytes]:
    """The body of a JSON response: the run at its end, or as it stands after about `wait_s` seconds.

    Silence is filled with blanks, which JSON allows before its beginning, so that nobody between
    cuts the connection. `on_leaving` is awaited if the reader goes before the run's end.
    """
    patience, whole, now = Patience(), False, asyncio.get_running_loop().time
    seen, ended, until, told_at = 0, False, now() + wait_s, now()
    following = follow(run.run_id, silence_s=settings.HEARTBEAT_S, live=run.status in LIVE)
    try:
        async with aclosing(following) as batches:
            async for batch in batches:
                for event in batch.after(seen) if batch else ():
                    encoder.feed(event)
                    seen, ended = event.seq, batch is not None and batch.ends
                if now() > until:
                    break
                if batch is None or now() > told_at + settings.HEARTBEAT_S:
                    patience.begin()
                    yield BLANK
                    patience.end()
                    told_at = now()
            else:
                if not ended:
                    encoder.feed(deleted(seen))
        patience.begin()
        yield encoder.answer()
        whole = True
    finally:
        patience.stop()
        if on_leaving is not None and not whole:
            _keep(asyncio.ensure_future(on_leaving()))


async def settled(run: RunRow, dialect: AnsweringDialect, *, wait_s: float) -> bytes:
    """The run as one JSON object once it has ended, at the latest after `wait_s` seconds."""
    with suppress(TimeoutError):
        async with asyncio.timeout(wait_s), aclosing(follow(run.run_id)) as batches:
            async for _ in batches:
                pass
    return await standing(run, dialect)


async def standing(run: RunRow, dialect: AnsweringDialect) -> bytes:
    """The run as one JSON object, as far as it has come."""
    encoder = dialect.encoder(head(run))
    async with aclosing(log.read(run.run_id)) as batches:
        async for batch in batches:
            for event in batch.events:
                encoder.feed(event)
    return encoder.answer()


_kept: Final[set[asyncio.Future[None]]] = set()


def _keep(future: asyncio.Future[None]) -> None:
    """Hold what nobody else awaits until it is done."""
    _kept.add(future)
    future.add_done_callback(_kept.discard)


async def long_poll(run: RunRow, dialect: Dialect, *, after: int, wait_s: float) -> bytes:
    """What there is past `after`, waiting up to `wait_s` seconds for the first of it, as JSON.

    `{"events": [{event, id, data}], "last_event_id": n, "done": bool}`; ask again with
    `after=last_event_id` until done.
    """
    cursor = _Cursor(run, dialect, after)
    found = await _stored(cursor, run)
    if not found and not cursor.ended and run.status in LIVE and wait_s > 0:
        found = await _first(cursor, run, wait_s)
    last = max((frame.id for frame in found if frame.id is not None), default=max(after, 0))
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
