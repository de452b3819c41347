"""Follow a run's log: stored batches first, then live ones, to the last event (promise P4).

One `Hub` per event loop receives notifications and hands each batch to the readers of its run, so
readers need no query per event. For a run that is being accepted here the hub keeps what is said until
its first reader comes, who then needs no query at all. Because a notification may be lost, the hub also
reads from the database, once a second for all silent runs, where their logs end; a reader that missed
events reads them there. While notifications do get lost (Redis is down) it reads ten times as often.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from math import inf
from typing import Final
from uuid import UUID
from weakref import WeakKeyDictionary

import structlog

from config import database
from config.coordination import notifications
from conversations.log import announcements, event_log
from conversations.log.batches import Batch

logger = structlog.get_logger(__name__)

_CALM_S: Final = 1.0
_ALARMED_S: Final = 0.1
_SLOW: Final = 512
EXPECTED_S: Final = 10.0
_MOST_EXPECTED: Final = 1_000
_ROOM_EXPECTED: Final = 16 * 1024
"""Bytes that are kept of a run before its first reader comes; who comes later reads the log."""
_LONG: Final = 64  # events of a batch, after which other tasks on the loop run


class Follower:
    """One follower's place in the live stream; bounded, because the log holds the rest."""

    def __init__(self, room: float = inf) -> None:
        self.room = room
        self._batches: list[Batch] = []  # a deque would be 700 bytes of every stream
        self._has_news = False
        self._waiting: asyncio.Future[None] | None = None
        self._missed = False
        self.gone = False

    def push(self, batch: Batch) -> None:
        self.room -= len(batch.body)
        if len(self._batches) >= _SLOW or self.room < 0:
            self._batches.clear()
            self._missed = True
        if self.room >= 0:
            self._batches.append(batch)
        self._tell()

    def end(self) -> None:
        """End the stream: the run has been erased."""
        self.gone = True
        self._tell()

    def mark_missed(self) -> None:
        self._missed = True
        self._tell()

    async def wait(self, timeout_s: float) -> bool:
        """Return whether there is a batch to take; False after `timeout_s` of silence."""
        if not self._has_news:
            # A future and a timer cost half of an event and a timeout, and most pieces are waited for.
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = loop.call_later(timeout_s, self._wake)
            try:
                await self._waiting
            finally:
                timer.cancel()
                self._waiting = None
        return self._has_news

    def _tell(self) -> None:
        self._has_news = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def take(self) -> tuple[list[Batch], bool]:
        """Return the batches that arrived, and whether any was missed before or between them."""
        taken, missed = self._batches, self._missed
        self._batches = []
        self._missed = self._has_news = False
        return taken, missed


class Feed:
    """The readers of one run in this process."""

    def __init__(self) -> None:
        self.followers: set[Follower] = set()
        self.last_seq = 0
        self.heard_at = time.monotonic()

    def push(self, batch: Batch) -> None:
        self.last_seq = max(self.last_seq, batch.last_seq)
        self.heard_at = time.monotonic()
        for follower in self.followers:
            follower.push(batch)

    def mark_missed(self) -> None:
        """Let the readers read the log itself."""
        for follower in self.followers:
            follower.mark_missed()


class Hub:
    """All feeds of one event loop, and the two tasks that serve them."""

    def __init__(self) -> None:
        self._feeds: dict[UUID, Feed] = {}
        self._expected: dict[UUID, tuple[float, Follower]] = {}  # in the order of their times
        self._unwritten: set[UUID] = set()
        self._every_s = _CALM_S
        self._missed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        listening = notifications.listen(announcements.GROUP, self._receive)
        self._tasks = [loop.create_task(listening), loop.create_task(self._watch())]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def join(self, run_id: UUID, follower: Follower) -> None:
        self._feeds.setdefault(run_id, Feed()).followers.add(follower)

    def leave(self, run_id: UUID, follower: Follower) -> None:
        feed = self._feeds.get(run_id)
        if feed is not None:
            feed.followers.discard(follower)
            if not feed.followers:
                del self._feeds[run_id]

    def expect(self, run_id: UUID) -> None:
        """Keep the run's events, from its first on, for the reader that is likely to come at once.

        It is not in the database before `note_written`.
        """
        if len(self._expected) >= _MOST_EXPECTED:
            self.forget(next(iter(self._expected)))
        follower = Follower(_ROOM_EXPECTED)
        self.join(run_id, follower)
        self._expected[run_id] = time.monotonic() + EXPECTED_S, follower
        self._unwritten.add(run_id)

    def note_written(self, run_id: UUID) -> None:
        """Note that the run is committed: if it has no log later, it has been erased."""
        self._unwritten.discard(run_id)

    def forget(self, run_id: UUID) -> None:
        """Expect no reader any more."""
        self._unwritten.discard(run_id)
        if (follower := self.take_expected(run_id)) is not None:
            self.leave(run_id, follower)

    def take_expected(self, run_id: UUID) -> Follower | None:
        """Return the follower that has been kept for the run's first reader, if there is one."""
        if run_id not in self._expected:
            return None
        _, follower = self._expected.pop(run_id)
        follower.room = inf
        return follower

    def _forget_late(self) -> None:
        now = time.monotonic()
        for run_id in [one for one, (until, _) in self._expected.items() if until < now]:
            self.forget(run_id)

    def push(self, batch: Batch) -> None:
        """Give a committed batch to the readers of its run."""
        feed = self._feeds.get(batch.run_id)
        if feed is not None:
            self._every_s = _CALM_S
            feed.push(batch)

    def record_read(self, run_id: UUID, seq: int) -> None:
        """Record that a reader has read the log itself as far as `seq`."""
        feed = self._feeds.get(run_id)
        if feed is not None:
            feed.last_seq = max(feed.last_seq, seq)

    def _receive(self, message: notifications.Message) -> None:
        if "missed" in message:
            self._missed.set()
            return
        for batch in announcements.read_announcement(message):
            if batch.body:
                self.push(batch)
            elif (feed := self._feeds.get(batch.run_id)) is not None:
                feed.mark_missed()

    async def _watch(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._every_s):
                    await self._missed.wait()
            self._forget_late()
            try:
                await self._check_silent_runs()
            except Exception as error:  # a failed check is repeated; followers must not end for it
                database.log_failure(logger, "looking at the log failed", error)

    async def _check_silent_runs(self) -> None:
        """Read once for all silent runs where their logs end, and wake readers that missed events.

        After notifications may have been missed, no run counts as heard of. One that is still being
        written has no log yet: writing takes long while PostgreSQL, or this machine, stands still.
        """
        before = inf if self._missed.is_set() else time.monotonic() - self._every_s
        self._missed.clear()
        silent = [
            run_id
            for run_id, feed in self._feeds.items()
            if feed.heard_at < before and run_id not in self._unwritten
        ]
        if not silent:
            return
        ends = await event_log.fetch_last_seqs(silent)
        for run_id in silent:
            feed = self._feeds.get(run_id)
            if feed is None:
                continue
            if run_id not in ends:
                for follower in feed.followers:
                    follower.end()
            elif ends[run_id] > feed.last_seq:
                self._every_s = _ALARMED_S
                feed.mark_missed()


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """Return the running loop's hub, started on first use."""
    loop = asyncio.get_running_loop()
    found = _hubs.get(loop)
    if found is None:
        found = _hubs[loop] = Hub()
        found.start()
    return found


def started_hub() -> Hub | None:
    """Return the running loop's hub if this process serves readers."""
    return _hubs.get(asyncio.get_running_loop())


async def stop_hub() -> None:
    """Stop the running loop's hub."""
    found = _hubs.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.stop()


async def follow(
    run_id: UUID, *, after: int = 0, silence_s: float = 5.0, live: bool = True
) -> AsyncGenerator[Batch | None]:
    """Yield the run's batches past `after` until its last event; None after each `silence_s` of silence.

    A batch may begin at or before `after` (take `batch.after(seq)`); otherwise none is skipped or
    repeated. For a run that is not live, yield only the stored batches.
    """
    here, seen = hub(), after
    follower = here.take_expected(run_id) if live and not after else None
    missed = follower is None
    if follower is None:
        follower = Follower()
        here.join(run_id, follower)
    try:
        while True:
            if missed:
                async for batch in event_log.read(run_id, after=seen):
                    yield batch
                    seen = batch.last_seq
                    if batch.is_last:
                        return
                if not live:
                    return
                here.record_read(run_id, seen)
            if not await follower.wait(silence_s):
                yield None
            if follower.gone:
                return
            arrived, missed = follower.take()
            for batch in arrived:
                if batch.first_seq > seen + 1:
                    missed = True
                    break
                if batch.last_seq > seen:
                    yield batch
                    seen = batch.last_seq
                    if batch.is_last:
                        return
                    if batch.last_seq - batch.first_seq >= _LONG:
                        await asyncio.sleep(0)
    finally:
        here.leave(run_id, follower)
