"""Settle runs that nobody ends: their worker is gone, their time is over, or no worker took them.

A lost run goes back to the queue if it has no output yet (promise P8); otherwise it ends with
the reason. A second worker lost by the same run puts it into quarantine: it never gets a third one.

The log is read and folded before anything is locked, so its length delays nobody. The result is
then written in one short transaction, if the log still ends where the fold did. A settling that fails
waits longer each time, and the third time the run ends without its messages: its log keeps its
output, and its thread is free.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from time import monotonic
from typing import Any, Final, NamedTuple
from uuid import UUID

import structlog
from django.conf import settings
from psycopg import AsyncConnection
from psycopg.errors import DeadlockDetected, UniqueViolation

from config import database, sql
from conversations import events
from conversations.identifiers import uuid7
from conversations.log import event_log
from conversations.log.announcements import announce
from conversations.log.batches import Batch, make_batch
from conversations.log.transcript import Transcript, fold
from conversations.runs import endings
from conversations.runs.end_sql import Ending, end_run
from conversations.runs.endings import FAILURES, Reason

logger = structlog.get_logger(__name__)

_AT_ONCE: Final = 4  # connections of the pool; the rest serves other work
_TRIES: Final = 3
_LIMIT_S: Final = 15.0
_LONGEST_PAUSE_S: Final = 30.0
_PATIENCE: Final = 3


class Due(NamedTuple):
    """A run to settle; `lease` is the lease that lapsed."""

    run_id: UUID
    fence: int
    reason: Reason
    lease: datetime | None = None


class _Draft(NamedTuple):
    """The state of a run whose log ends at `last_seq`; without an ending it may run again."""

    transcript: Transcript
    last_seq: int
    ending: Ending | None


_MakeDraft = Callable[[Due], Awaitable[_Draft]]


_after_end: Final[list[Callable[[UUID], None]]] = []


def call_after_end(call: Callable[[UUID], None]) -> None:
    """Call this with the id of each run that is ended here, once it is written; it must not wait."""
    _after_end.append(call)


class _LogHasGrown(Exception):
    """The log has grown since it was folded."""


class Settler:
    """Settles runs for one process, and remembers which of them failed and how often."""

    def __init__(self) -> None:
        self._failures: dict[UUID, tuple[int, float]] = {}

    async def settle_all(self, runs: Iterable[Due]) -> None:
        """Settle many, a few at a time; one that fails is logged and does not stop the others."""
        room, runs = asyncio.Semaphore(_AT_ONCE), list(runs)
        due_now = {due.run_id for due in runs}
        self._failures = {key: failed for key, failed in self._failures.items() if key in due_now}

        async def settle_one(due: Due) -> None:
            async with room:
                await self._try(due)

        await asyncio.gather(*(settle_one(due) for due in runs if self._is_time(due.run_id)))

    def _is_time(self, run_id: UUID) -> bool:
        return monotonic() >= self._failures.get(run_id, (0, 0.0))[1]

    async def _try(self, due: Due) -> None:
        failures = self._failures.get(due.run_id, (0, 0.0))[0]
        work = settle if failures < _PATIENCE else end_without_messages
        try:
            async with asyncio.timeout(_LIMIT_S):
                await work(due)
        except Exception as error:  # whatever failed, the run is still there to be settled
            if isinstance(error, event_log.OUTAGE) and database.is_transient(error):
                logger.warning("settling waits for the database", run_id=due.run_id.hex)
                return
            self._record_failure(due, failures + 1)
        else:
            self._failures.pop(due.run_id, None)

    def _record_failure(self, due: Due, failures: int) -> None:
        pause_s = 0.0 if failures == _PATIENCE else min(_LONGEST_PAUSE_S, 0.5 * 2**failures)
        self._failures[due.run_id] = (failures, monotonic() + pause_s)
        logger.exception("settling failed", run_id=due.run_id.hex, reason=due.reason, failures=failures)


async def settle(due: Due) -> bool:
    """End the run, or return it to the queue.

    Return False if the run has a new holder or has ended meanwhile, if its lapsed lease has been
    renewed, and while another process is changing its row: a process that froze in the middle of that
    must not stop the others.
    """
    return await _write_draft(due, _draft_from_log)


async def end_without_messages(due: Due) -> bool:
    """End the run with its last event alone; its output stays only in the log. False as `settle`."""
    return await _write_draft(due, _draft_without_log)


async def _write_draft(due: Due, make_draft: _MakeDraft) -> bool:
    for _ in range(_TRIES):
        draft = await make_draft(due)
        try:
            async with database.connection() as connection, connection.transaction():
                written = await _write(connection, due, draft)
        except (UniqueViolation, DeadlockDetected):  # an append under way arrived first, or the same
            continue  # run is being posted again: look at that too
        except _LogHasGrown:
            if due.reason == "worker_lost":  # it is not lost: it writes
                return False
            due = await _fence_off(due)
            continue
        announce(written or [])
        if written and written[-1].is_last:
            for call in _after_end:
                call(due.run_id)
        return written is not None
    return False


async def _draft_from_log(due: Due) -> _Draft:
    """Return the draft folded from the whole log."""
    transcript = fold(due.run_id, await event_log.read_joined(due.run_id))
    last_seq = transcript.last_seq
    if due.reason in _MAY_RUN_AGAIN and not transcript.has_output:
        return _Draft(transcript, last_seq, None)
    return _Draft(transcript, last_seq, await asyncio.to_thread(_ending, due, transcript))


async def _draft_without_log(due: Due) -> _Draft:
    """Return the draft of a run whose log cannot be folded."""
    transcript = Transcript(due.run_id)
    transcript.last_seq = last_seq = (await event_log.fetch_last_seqs([due.run_id])).get(due.run_id, 0)
    return _Draft(transcript, last_seq, _ending(due, transcript))


def _ending(due: Due, transcript: Transcript) -> Ending:
    """Return the run's end, under the fence that its row will have."""
    return endings.compose_ending(
        transcript, FAILURES[due.reason], fence=due.fence + 1, after=transcript.last_seq
    )


_MAY_RUN_AGAIN: Final[frozenset[Reason]] = frozenset(("worker_lost", "worker_stopped"))
_TAKE_OVER: Final = """
UPDATE conversations_run SET fence = fence + 1, lease_until = NULL WHERE id = (
    SELECT id FROM conversations_run
    WHERE id = %(run_id)s AND fence = %(fence)s AND status IN ('queued', 'running')
    AND (%(lease)s::timestamptz IS NULL OR lease_until = %(lease)s)
    FOR NO KEY UPDATE SKIP LOCKED
) RETURNING losses, (
    SELECT max(last_seq) FROM conversations_eventbatch batch WHERE batch.run_id = conversations_run.id
)
"""
_FENCE_OFF: Final = """
UPDATE conversations_run SET fence = fence + 1
WHERE id = %s AND fence = %s AND status IN ('queued', 'running') RETURNING fence
"""
_GIVE_BACK: Final = """
UPDATE conversations_run SET status = 'queued', worker = '', losses = losses + %s WHERE id = %s
"""
_NOTE: Final = """
INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events) VALUES (%s, %s, %s, %s)
"""


async def _fence_off(due: Due) -> Due:
    """Return the same run to settle, after its worker has been kept from writing more."""
    row = await sql.one(_FENCE_OFF, (due.run_id, due.fence))
    return due._replace(fence=row[0]) if row else due


async def _write(connection: AsyncConnection[Any], due: Due, draft: _Draft) -> list[Batch] | None:
    """Write to the log. Return the events, maybe none; None if the run is not ours to settle."""
    seen = {"run_id": due.run_id, "fence": due.fence, "lease": due.lease}
    taken = await (await connection.execute(_TAKE_OVER, seen)).fetchone()
    if taken is None:
        return None
    losses, last_seq = taken
    if last_seq != draft.last_seq:
        raise _LogHasGrown
    if draft.ending is None:
        counts = due.reason == "worker_lost"
        if losses + counts < settings.RUN_ATTEMPTS:
            return await _give_back(connection, draft.transcript, losses=int(counts))
        due = due._replace(reason="quarantined" if losses else due.reason)
    ending = draft.ending or _ending(due, draft.transcript)
    await end_run(connection, ending, [uuid7() for _ in ending.messages])
    logger.info("run settled", run_id=due.run_id.hex, reason=due.reason)
    return [ending.batch]


async def _give_back(
    connection: AsyncConnection[Any], transcript: Transcript, *, losses: int
) -> list[Batch]:
    """Queue the run again; close in the log the items that its lost attempt had opened."""
    await connection.execute(_GIVE_BACK, (losses, transcript.run_id))
    lost = FAILURES["worker_lost"]
    closing = endings.number_facts(transcript.last_seq, transcript.closing_facts(lost, events.now_ms()))
    logger.info("run queued again", run_id=transcript.run_id.hex)
    if not closing:
        return []
    batch = make_batch(transcript.run_id, closing)
    await connection.execute(_NOTE, (batch.run_id, batch.first_seq, batch.last_seq, batch.text))
    return [batch]
