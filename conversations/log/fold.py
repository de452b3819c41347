"""Fold the logs of ended runs: many small batches become one (DESIGN §6).

The events stay the same, each with its seq and time; only the rows that hold them change. A reader
in the middle of the log gets a batch that begins before its place and takes `batch.after(seq)`.

A statement that began while the run was still running could append to it even now: its snapshot is
old, and the rows whose keys would have conflicted are gone. So a run is folded only once every
transaction is younger than the run's end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
import structlog
from django.conf import settings
from psycopg import AsyncConnection

from config import database
from conversations import events
from conversations.log import event_log
from conversations.log.batches import Batch, make_batch

logger = structlog.get_logger(__name__)

AT_ONCE: Final = 25
MOST_EVENTS: Final = event_log.MOST_EVENTS
MOST_BYTES: Final = 256 * 1024  # a reader of a batch decodes and encodes it in one go
_PAGE: Final = 2_000

ENDED_BEFORE: Final = """finished_at < least(
    clock_timestamp() - make_interval(secs => %s),
    (SELECT min(xact_start) FROM pg_stat_activity
        WHERE datname = current_database() AND backend_type = 'client backend'
        AND pid <> pg_backend_pid())
)"""
"""That a run ended some seconds ago, and before any transaction of now began."""
_DUE: Final = f"""
SELECT id FROM conversations_run WHERE stored AND NOT folded AND {ENDED_BEFORE}
ORDER BY finished_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
"""
_THESE: Final = """
SELECT id FROM conversations_run WHERE id = ANY(%s) AND finished_at IS NOT NULL AND NOT folded AND stored
FOR NO KEY UPDATE SKIP LOCKED
"""
_FOLDED: Final = "UPDATE conversations_run SET folded = true WHERE id = ANY(%s)"


async def fold_due() -> int:
    """Fold up to AT_ONCE runs that ended over FOLD_AFTER_S ago. Return their number."""
    async with database.connection() as connection, connection.transaction():
        cursor = await connection.execute(_DUE, (settings.FOLD_AFTER_S, AT_ONCE))
        return await _fold(connection, [run_id for (run_id,) in await cursor.fetchall()])


async def fold_runs(run_ids: Sequence[UUID]) -> int:
    """Fold these runs now, whenever they ended. Return the number that had ended and were not folded."""
    async with database.connection() as connection, connection.transaction():
        cursor = await connection.execute(_THESE, (list(run_ids),))
        return await _fold(connection, [run_id for (run_id,) in await cursor.fetchall()])


_BATCHES: Final = """
SELECT run_id, first_seq, last_seq, events::text FROM conversations_eventbatch
WHERE run_id = ANY(%s) AND (run_id, first_seq) > (%s, %s) ORDER BY run_id, first_seq LIMIT %s
"""
_DELETE: Final = """
DELETE FROM conversations_eventbatch batch
USING unnest(%(run_ids)s::uuid[], %(firsts)s::int[], %(lasts)s::int[])
    AS new(run_id, first_seq, last_seq)
WHERE batch.run_id = ANY(%(run_ids)s) AND batch.run_id = new.run_id
    AND batch.first_seq BETWEEN new.first_seq AND new.last_seq
"""
_INSERT: Final = """
INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
SELECT new.run_id, new.first_seq, new.last_seq, new.events::json
FROM unnest(%(run_ids)s::uuid[], %(firsts)s::int[], %(lasts)s::int[], %(events)b::text[])
    AS new(run_id, first_seq, last_seq, events)
"""


async def _fold(connection: AsyncConnection[Any], run_ids: list[UUID]) -> int:
    """Fold the runs, whose rows are locked, in the caller's transaction."""
    if not run_ids:
        return 0
    place, rest, more = (UUID(int=0), 0), list[Batch](), True
    while more:
        cursor = await connection.execute(_BATCHES, (run_ids, *place, _PAGE))
        page = [Batch(*row) for row in await cursor.fetchall()]
        groups = list(_groups([*rest, *page]))
        more = len(page) == _PAGE
        rest = groups.pop() if more else []
        if page:
            place = (page[-1].run_id, page[-1].first_seq)
        await _replace(connection, await asyncio.to_thread(_join_groups, groups))
    await connection.execute(_FOLDED, (run_ids,))
    return len(run_ids)


def _groups(batches: Iterable[Batch]) -> Iterator[list[Batch]]:
    """Return consecutive batches of one run that fit into one batch."""
    group, size = list[Batch](), 0
    for batch in batches:
        if group and not (_follows(batch, group) and size + len(batch.body) <= MOST_BYTES):
            yield group
            group, size = [], 0
        group.append(batch)
        size += len(batch.body)
    if group:
        yield group


def _follows(batch: Batch, group: list[Batch]) -> bool:
    return (
        batch.run_id == group[0].run_id
        and batch.first_seq == group[-1].last_seq + 1
        and batch.last_seq - group[0].first_seq < MOST_EVENTS
    )


def _join_groups(groups: list[list[Batch]]) -> list[Batch]:
    """Return one batch for each group of several; leave a group that cannot be read as it is."""
    joined = []
    for group in groups:
        if len(group) == 1:
            continue
        try:
            joined.append(_join(group))
        except (msgspec.MsgspecError, ValueError) as error:
            logger.error("batches left unfolded", run_id=group[0].run_id.hex, error=type(error).__name__)
    return joined


def _join(group: list[Batch]) -> Batch:
    """Return the group as one batch. Raise ValueError unless it gives the same events again.

    A release that runs beside the next one leaves what it does not know wholly as it is.
    """
    run_events = [event for batch in group for event in batch.events]
    batch = make_batch(group[0].run_id, run_events)
    if batch.last_seq != group[-1].last_seq or batch.events != run_events:
        raise ValueError("the folded batch differs")
    if not all(keeps_all(batch) for batch in group):
        raise ValueError("a later release wrote it")
    return batch


def keeps_all(batch: Batch) -> bool:
    """Return whether the batch's events say all that it says.

    They do not if a later release wrote a member that this one does not know.
    """
    again = events.encode(batch.events).decode()
    return again == batch.text or msgspec.json.decode(again) == msgspec.json.decode(batch.text)


async def _replace(connection: AsyncConnection[Any], batches: list[Batch]) -> None:
    """Write each joined batch in place of its rows."""
    if not batches:
        return
    columns = {
        "run_ids": [batch.run_id for batch in batches],
        "firsts": [batch.first_seq for batch in batches],
        "lasts": [batch.last_seq for batch in batches],
        "events": [batch.text for batch in batches],
    }
    await connection.execute(_DELETE, columns)
    await connection.execute(_INSERT, columns)
