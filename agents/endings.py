"""End runs, once each: the worker its own, anybody those whose worker is gone (DESIGN §7).

An ending is composed from a transcript, so it says the same whether the worker kept the transcript
or it was folded from the log after a crash. It closes what is open, and it is written by one
statement under the run's fence, so of two that try to end a run one does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec
import structlog
from django.conf import settings
from psycopg import AsyncConnection
from psycopg import Error as DatabaseError
from psycopg.errors import DeadlockDetected, UniqueViolation

from config import database
from conversations import events, log, usage
from conversations.ending import Ended, Ending, end
from conversations.events import Fact, RunEvent, Terminal
from conversations.identifiers import uuid7
from conversations.transcript import Transcript, fold

logger = structlog.get_logger(__name__)

Reason = Literal["cancelled", "deadline_exceeded", "worker_lost", "queue_timeout"]
_AT_ONCE: Final = 4  # connections of the pool; the rest is for what goes on
_CODE_LENGTH: Final = 64  # of the run's columns; the event in the log keeps the whole
_NAME_LENGTH: Final = 200
FAILURES: Final[dict[Reason, events.RunFailed]] = {
    "cancelled": events.RunFailed("cancelled", "The run was cancelled."),
    "deadline_exceeded": events.RunFailed("deadline_exceeded", "The run took longer than its deadline."),
    "worker_lost": events.RunFailed(
        "worker_lost", "The worker was lost in the middle of the run.", retryable=True
    ),
    "queue_timeout": events.RunFailed(
        "queue_timeout", "No worker took the run in time.", retryable=True
    ),
}


def compose(
    transcript: Transcript,
    terminal: Terminal,
    *,
    fence: int,
    after: int,
    first: Sequence[Fact] = (),
    runner: str = "",
) -> Ending:
    """The ending of a run whose log ends at `after`.

    It says what is still to be said (`first`), what closes the open things, then `terminal`. What
    was counted call by call is the run's usage, also of one that fails; else it is what the runner says.
    """
    calls = [*transcript.calls, *(fact for fact in first if isinstance(fact, events.ModelCompleted))]
    if isinstance(terminal, events.RunCompleted):
        terminal = _counted(terminal, calls) if calls else terminal
        calls = calls or _reported(transcript.routed, terminal.usage)
    last = _events(after, [*first, *transcript.closing(terminal, events.now_ms()), terminal])
    for event in last:
        transcript.feed(event)
    routed = transcript.routed
    ending = Ending(
        run_id=transcript.run_id,
        fence=fence,
        runner=runner,
        batch=log.batch_of(transcript.run_id, last),
        status=transcript.status,
        provider=routed.provider[:_CODE_LENGTH] if routed else "",
        resolved_model=routed.model[:_NAME_LENGTH] if routed else "",
        endpoint_id=routed.endpoint_id if routed else None,
        usage=usage.total(calls),
        model_usage=msgspec.json.encode(usage.by_model(calls)).decode(),
        first_token_at_ms=transcript.first_token_at_ms,
        messages=transcript.messages(),
        interrupts=transcript.interrupts(),
        state=transcript.state,
    )
    if isinstance(terminal, events.RunFailed):
        code = terminal.code[:_CODE_LENGTH] or "unknown_error"
        return replace(ending, error_code=code, error_message=terminal.message)
    return replace(ending, finish_reason=terminal.finish_reason[:_CODE_LENGTH])


def _counted(
    terminal: events.RunCompleted, calls: Sequence[events.ModelCompleted]
) -> events.RunCompleted:
    """The terminal with what all calls used, and the last one's own word for why it ended."""
    word = calls[-1].upstream_reason
    said = {"upstream_reason": word} if word else {}
    return msgspec.structs.replace(terminal, usage=usage.total(calls), metadata=said | terminal.metadata)


def _reported(routed: events.ModelRouted | None, used: events.Usage) -> list[events.ModelCompleted]:
    """What a runner says of its own use, as one call of the model that it was routed to."""
    if used == events.Usage():
        return []
    by = routed or events.ModelRouted("", "")
    return [events.ModelCompleted(by.provider, by.model, by.endpoint_id, used)]


async def insist(ending: Ending) -> Ended | None:
    """Write the ending until the database answers; None if neither this try nor an earlier stands."""
    ids = [uuid7() for _ in ending.messages]
    repeated = False
    while True:
        try:
            async with database.connection() as connection:
                ended = await end(connection, ending, ids)
            if ended is None and repeated and await _stands(ending):
                ended = Ended(thread_waits=True)  # perhaps
            if ended is not None:
                log.announce([ending.batch])
            return ended
        except (*log.OUTAGE, DatabaseError) as error:
            if isinstance(error, log.OUTAGE) and log.passes(error):
                logger.warning("ending waits for the database", error=type(error).__name__)
                repeated = True
                await asyncio.sleep(0.2)
            elif ending.messages:
                logger.exception("ending refused; the run ends without its messages")
                ending = replace(ending, messages=())
            else:
                raise


async def settle(run_id: UUID, reason: Reason, *, fence: int, lease: datetime | None = None) -> bool:
    """End, or give back, a run that nobody ends: its worker is dead or it never started.

    A lost run goes back to the queue if nothing of it was said yet (promise P8); otherwise it ends
    with the reason. False if the run has a new holder or has ended meanwhile, if it is lost by a
    `lease` that has been renewed, and while somebody else is changing its row: a process that froze in
    the middle of that must not stop the others.
    """
    for _ in range(3):
        try:
            async with database.connection() as connection, connection.transaction():
                written = await _settle(connection, run_id, reason, fence, lease)
        except (UniqueViolation, DeadlockDetected):  # an append under way arrived first, or the same
            continue  # run is being asked for again: look at that too
        log.announce(written or [])
        return written is not None
    return False


class Due(NamedTuple):
    """A run to settle, as `settle` wants it."""

    run_id: UUID
    fence: int
    reason: Reason
    lease: datetime | None = None


async def settle_all(runs: Iterable[Due]) -> None:
    """Settle many, a few at a time.

    One that cannot be written is logged; it must not keep the others unsettled.
    """
    room = asyncio.Semaphore(_AT_ONCE)

    async def settle_one(due: Due) -> None:
        async with room:
            try:
                await settle(due.run_id, due.reason, fence=due.fence, lease=due.lease)
            except DatabaseError:
                logger.exception("settling failed", run_id=due.run_id.hex, reason=due.reason)

    await asyncio.gather(*map(settle_one, runs))


_TAKE_OVER: Final = """
UPDATE conversations_run SET fence = fence + 1, lease_until = NULL WHERE id = (
    SELECT id FROM conversations_run
    WHERE id = %(run_id)s AND fence = %(fence)s AND status IN ('queued', 'running')
    AND (%(lease)s::timestamptz IS NULL OR lease_until = %(lease)s)
    FOR NO KEY UPDATE SKIP LOCKED
) RETURNING fence, attempt
"""
_GIVE_BACK: Final = "UPDATE conversations_run SET status = 'queued', worker = '' WHERE id = %s"
_NOTE: Final = """
INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events) VALUES (%s, %s, %s, %s)
"""


async def _settle(
    connection: AsyncConnection[Any], run_id: UUID, reason: Reason, fence: int, lease: datetime | None
) -> list[log.Batch] | None:
    """What was written to the log, which may be nothing; None if the run is not ours to settle."""
    seen = {"run_id": run_id, "fence": fence, "lease": lease}
    taken = await (await connection.execute(_TAKE_OVER, seen)).fetchone()
    if taken is None:
        return None
    transcript = fold(run_id, await log.read_events(connection, run_id))
    if reason == "worker_lost" and not transcript.said_anything and taken[1] < settings.RUN_ATTEMPTS:
        return await _give_back(connection, transcript)
    ending = compose(transcript, FAILURES[reason], fence=taken[0], after=transcript.last_seq)
    await end(connection, ending, [uuid7() for _ in ending.messages])
    logger.info("run settled", run_id=run_id.hex, reason=reason)
    return [ending.batch]


async def _give_back(connection: AsyncConnection[Any], transcript: Transcript) -> list[log.Batch]:
    """Queue the run again; what its lost attempt had opened is closed in the log."""
    await connection.execute(_GIVE_BACK, (transcript.run_id,))
    lost = FAILURES["worker_lost"]
    closing = _events(transcript.last_seq, transcript.closing(lost, events.now_ms()))
    logger.info("run queued again", run_id=transcript.run_id.hex)
    if not closing:
        return []
    batch = log.batch_of(transcript.run_id, closing)
    await connection.execute(_NOTE, (batch.run_id, batch.first_seq, batch.last_seq, batch.text))
    return [batch]


def _events(last_seq: int, facts: list[Fact]) -> list[RunEvent]:
    at = events.now_ms()
    return [RunEvent(seq, at, fact) for seq, fact in enumerate(facts, last_seq + 1)]


async def _stands(ending: Ending) -> bool:
    """Whether a try whose answer was lost had been committed."""
    before = ending.batch.first_seq - 1
    stored = [batch async for batch in log.read(ending.run_id, after=before)]  # perhaps folded by now
    return [event for batch in stored for event in batch.after(before)] == ending.batch.events
