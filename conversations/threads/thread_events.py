"""Events of all runs of a thread, read backward through the thread (seed 003 §7.5)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from uuid import UUID

from config import sql
from conversations import events
from conversations.events import RunEvent
from conversations.threads.branches import OWN_BRANCH

_RUN: Final = """
SELECT thread_id, owner_id, thread_seq FROM conversations_run
WHERE id = %s AND (stored OR finished_at IS NULL)
"""
_BATCH: Final = """
SELECT first_seq, events::text FROM conversations_eventbatch
WHERE run_id = %s AND first_seq <= %s AND last_seq >= %s
"""
_ASKED: Final = """
SELECT request->'event', (SELECT left(content, 1000) FROM conversations_message
    WHERE run_id = run.id AND role = 'user' ORDER BY seq DESC LIMIT 1)
FROM conversations_run run WHERE id = %s
"""
_RUNS: Final = f"""
SELECT run.id, run.request->'event'->>'event_type' FROM conversations_run run
WHERE run.thread_id = %(thread_id)s AND run.owner_id = %(owner_id)s
    AND (run.thread_seq, run.id) <= (%(thread_seq)s, %(run_id)s) AND (run.stored OR run.id = %(run_id)s)
    AND {OWN_BRANCH}
ORDER BY run.thread_seq DESC, run.id DESC LIMIT %(limit)s
"""
_BATCHES: Final = """
SELECT first_seq, events::text FROM conversations_eventbatch
WHERE run_id = %s AND first_seq < %s ORDER BY first_seq DESC LIMIT 500
"""


class RunPlace(NamedTuple):
    """A run's place: its thread, its owner and its number in the thread."""

    thread_id: UUID
    owner_id: UUID
    thread_seq: int


async def fetch_run_place(run_id: UUID) -> RunPlace | None:
    """Return the run's place; None if there is no run, or if it ended and was not to be stored."""
    row = await sql.one(_RUN, (run_id,))
    return RunPlace(*row) if row else None


async def fetch_event(run_id: UUID, seq: int) -> RunEvent | None:
    """Return the run's event with this number."""
    batch = await sql.one(_BATCH, (run_id, seq, seq))
    found = events.decode(batch[0], batch[1]) if batch else []
    return next((event for event in found if event.seq == seq), None)


async def fetch_events_before(run_id: UUID, seq: int) -> list[RunEvent]:
    """Return the run's events before this number, newest first, of at most 500 batches."""
    batches = await sql.every(_BATCHES, (run_id, seq))
    return [
        event
        for first_seq, body in batches
        for event in reversed(events.decode(first_seq, body))
        if event.seq < seq
    ]


async def list_runs_back_from(
    run_id: UUID, place: RunPlace, *, limit: int
) -> list[tuple[UUID, str | None]]:
    """Return the branch's runs from this one back, and the type of the event that started each."""
    return await sql.every(_RUNS, place._asdict() | {"run_id": run_id, "limit": limit})


async def fetch_start(run_id: UUID) -> tuple[Any, str | None]:
    """Return the event that the run's request names, and the beginning of its user's last message."""
    return await sql.one(_ASKED, (run_id,)) or (None, None)
