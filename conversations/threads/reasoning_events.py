"""The events of a thread's newest runs that reasoned; always the owner's own (P10)."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from uuid import UUID

from config import sql
from conversations import events
from conversations.events import RunEvent
from conversations.threads.branches import IN_BRANCH, OF_BRANCH

_RUNS: Final = 50
_CHARACTERS: Final = 2_000_000
_READ: Final = """
SELECT run_id, first_seq, body FROM (
    SELECT run.thread_seq, batch.run_id, batch.first_seq, batch.events::text AS body,
        sum(length(batch.events::text)) OVER (ORDER BY run.thread_seq DESC, run.id DESC) AS so_far
    FROM (
        SELECT id, thread_seq FROM conversations_run run
        WHERE thread_id = %(thread_id)s AND owner_id = %(owner_id)s AND stored{of_branch}
        ORDER BY thread_seq DESC LIMIT %(runs)s
    ) run JOIN conversations_eventbatch batch ON batch.run_id = run.id
    WHERE EXISTS (SELECT FROM conversations_eventbatch thought WHERE thought.run_id = run.id
        AND thought.events::text LIKE '%%"reasoning.delta%%')
) held WHERE so_far <= %(characters)s ORDER BY thread_seq, run_id, first_seq
"""
_OF_THREAD: Final = _READ.format(of_branch="")
_OF_BRANCH: Final = OF_BRANCH + _READ.format(of_branch=f"\n        AND {IN_BRANCH}")


async def fetch_reasoning_events(
    thread_id: UUID, *, owner_id: UUID, branch: UUID | None = None
) -> dict[str, list[RunEvent]]:
    """Return run (32 hex digits) → its events, for the newest runs that are kept and not too long.

    With `branch` only of runs of the branch that ends with this run.
    """
    arguments: dict[str, Any] = {"thread_id": thread_id, "owner_id": owner_id, "branch": branch}
    arguments |= {"runs": _RUNS, "characters": _CHARACTERS}
    rows = await sql.every(_OF_BRANCH if branch else _OF_THREAD, arguments)
    return await asyncio.to_thread(_decode_rows, rows) if rows else {}


def _decode_rows(rows: list[Any]) -> dict[str, list[RunEvent]]:
    found: dict[str, list[RunEvent]] = {}
    for run_id, first_seq, body in rows:
        found.setdefault(run_id.hex, []).extend(events.decode(first_seq, body))
    return found
