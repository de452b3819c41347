"""The event log: the truth about what happened in a run (DESIGN §6).

`Writer` appends. All runs of a process share one: events that gather while a write is in flight go out
together as one statement, one row per run, so a lone event is written at once and a loaded process
writes few rows. The statement takes a batch only if the run's fence is still the writer's, and the
primary key `(run_id, first_seq)` decides between two overlapping statements.
Facts that only introduce others wait a moment for them, so that the first word of an answer finds the
writer free. After a write of many runs their next words wait a little, so that they gather:
PostgreSQL, Redis and the readers' sockets are used less often, and who reads a model reads at the end of
that time (`Writer.rest`) what has come until then. A run does not wait if it has a first
word or a fact that is not a word, or if a caller drains its log: it is written alone.
Notifications are sent only after the commit, so nobody ever sees an event that could be lost.

`read` gives a run's batches; `conversations.runs.end_sql` writes the last one, with the events that are
unwritten by then: a short answer needs no statement of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import structlog
from psycopg import AsyncConnection, OperationalError
from psycopg import Error as DatabaseError
from psycopg_pool import PoolTimeout

from config import database, sql
from conversations import events
from conversations.events import Fact, RunEvent
from conversations.log.announcements import announce
from conversations.log.batches import Batch, make_batch
from conversations.log.deltas import Deltas

log = structlog.get_logger(__name__)

PAGE: Final = 200
MOST_EVENTS: Final = 1_000
"""Of one row: who reads it decodes and encodes them in one go, and others have their turn after it."""
LONG: Final = 4 * 1024
"""After a batch of so many characters others on the loop have their turn."""
LARGE: Final = 64 * 1024
"""What is larger is decoded, folded and encoded on a thread."""
_RETRY_S: Final = 0.2
_MOST_WITH_END: Final = 256
_MOMENT_S: Final = 0.005
_REST_S: Final = 0.04
_REST_PER_RUN_S: Final = 0.0008
_MANY: Final = 16  # runs of a write, after which their readers rest too
_SCENERY: Final = (
    events.StageStarted,
    events.StageCompleted,
    events.StateUpdated,
    events.ToolCallStarted,
    events.ToolCallCompleted,
    events.ModelRouted,
    events.ModelCompleted,
)
OUTAGE: Final = (OperationalError, PoolTimeout, OSError)


# --- reading ------------------------------------------------------------------------------------

_READ: Final = """
SELECT first_seq, last_seq, events::text FROM conversations_eventbatch
WHERE run_id = %s AND last_seq > %s ORDER BY first_seq LIMIT %s
"""


async def read(run_id: UUID, *, after: int = 0) -> AsyncGenerator[Batch]:
    """Yield the run's stored batches that hold events past `after`, in order, one page at a time.

    Other tasks on the loop run after each long page, so a long log delays nobody.
    """
    async for page in _pages(run_id, after=after):
        for batch in page:
            yield batch
            if len(batch.body) > LONG:
                await asyncio.sleep(0)


async def read_joined(run_id: UUID) -> list[RunEvent]:
    """Return all stored events of a run as `events.decode_joined` decodes them: enough to fold the run.

    A large page is decoded on an operating-system thread, and no connection is held meanwhile.
    """
    joined = list[RunEvent]()
    async for page in _pages(run_id, after=0):
        if sum(len(batch.body) for batch in page) > LARGE:
            joined += await asyncio.to_thread(_decode_page, page)
        else:
            joined += _decode_page(page)
    return joined


def _decode_page(page: list[Batch]) -> list[RunEvent]:
    return [event for batch in page for event in events.decode_joined(batch.first_seq, batch.body)]


async def _pages(run_id: UUID, *, after: int) -> AsyncGenerator[list[Batch]]:
    while True:
        page = [Batch(run_id, *row) for row in await sql.every(_READ, (run_id, after, PAGE))]
        yield page
        if len(page) < PAGE:
            return
        after = page[-1].last_seq


_ENDS: Final = """
SELECT run_id, max(last_seq) FROM conversations_eventbatch WHERE run_id = ANY(%s) GROUP BY run_id
"""


async def fetch_last_seqs(run_ids: Sequence[UUID]) -> dict[UUID, int]:
    """Return the number of the last event in each run's log, by one statement for all of them."""
    return dict(await sql.every(_ENDS, (list(run_ids),)))


# --- appending ----------------------------------------------------------------------------------


class LeaseLost(Exception):
    """Another process has taken the run over; nothing more can be written for it here."""


@dataclass(eq=False, slots=True)
class RunLog:
    """The append side of one claimed run; made by `Writer.open`."""

    run_id: UUID
    fence: int
    last_seq: int
    writer: Writer
    lost: bool = False
    pending: list[RunEvent] = field(default_factory=list)
    in_flight: bool = False
    has_words: bool = False
    is_scheduled: bool = False
    _written: asyncio.Event | None = None
    """Made when somebody waits for a write: it would be 700 bytes of every run."""

    def append(self, fact: Fact) -> RunEvent:
        """Number and date the fact and schedule its write. Raise LeaseLost once that is known."""
        if self.lost:
            raise LeaseLost
        self.last_seq += 1
        event = RunEvent(self.last_seq, events.now_ms(), fact)
        self.pending.append(event)
        if isinstance(fact, events.DELTAS):
            self._wake_for_words()
        elif isinstance(fact, _SCENERY):
            self.writer.wake_soon(self)
        else:
            self.writer.wake(self, hurry=True)
            self.has_words = True
        return event

    def append_deltas(self, deltas: Deltas) -> RunEvent:
        """Append each of the deltas, as `append` does, and return the event of the last."""
        if self.lost:
            raise LeaseLost
        appended = deltas.numbered(self.last_seq + 1, events.now_ms())
        self.last_seq += len(appended)
        self.pending += appended
        self._wake_for_words()
        return appended[-1]

    def _wake_for_words(self) -> None:
        if not self.has_words:
            self.writer.wake(self, hurry=True)
            self.has_words = True
        elif not self.is_scheduled:
            self.writer.wake(self, hurry=False)

    async def drain(self) -> None:
        """Wait until everything appended is committed. Raise LeaseLost if it cannot be."""
        while not self.lost and (self.pending or self.in_flight):
            if self.pending:
                self.writer.wake(self, hurry=True)
            await self._next_write()
        if self.lost:
            raise LeaseLost

    async def take_rest(self) -> list[RunEvent]:
        """Return the unwritten events, for the statement that ends the run; wait for those in flight.

        More than that statement should carry are written before. Raise LeaseLost if they cannot be.
        """
        if len(self.pending) > _MOST_WITH_END:
            await self.drain()
        while self.in_flight and not self.lost:
            await self._next_write()
        if self.lost:
            raise LeaseLost
        rest, self.pending = self.pending, []
        self.writer.forget(self)
        return rest

    async def make_room(self) -> None:
        """Wait while too many events are unwritten (the runner is faster than the database)."""
        if self.in_flight and len(self.pending) > 5_000:
            await self.drain()

    def take_batch(self) -> list[RunEvent]:
        """Return the events to write now, until `finish_write`."""
        taken, self.pending = self.pending[:MOST_EVENTS], self.pending[MOST_EVENTS:]
        self.in_flight, self.is_scheduled = True, False
        return taken

    def finish_write(self, *, lost: bool = False) -> None:
        self.in_flight = False
        self.lost = self.lost or lost
        if self._written is not None:
            self._written.set()
            self._written = None

    async def _next_write(self) -> None:
        if self._written is None:
            self._written = asyncio.Event()
        await self._written.wait()


_APPEND: Final = """
WITH draft AS (
    SELECT * FROM unnest(%b::uuid[], %b::int[], %b::int[], %b::int[], %b::text[])
        AS d(run_id, fence, first_seq, last_seq, events)
)
INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
SELECT draft.run_id, draft.first_seq, draft.last_seq, draft.events::json FROM draft
JOIN conversations_run run
    ON run.id = draft.run_id AND run.fence = draft.fence AND run.status = 'running'
ON CONFLICT DO NOTHING RETURNING run_id
"""
_ALREADY: Final = """
SELECT batch.run_id FROM unnest(%b::uuid[], %b::int[], %b::int[], %b::int[], %b::text[])
    AS draft(run_id, fence, first_seq, last_seq, events)
JOIN conversations_eventbatch batch ON batch.run_id = draft.run_id
    AND batch.first_seq = draft.first_seq AND batch.events::text = draft.events
"""


class Writer:
    """Appends the events of all runs of one process, one statement in flight at a time."""

    def __init__(self) -> None:
        self._waiting: dict[UUID, RunLog] = {}
        self._hurried: dict[UUID, RunLog] = {}
        self._wake = asyncio.Event()
        self._hurry = asyncio.Event()
        self._rested: asyncio.Event | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self, run_id: UUID, *, fence: int, last_seq: int) -> RunLog:
        """Return the append side of a run that this process has claimed."""
        return RunLog(run_id, fence, last_seq, self)

    def wake(self, run_log: RunLog, *, hurry: bool) -> None:
        """Write with the next batch; with `hurry` at once."""
        run_log.is_scheduled = True
        self._waiting[run_log.run_id] = run_log
        self._wake.set()
        if hurry:
            self._hurried[run_log.run_id] = run_log
            self._hurry.set()

    def wake_soon(self, run_log: RunLog) -> None:
        """Write with the next batch, or in a moment."""
        self._waiting[run_log.run_id] = run_log
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_MOMENT_S, self._wake.set)

    async def rest(self) -> None:
        """Wait while words gather: what is read at the end of it is written as soon, and for less."""
        if self._rested is not None:
            await self._rested.wait()

    def forget(self, run_log: RunLog) -> None:
        """Do not write this run, whose events somebody else has taken."""
        run_log.is_scheduled = False
        self._waiting.pop(run_log.run_id, None)
        self._hurried.pop(run_log.run_id, None)

    async def run(self) -> None:
        """Write for ever; retry during an outage of the database."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._cancel_timer()
            taken, self._waiting = self._waiting, {}
            self._take_hurried()
            if taken:
                await self._write(list(taken.values()))
                await self._wait_for_words(len(taken))

    async def _wait_for_words(self, runs: int) -> None:
        """Let words gather, longer as more runs stream: 0.8 ms per run, 40 ms at most."""
        until = asyncio.get_running_loop().time() + min(_REST_S, runs * _REST_PER_RUN_S)
        rested = asyncio.Event()
        self._rested = rested if runs >= _MANY else None
        try:
            while await self._is_hurried(until):
                hurried = self._take_hurried()
                for run_id in hurried:
                    del self._waiting[run_id]
                await self._write(list(hurried.values()))
        finally:
            self._rested = None
            rested.set()
        await asyncio.sleep(0)  # who waited for it appends now

    async def _is_hurried(self, until: float) -> bool:
        """Return whether a run cannot wait until then."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._hurry.wait()
        return self._hurry.is_set() and asyncio.get_running_loop().time() < until

    def _take_hurried(self) -> dict[UUID, RunLog]:
        hurried, self._hurried = self._hurried, {}
        self._hurry.clear()
        return hurried

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _write(self, logs: list[RunLog]) -> None:
        long = [run_log for run_log in logs if len(run_log.pending) > MOST_EVENTS]
        drafts = [make_batch(run_log.run_id, run_log.take_batch()) for run_log in logs]
        written = await self._write_until_answered(logs, drafts)
        for run_log in logs:
            run_log.finish_write(lost=run_log.run_id not in written)
        for run_log in long:
            if not run_log.lost:
                self.wake(run_log, hurry=True)
        announce([draft for draft in drafts if draft.run_id in written])

    async def _write_until_answered(self, logs: list[RunLog], drafts: list[Batch]) -> set[UUID]:
        """Write until the database answers. After a broken attempt, committed rows count as written."""
        columns = _columns(logs, drafts)
        repeated = False
        while True:
            try:
                async with database.connection() as connection:
                    written = await _execute(connection, _APPEND, columns)  # waits for an attempt
                    if repeated:
                        written |= await _execute(connection, _ALREADY, columns)
                    return written
            except (*OUTAGE, DatabaseError) as error:
                if isinstance(error, OUTAGE) and database.is_transient(error):
                    log.warning(
                        "append waits for the database", runs=len(logs), error=type(error).__name__
                    )
                    repeated = True
                    await asyncio.sleep(_RETRY_S)
                    continue
                if len(logs) == 1:
                    log.error("append refused", run_id=logs[0].run_id.hex, error=type(error).__name__)
                    return set()
                each = [
                    await self._write_until_answered([one], [draft])
                    for one, draft in zip(logs, drafts, strict=True)
                ]
                return set().union(*each)


def _columns(logs: list[RunLog], drafts: list[Batch]) -> tuple[list[Any], ...]:
    return (
        [draft.run_id for draft in drafts],
        [run_log.fence for run_log in logs],
        [draft.first_seq for draft in drafts],
        [draft.last_seq for draft in drafts],
        [draft.text for draft in drafts],
    )


async def _execute(
    connection: AsyncConnection[Any], statement: str, columns: tuple[list[Any], ...]
) -> set[UUID]:
    cursor = await connection.execute(statement, columns)
    return {run_id for (run_id,) in await cursor.fetchall()}
