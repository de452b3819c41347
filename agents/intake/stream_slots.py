"""The limits of open streams per user and per conversation (specs/text-run.md §2).

A stream holds a slot: in this process, and among the shared ones if there are several processes. The
slot is taken in one round trip when the stream opens, renewed for all streams together, and given back
when the stream ends. Slots of a dead process expire. While the others cannot be asked, each process
counts its own streams and nobody waits (P11).

SSE and WebSockets hold slots; a long-poll does not, because it ends by itself within a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from itertools import count
from os import getpid
from socket import gethostname
from time import time
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

from django.conf import settings

from config.coordination import notifications, shared_slots
from config.coordination.shared_slots import Limits, Taken
from config.errors import TooManyRequests
from config.http.slow_readers import Leaving
from config.process import cancellation
from conversations.metrics.exposition import OF_THIS_PROCESS

T = TypeVar("T")
GROUP: Final = "streams"
RENEW_S: Final = 10
_UNUSED_S: Final = 10
_RETRY_USER_S: Final = 30
_RETRY_CONVERSATION_S: Final = 10
_me: Final = f"{gethostname()}:{getpid()}:{uuid4().hex[:6]}"
_numbers: Final = count(1)


class StreamSlot:
    """One stream's place; `hold_during` holds it while the stream is sent."""

    def __init__(self, user_id: UUID, thread_id: UUID) -> None:
        self.user_id = user_id
        self.thread_id = thread_id
        # sorts by age within a conversation, and differs between processes
        self.name = f"{thread_id.hex}:{int(time() * 1000):013x}:{_me}:{next(_numbers)}"
        self._on_unused: Leaving | None = None
        self._is_released = False
        self._ended = False
        self._task: asyncio.Task[Any] | None = None
        self._unused = asyncio.get_running_loop().call_later(_UNUSED_S, self.release)

    async def hold_during(self, stream: AsyncGenerator[T]) -> AsyncGenerator[T]:
        """Yield the stream's pieces, holding the place for the running task; then give it back.

        After `end`, which cancels the task, stop without an error.
        """
        if self.was_ended():
            return
        self._unused.cancel()
        self._on_unused = None
        self._task = asyncio.current_task()
        try:
            async with aclosing(stream) as pieces:
                async for piece in pieces:
                    yield piece
        except asyncio.CancelledError:
            if not self.was_ended():
                raise
            if (task := asyncio.current_task()) is not None:
                task.uncancel()
        finally:
            self._task = None
            self.release()

    @contextmanager
    def release_on_error(self) -> Iterator[None]:
        """Give the place back if the block, which prepares the stream, fails."""
        try:
            yield
        except BaseException:
            self.release()
            raise

    def end(self) -> None:
        """End the stream: its reader may come back with Last-Event-ID."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()
        self.release()

    def was_ended(self) -> bool:
        """Return whether somebody has ended it, rather than the stream itself or its reader."""
        return self._ended

    def release(self) -> None:
        """Give the place back; a second call does nothing."""
        self._unused.cancel()
        self._is_released = True
        _streams.drop(self)
        abandoned, self._on_unused = self._on_unused, None
        if abandoned is not None:
            cancellation.run_detached(abandoned())

    def if_unused(self, leaving: Leaving) -> None:
        """Await this if the place is given back before its stream has begun; now, if it already was."""
        if self._is_released:
            cancellation.run_detached(leaving())
        else:
            self._on_unused = leaving


class OpenSlots:
    """The slots of this process."""

    def __init__(self) -> None:
        self._slots: dict[str, StreamSlot] = {}
        self._by_user: dict[UUID, dict[str, StreamSlot]] = {}
        self._to_release: list[StreamSlot] = []
        self._releasing: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._slots)

    def add(self, slot: StreamSlot) -> None:
        self._slots[slot.name] = slot
        self._by_user.setdefault(slot.user_id, {})[slot.name] = slot

    def drop(self, slot: StreamSlot) -> None:
        if self._slots.pop(slot.name, None) is None:
            return
        del self._by_user[slot.user_id][slot.name]
        if not self._by_user[slot.user_id]:
            del self._by_user[slot.user_id]
        if _is_shared():
            self._to_release.append(slot)
            if self._releasing is None or self._releasing.done():
                self._releasing = asyncio.get_running_loop().create_task(self._release())

    async def _release(self) -> None:
        while self._to_release:
            some, self._to_release = self._to_release[:500], self._to_release[500:]
            await shared_slots.release(some)

    async def released(self) -> None:
        """Return when the others know of all places that were given back."""
        if self._releasing is not None:
            await asyncio.wait([self._releasing])

    def of_user(self, user_id: UUID) -> list[StreamSlot]:
        return list(self._by_user.get(user_id, {}).values())

    def get(self, name: str) -> StreamSlot | None:
        return self._slots.get(name)

    def take(self, slot: StreamSlot, *, may_replace: bool) -> Taken:
        """Return what all processes would decide, by the streams of this one alone.

        Only its owner reads a conversation, so its streams are among the user's.
        """
        mine, replaced = self._by_user.get(slot.user_id, {}), ""
        here = [one.name for one in mine.values() if one.thread_id == slot.thread_id]
        for what, limit, used in (
            ("user", settings.STREAMS_PER_USER, len(mine)),
            ("conversation", settings.STREAMS_PER_CONVERSATION, len(here)),
        ):
            if limit and used - bool(replaced) >= limit:
                if not (may_replace and here):
                    return Taken(what, "")
                replaced = min(here)
        return Taken("", replaced)

    def all(self) -> list[StreamSlot]:
        return list(self._slots.values())


_streams: Final = OpenSlots()
OF_THIS_PROCESS["parley_streams_open"] = ("Open streams of this process", _streams.__len__)


async def admit(user_id: UUID, thread_id: UUID | None, *, resumed: bool = False) -> StreamSlot:
    """Return a place for one more stream; raise TooManyRequests (`SSE_CONCURRENCY_LIMIT_EXCEEDED`).

    If all places are taken, a resumed stream replaces the caller's oldest stream of the conversation:
    most likely that is the one whose loss made the client come back. A conversation that does not exist
    yet (None) has no other streams. A place that nobody holds within ten seconds is given back by
    itself.
    """
    slot = StreamSlot(user_id, thread_id or uuid4())
    with slot.release_on_error():
        full, replaced = await _take(slot, may_replace=resumed)
        if full:
            raise _refusal(full)
    _streams.add(slot)
    if replaced:
        _end(replaced)
    return slot


async def force_disconnect(user_id: UUID) -> int:
    """End the user's streams in every process; return how many there were, as far as is known."""
    here = len(_streams.of_user(user_id))
    known = await shared_slots.count_of_user(user_id) if _is_shared() else None
    end_local(user_id)
    notifications.notify(GROUP, {"end_user": user_id.bytes})
    return max(known or 0, here)


def end_local(user_id: UUID) -> None:
    """End the user's streams in this process."""
    for slot in _streams.of_user(user_id):
        slot.end()


async def obey_for_ever() -> None:
    """End streams at the request of other processes."""
    await notifications.listen(GROUP, _obey)


def _obey(message: notifications.Message) -> None:
    match message:
        case {"end_user": bytes(user_id)}:
            end_local(UUID(bytes=user_id))
        case {"end": str(name)} if slot := _streams.get(name):
            slot.end()


async def renew_for_ever() -> None:
    """Renew this process's slots, all in one exchange, also those that the others have forgotten.

    Once cancelled it waits for those just given back: the others would count them until they expire.
    """
    try:
        while True:
            await asyncio.sleep(RENEW_S)
            if _is_shared():
                await renew()
    finally:
        await _streams.released()


async def renew() -> None:
    """Renew the slots once."""
    if slots := _streams.all():
        await shared_slots.renew(slots)


async def _take(slot: StreamSlot, *, may_replace: bool) -> Taken:
    if not _is_limited():
        return Taken("", "")
    limits = Limits(settings.STREAMS_PER_USER, settings.STREAMS_PER_CONVERSATION)
    taken = await shared_slots.take(slot, limits, may_replace=may_replace)
    return taken or _streams.take(slot, may_replace=may_replace)


def _end(name: str) -> None:
    """End a stream that another one replaced, in whichever process it is."""
    if (slot := _streams.get(name)) is not None:
        slot.end()
    else:
        notifications.notify(GROUP, {"end": name})


def _refusal(full: str) -> TooManyRequests:
    is_user = full == "user"
    return TooManyRequests(
        "Too many streams are open: close one first.",
        code="SSE_CONCURRENCY_LIMIT_EXCEEDED",
        retry_after=_RETRY_USER_S if is_user else _RETRY_CONVERSATION_S,
        scope=full,
        limit=settings.STREAMS_PER_USER if is_user else settings.STREAMS_PER_CONVERSATION,
    )


def _is_limited() -> bool:
    return bool(settings.STREAMS_PER_USER or settings.STREAMS_PER_CONVERSATION)


def _is_shared() -> bool:
    return settings.COORDINATION != "memory" and _is_limited()
