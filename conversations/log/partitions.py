"""The event log's partitions: one per week, created before it begins, dropped whole when it is old.

The default partition takes rows that no week covers, so an append never needs any of this. A change
that locks the table waits at most `_PATIENCE` for the lock and retries, so nobody waits longer.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import re
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, LiteralString
from uuid import UUID

import structlog
from psycopg import AsyncConnection, sql
from psycopg.errors import CheckViolation, InvalidObjectDefinition, LockNotAvailable

from config import database
from conversations.identifiers import lowest_uuid7

logger = structlog.get_logger(__name__)

TABLE: Final = "conversations_eventbatch"
DEFAULT: Final = f"{TABLE}_default"
AHEAD: Final = 4
_LOCK: Final = 0x5041_5254
_PATIENCE: Final = "30ms"
_TRIES: Final = 40
_SCANNED_UNDER_LOCK: Final = 32 * 1024 * 1024
_warned: Final[set[str]] = set()


@dataclass(frozen=True)
class Partition:
    """A range of run ids, `lower` included and `upper` excluded."""

    name: str
    lower: UUID
    upper: UUID


def weekly_partitions(now: datetime) -> list[Partition]:
    """Return the partitions of this week (from Monday, UTC) and of the next AHEAD ones."""
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    monday = today - timedelta(days=today.weekday())
    starts = [monday + timedelta(weeks=n) for n in range(AHEAD + 2)]
    return [
        Partition(f"{TABLE}_{start:%Y%m%d}", lowest_uuid7(start), lowest_uuid7(end))
        for start, end in itertools.pairwise(starts)
    ]


async def ensure_partitions(now: datetime) -> list[str]:
    """Create the missing partitions of this week and the next weeks. Return the names created.

    A week with rows in the default partition stays there, with a warning.
    """
    async with database.connection() as connection:
        return [
            week.name
            for week in await _list_missing(connection, now)
            if await _create_unless_occupied(connection, week)
        ]


async def list_partitions() -> list[Partition]:
    """Return the existing partitions, oldest first, without the default one."""
    async with database.connection() as connection:
        rows = await (await connection.execute(_PARTITIONS, (TABLE,))).fetchall()
    found = [Partition(name, *map(UUID, _QUOTED.findall(bounds))) for name, bounds in rows]
    return sorted(found, key=lambda one: one.lower)


async def drop_partition(partition: Partition) -> bool:
    """Drop a partition with all its events. Return False if it was in use all the time."""

    async def drop(connection: AsyncConnection[Any]) -> bool:
        await connection.execute(_with_name("DROP TABLE IF EXISTS {}", partition.name))
        return True

    async with database.connection() as connection:
        return await _retry_on_lock(connection, drop)


_PARTITIONS: Final = """
SELECT child.relname, pg_get_expr(child.relpartbound, child.oid)
FROM pg_inherits JOIN pg_class child ON child.oid = inhrelid
WHERE inhparent = to_regclass(%s) AND pg_get_expr(child.relpartbound, child.oid) <> 'DEFAULT'
"""
_QUOTED: Final = re.compile(r"'([^']+)'")
# Read from the catalogue: to_regclass caches a missing table from before the wait.
_MISSING: Final = """
SELECT name FROM unnest(%s::text[]) AS name
WHERE NOT EXISTS (SELECT FROM pg_class WHERE relname = name AND pg_table_is_visible(oid))
    AND to_regclass(%s) IS NOT NULL
"""
_OCCUPIED: Final = f"""
SELECT pg_relation_size('{DEFAULT}') > %s
    OR EXISTS (SELECT 1 FROM {DEFAULT} WHERE run_id >= %s AND run_id < %s)
"""


async def _list_missing(connection: AsyncConnection[Any], now: datetime) -> list[Partition]:
    wanted = weekly_partitions(now)
    cursor = await connection.execute(_MISSING, ([week.name for week in wanted], TABLE))
    names = {name for (name,) in await cursor.fetchall()}
    return [week for week in wanted if week.name in names]


async def _create_unless_occupied(connection: AsyncConnection[Any], week: Partition) -> bool:
    try:
        return await _retry_on_lock(connection, lambda connection: _create(connection, week))
    except (CheckViolation, InvalidObjectDefinition):  # rows arrived, or an operator's own partition
        _warn_once("a week's events stay in the default partition", week.name)
        return False


async def _create(connection: AsyncConnection[Any], week: Partition) -> bool:
    """Create the table separately, then attach it: that locks only the default partition."""
    cursor = await connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (_LOCK,))
    if await cursor.fetchone() != (True,):  # another process is creating them
        raise LockNotAvailable
    if not await (await connection.execute(_MISSING, ([week.name], TABLE))).fetchone():
        return False
    arguments = (_SCANNED_UNDER_LOCK, week.lower, week.upper)
    if await (await connection.execute(_OCCUPIED, arguments)).fetchone() == (True,):
        _warn_once("a week's events stay in the default partition", week.name)
        return False
    for statement in (
        "CREATE TABLE {name} (LIKE {table} INCLUDING ALL)",
        "ALTER TABLE {table} ATTACH PARTITION {name} FOR VALUES FROM ({lower}) TO ({upper})",
    ):
        await connection.execute(
            sql.SQL(statement).format(
                name=sql.Identifier(week.name),
                table=sql.Identifier(TABLE),
                lower=sql.Literal(str(week.lower)),
                upper=sql.Literal(str(week.upper)),
            )
        )
    return True


async def _retry_on_lock(
    connection: AsyncConnection[Any], change: Callable[[AsyncConnection[Any]], Awaitable[bool]]
) -> bool:
    """Make the change in a transaction of its own; retry while others hold the locks."""
    for _ in range(_TRIES):
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
                return await change(connection)
        except LockNotAvailable:
            await asyncio.sleep(random.uniform(0.02, 0.1))
    logger.warning("the event log's partitions are in use; trying again later")
    return False


def _warn_once(words: str, partition: str) -> None:
    if partition not in _warned:
        _warned.add(partition)
        logger.warning(words, partition=partition)


# --- packing ------------------------------------------------------------------------------------

_PACK_EVERY_S: Final = 600.0
_packed_at = -_PACK_EVERY_S
_SPARSE: Final = """
SELECT index.relname FROM pg_inherits
JOIN pg_class child ON child.oid = inhrelid
JOIN pg_index ON pg_index.indrelid = child.oid
JOIN pg_class index ON index.oid = indexrelid
WHERE inhparent = %s::regclass AND indisvalid AND pg_relation_size(index.oid) > greatest(
    %s::bigint, 4 * 45 * greatest(child.reltuples::bigint, pg_stat_get_live_tuples(child.oid)))
ORDER BY pg_relation_size(index.oid) DESC LIMIT 1
"""
_HALF_BUILT: Final = """
SELECT index.relname FROM pg_inherits
JOIN pg_index ON pg_index.indrelid = inhrelid
JOIN pg_class index ON index.oid = indexrelid
WHERE inhparent = %s::regclass AND NOT indisvalid AND index.relname ~ '_cc(new|old)[0-9]*$'
"""


async def rebuild_sparse_index(*, larger_than: int = 64 * 1024 * 1024) -> str | None:
    """Rebuild the emptiest large index of a partition, at most every ten minutes. Return its name.

    Folding leaves one index entry per run, and entries of later runs never use the same pages,
    so otherwise an index keeps the size it had before folding. Nobody is blocked by it.
    """
    global _packed_at
    if time.monotonic() - _packed_at < _PACK_EVERY_S:
        return None
    async with database.connection() as connection:
        found = await (await connection.execute(_SPARSE, (TABLE, larger_than))).fetchone()
    if found is None:
        return None
    _packed_at = time.monotonic()
    try:
        async with database.session() as own:
            return str(found[0]) if await _rebuild(own, found[0]) else None
    except database.UnusablePooler as reason:
        logger.warning("an index of the log stays large", index=found[0], reason=str(reason))
        return None


async def _rebuild(own: AsyncConnection[Any], index: str) -> bool:
    await own.execute("SET statement_timeout = 0")
    try:
        for (broken,) in await (await own.execute(_HALF_BUILT, (TABLE,))).fetchall():
            await own.execute(_with_name("DROP INDEX CONCURRENTLY IF EXISTS {}", broken))
        await own.execute(_with_name("REINDEX INDEX CONCURRENTLY {}", index))
    except LockNotAvailable:  # a long reader; the next attempt drops this index
        return False
    return True


def _with_name(statement: LiteralString, name: str) -> sql.Composed:
    return sql.SQL(statement).format(sql.Identifier(name))
