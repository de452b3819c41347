"""The events of a thread's newest runs that reasoned; always the owner's own (P10)."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from uuid import UUID

from config import database
from conversations import events
from conversations.events import RunEvent

_RUNS: Final = 50
_CHARACTERS: Final = 2_000_000
_READ: Final = f"""
SELECT run_id, first_seq, body FROM (
    SELECT run.thread_seq, batch.run_id, batch.first_seq, batch.events::text AS body,
        sum(length(batch.events::text)) OVER (ORDER BY run.thread_seq DESC, run.id DESC) AS so_far
    FROM (
        SELECT id, thread_seq FROM conversations_run WHERE thread_id = %s AND owner_id = %s
        ORDER BY thread_seq DESC LIMIT {_RUNS}
    ) run JOIN conversations_eventbatch batch ON batch.run_id = run.id
    WHERE EXISTS (SELECT FROM conversations_eventbatch thought WHERE thought.run_id = run.id
        AND thought.events::text LIKE '%%"reasoning.delta%%')
) held WHERE so_far <= {_CHARACTERS} ORDER BY thread_seq, run_id, first_seq
"""


async def of_thread(thread_id: UUID, *, owner_id: UUID) -> dict[str, list[RunEvent]]:
    """Run (32 hex digits) → its events, for as many of the newest runs as are kept and not too long."""
    async with database.connection() as held:
        rows = await (await held.execute(_READ, (thread_id, owner_id))).fetchall()
    return await asyncio.to_thread(_decoded, rows) if rows else {}


def _decoded(rows: list[Any]) -> dict[str, list[RunEvent]]:
    found: dict[str, list[RunEvent]] = {}
    for run_id, first_seq, body in rows:
        found.setdefault(run_id.hex, []).extend(events.decode(first_seq, body))
    return found
