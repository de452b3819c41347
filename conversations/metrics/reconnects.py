"""Counts of the readers that return to a run, at so little cost that streams are not slowed.

Each return is counted in memory; some seconds later the counts of a process are written together. A
process that dies loses its unwritten counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Final
from uuid import UUID

from config import sql

_MOST: Final = 100_000
_waiting: Counter[UUID] = Counter()

_WRITE: Final = """
WITH given AS (
    SELECT run.id, run.created_at, part.times
    FROM unnest(%s::uuid[], %s::int[]) part(run_id, times)
    JOIN conversations_run run ON run.id = part.run_id
), written AS (
    INSERT INTO conversations_reconnect (run_id, times) SELECT id, times FROM given
    ON CONFLICT (run_id) DO UPDATE SET times = conversations_reconnect.times + excluded.times
)
INSERT INTO conversations_stalehour (at)
SELECT DISTINCT date_trunc('hour', created_at, 'UTC') FROM given ORDER BY 1
ON CONFLICT (at) DO UPDATE SET marks = conversations_stalehour.marks + 1
"""


def count_reconnect(run_id: UUID) -> None:
    """Count a reader that has resumed this run."""
    if len(_waiting) < _MOST:
        _waiting[run_id] += 1


async def write_reconnects() -> int:
    """Write the reconnects. Return their number. If that fails, keep them for the next time."""
    taken = Counter(_waiting)
    _waiting.clear()
    if not taken:
        return 0
    try:
        await sql.change(_WRITE, (list(taken), list(taken.values())))
    except BaseException:
        _waiting.update(taken)
        raise
    return taken.total()
