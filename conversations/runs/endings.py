"""Compose the end of a run, and write it once (DESIGN §7).

An ending is composed from a transcript, so it is the same whether the worker kept the transcript
or it was folded from the log after a crash. It closes every open item, and one statement writes it
under the run's fence, so of two processes that try to end a run one does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal
from uuid import UUID

import msgspec
import structlog
from psycopg import Error as DatabaseError

from config import database, sql
from conversations import events, usage
from conversations.events import Fact, RunEvent, Terminal
from conversations.identifiers import uuid7
from conversations.log import event_log
from conversations.log.announcements import announce
from conversations.log.batches import make_batch
from conversations.log.transcript import Transcript
from conversations.runs.end_sql import Ended, Ending, end_run, end_together

logger = structlog.get_logger(__name__)

Reason = Literal[
    "cancelled", "deadline_exceeded", "worker_lost", "worker_stopped", "quarantined", "queue_timeout"
]
_AT_ONCE: Final = 64
_CODE_LENGTH: Final = 64  # of the run's columns; the event in the log keeps the whole text
_NAME_LENGTH: Final = 200
FAILURES: Final[dict[Reason, events.RunFailed]] = {
    "cancelled": events.RunFailed("cancelled", "The run was cancelled."),
    "deadline_exceeded": events.RunFailed("deadline_exceeded", "The run took longer than its deadline."),
    "worker_lost": events.RunFailed(
        "worker_lost", "The worker was lost in the middle of the run.", retryable=True
    ),
    "worker_stopped": events.RunFailed(
        "worker_lost", "The worker was stopped in the middle of the run.", retryable=True
    ),
    "quarantined": events.RunFailed(
        "quarantined", "Two workers were lost while they executed the run, so no other one takes it."
    ),
    "queue_timeout": events.RunFailed(
        "queue_timeout", "No worker took the run in time.", retryable=True
    ),
}


def compose_ending(
    transcript: Transcript,
    terminal: Terminal,
    *,
    fence: int,
    after: int,
    unwritten: Sequence[RunEvent] = (),
    first: Sequence[Fact] = (),
    runner: str = "",
) -> Ending:
    """Return the ending of a run whose log ends at `after`, though the last of it may be `unwritten`.

    It contains the facts still to log (`first`), those that close open items, then `terminal`. The run's
    usage is the sum of its counted calls, also if it fails; else the usage that the runner reports.
    """
    calls = [*transcript.calls, *(fact for fact in first if isinstance(fact, events.ModelCompleted))]
    if isinstance(terminal, events.RunCompleted):
        terminal = _with_total_usage(terminal, calls) if calls else terminal
        calls = calls or _calls_from_usage(transcript.routed, terminal.usage)
    last = number_facts(after, [*first, *transcript.closing_facts(terminal, events.now_ms()), terminal])
    for event in last:
        transcript.feed(event)
    routed = transcript.routed
    return Ending(
        run_id=transcript.run_id,
        fence=fence,
        runner=runner,
        batch=make_batch(transcript.run_id, [*unwritten, *last]),
        status=transcript.status,
        provider=routed.provider[:_CODE_LENGTH] if routed else "",
        resolved_model=routed.model[:_NAME_LENGTH] if routed else "",
        endpoint_id=routed.endpoint_id if routed else None,
        usage=usage.sum_usage(calls),
        model_usage=msgspec.json.encode(usage.sum_by_model(calls)).decode(),
        first_token_at_ms=transcript.first_token_at_ms,
        messages=transcript.messages(),
        interrupts=transcript.interrupts(),
        state=transcript.state,
        **_outcome(terminal),
    )


def _outcome(terminal: Terminal) -> dict[str, str]:
    """Return the columns that say how the run ended."""
    if isinstance(terminal, events.RunFailed):
        code = terminal.code[:_CODE_LENGTH] or "unknown_error"
        return {"error_code": code, "error_message": terminal.message}
    return {"finish_reason": terminal.finish_reason[:_CODE_LENGTH]}


def _with_total_usage(
    terminal: events.RunCompleted, calls: Sequence[events.ModelCompleted]
) -> events.RunCompleted:
    """Return the terminal with the usage of all calls, and the last call's reason for its end."""
    upstream_reason = calls[-1].upstream_reason
    metadata = {"upstream_reason": upstream_reason} if upstream_reason else {}
    return msgspec.structs.replace(
        terminal, usage=usage.sum_usage(calls), metadata=metadata | terminal.metadata
    )


def _calls_from_usage(
    routed: events.ModelRouted | None, used: events.Usage
) -> list[events.ModelCompleted]:
    """Return the usage that a runner reports, as one call of the model that it was routed to."""
    if used == events.Usage():
        return []
    by = routed or events.ModelRouted("", "")
    return [events.ModelCompleted(by.provider, by.model, by.endpoint_id, used)]


async def write_ending(ending: Ending) -> Ended | None:
    """Write the ending until the database answers. Return None if no attempt of ours stands."""
    ids = [uuid7() for _ in ending.messages]
    repeated = False
    while True:
        try:
            ended = await _end_with_others(ending, ids)
            if ended is None and repeated and await _is_committed(ending):
                announce([ending.batch])
                ended = Ended(thread_waits=True)  # perhaps
            return ended
        except (*event_log.OUTAGE, DatabaseError) as error:
            if isinstance(error, event_log.OUTAGE) and database.is_transient(error):
                logger.warning("ending waits for the database", error=type(error).__name__)
                repeated = True
                await asyncio.sleep(0.2)
            elif ending.messages:
                logger.exception("ending refused; the run ends without its messages")
                ending, ids = replace(ending, messages=()), []
            else:
                raise


async def _end_with_others(ending: Ending, ids: Sequence[UUID]) -> Ended | None:
    """Write and announce the ending; a run is tried alone if others could not take it along."""
    texts = sum(len(message.content) + len(message.metadata) for message in ending.messages)
    if ending.state is None and len(ending.batch.body) + texts < event_log.LARGE:
        ended = await _together.call((ending, ids))
        if ended is not None:
            return ended
    async with database.connection() as connection:
        ended = await end_run(connection, ending, ids)
    if ended is not None:
        announce([ending.batch])
    return ended


async def _end_together(endings: list[tuple[Ending, Sequence[UUID]]]) -> list[Ended | None]:
    async with database.connection() as connection:
        ended = await end_together(connection, endings)
    announce([ending.batch for ending, _ in endings if ending.run_id in ended])
    return [ended.get(ending.run_id) for ending, _ in endings]


_together: Final = sql.Grouped(_end_together, most=_AT_ONCE)


def number_facts(last_seq: int, facts: Sequence[Fact]) -> list[RunEvent]:
    """Return the facts as the events that follow `last_seq`."""
    at = events.now_ms()
    return [RunEvent(seq, at, fact) for seq, fact in enumerate(facts, last_seq + 1)]


async def _is_committed(ending: Ending) -> bool:
    """Return whether an attempt with a lost answer had been committed."""
    before = ending.batch.first_seq - 1
    stored = [
        batch async for batch in event_log.read(ending.run_id, after=before)
    ]  # perhaps folded by now
    return [event for batch in stored for event in batch.after(before)] == ending.batch.events
