"""Compose how a run ends, and write it once (DESIGN §7).

An ending is composed from a transcript, so it says the same whether the worker kept the transcript
or it was folded from the log after a crash. It closes what is open, and it is written by one
statement under the run's fence, so of two that try to end a run one does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

import msgspec
import structlog
from psycopg import Error as DatabaseError

from config import database
from conversations import events, log, usage
from conversations.ending import Ended, Ending, end
from conversations.events import Fact, RunEvent, Terminal
from conversations.identifiers import uuid7
from conversations.transcript import Transcript

logger = structlog.get_logger(__name__)

Reason = Literal[
    "cancelled", "deadline_exceeded", "worker_lost", "worker_stopped", "quarantined", "queue_timeout"
]
_CODE_LENGTH: Final = 64  # of the run's columns; the event in the log keeps the whole
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
    last = placed(after, [*first, *transcript.closing(terminal, events.now_ms()), terminal])
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
            if isinstance(error, log.OUTAGE) and database.passes(error):
                logger.warning("ending waits for the database", error=type(error).__name__)
                repeated = True
                await asyncio.sleep(0.2)
            elif ending.messages:
                logger.exception("ending refused; the run ends without its messages")
                ending = replace(ending, messages=())
            else:
                raise


def placed(last_seq: int, facts: Sequence[Fact]) -> list[RunEvent]:
    """The facts as the events that follow `last_seq`."""
    at = events.now_ms()
    return [RunEvent(seq, at, fact) for seq, fact in enumerate(facts, last_seq + 1)]


async def _stands(ending: Ending) -> bool:
    """Whether a try whose answer was lost had been committed."""
    before = ending.batch.first_seq - 1
    stored = [batch async for batch in log.read(ending.run_id, after=before)]  # perhaps folded by now
    return [event for batch in stored for event in batch.after(before)] == ending.batch.events
