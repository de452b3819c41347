"""Reads of the rollups, each in one database snapshot, as rows (`measures` defines their columns)."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from psycopg import AsyncConnection, IsolationLevel

from config import database
from conversations.metrics import query_sql, rollup_sql
from conversations.metrics.dimensions import Group
from conversations.metrics.histograms import Columns, sent_sql, spreads_of
from conversations.metrics.measures import (
    Members,
    RunGroup,
    Spread,
    compare_groups,
    group_to_row,
    spread_fields,
)
from conversations.metrics.query import MetricsQuery, bucket_starts
from conversations.metrics.rollups import zone

Row = dict[str, Any]
Key = tuple[Any, ...]

_FRACTIONS: Final = ("cost_usd", "speed")
_SUMS: Final = ", ".join(
    f"sum({name})::{'float8' if name in _FRACTIONS else 'bigint'} AS {name}"
    for name in rollup_sql.RUN_MEASURES
)
ZEROS: Final = dict.fromkeys(rollup_sql.RUN_MEASURES, 0)
_VERSIONS: Final = "CROSS JOIN LATERAL unnest(prompt_versions) version(prompt_version)"


async def fetch_overview(query: MetricsQuery) -> list[Row]:
    """Return one row; with `compare=previous` also the row of the previous period."""
    async with open_snapshot() as connection:
        rows = [{"period": "this"} | await _fetch_totals(connection, query)]
        if query.compares:
            rows.append({"period": "previous"} | await _fetch_totals(connection, query.previous_period))
    return rows


async def fetch_timeseries(query: MetricsQuery) -> list[Row]:
    """Return one row per bucket, also without runs; with `group_by` one per bucket and used group."""
    keys = ("bucket",) if query.group is None else ("bucket", query.group)
    async with open_snapshot() as connection:
        groups = await _fetch_groups(connection, query, keys)
        names = await _fetch_version_names(connection) if query.group == "prompt_version" else {}
    return await asyncio.to_thread(_series, query, groups, names)


def _series(query: MetricsQuery, groups: dict[Key, RunGroup], names: dict[int, Row]) -> list[Row]:
    if query.group is None:
        nothing = RunGroup(ZEROS, members=Members(0, 0))
        groups = {(start,): groups.get((start,), nothing) for start in bucket_starts(query)}
    here = zone()
    return [
        {"bucket": key[0].astimezone(here)}
        | _group_columns(query.group, key[1:], names)
        | group_to_row(groups[key])
        for key in sorted(groups, key=lambda key: (key[0], str(key[1:])))
    ]


async def fetch_by_group(query: MetricsQuery, group: Group) -> list[Row]:
    """Return one row per model, prompt version, dialect or runner, the most used first.

    A run counts for the version of each of its prompts: `agent_system` and `agent_tools`.
    """
    async with open_snapshot() as connection:
        groups = await _fetch_groups(connection, query, (group,))
        names = await _fetch_version_names(connection) if group == "prompt_version" else {}
    order = sorted(groups, key=lambda key: (-groups[key].sums["runs"], str(key)))
    return [_group_columns(group, key, names) | group_to_row(groups[key]) for key in order]


async def compare_versions(query: MetricsQuery, first: int, second: int) -> Row:
    """Return an A/B comparison of two prompt versions: the differences of the second, with intervals."""
    async with open_snapshot() as connection:
        groups = await _fetch_groups(connection, query, ("prompt_version",))
    nothing = RunGroup(ZEROS)
    a, b = groups.get((first,), nothing), groups.get((second,), nothing)
    return {"a": first, "b": second} | compare_groups(a, b)


async def fetch_steps(query: MetricsQuery, kind: str) -> list[Row]:
    """Return one row per stage or tool: calls, successes, latency."""
    cells = f"({query_sql.step_cells(replace(query, bucket='day'), kind)}) cells"
    arguments = query_sql.arguments(query)
    async with open_snapshot() as connection:
        sums = await _fetch_rows(
            connection,
            f"""SELECT name, sum(calls)::bigint, sum(succeeded)::bigint, sum(total_ms)::float8
            FROM {cells} GROUP BY name ORDER BY 2 DESC, 1""",
            arguments,
        )
        latencies = await _fetch_rows(connection, f"SELECT name, {_LATENCIES} FROM {cells}", arguments)
    spreads = await asyncio.to_thread(_spreads, latencies)
    return [
        _step(kind, name, calls, succeeded, spreads[name,][0], total)
        for name, calls, succeeded, total in sums
    ]


def _step(kind: str, name: str, calls: int, succeeded: int, spread: Spread, total: float) -> Row:
    counts: Row = {kind: name, "calls": calls}
    if kind == "tool":
        counts |= {
            "succeeded": succeeded,
            "failed": calls - succeeded,
            "success_rate": round(succeeded / calls, 4),
        }
    return counts | spread_fields("latency_ms", spread, total)


# Memory to hash and not to sort on disk; a plan that knows the range, which a generic one does not, and
# may read a whole table.
_PLANNED: Final = """
SELECT set_config('work_mem', '64MB', true), set_config('plan_cache_mode', 'force_custom_plan', true),
    set_config('enable_seqscan', 'on', true)
"""


@asynccontextmanager
async def open_snapshot() -> AsyncIterator[AsyncConnection[Any]]:
    """Yield an analysts' connection on which all statements see the same moment."""
    async with database.connection("analytics") as connection:
        await connection.set_isolation_level(IsolationLevel.REPEATABLE_READ)
        try:
            async with connection.transaction():
                await connection.execute(_PLANNED)
                yield connection
        finally:
            await connection.set_isolation_level(None)


async def _fetch_rows(
    connection: AsyncConnection[Any], statement: str, arguments: query_sql.Arguments
) -> list[Key]:
    cursor = await connection.execute(statement, arguments, prepare=False, binary=True)
    return await cursor.fetchall()


async def _fetch_totals(connection: AsyncConnection[Any], query: MetricsQuery) -> Row:
    groups = await _fetch_groups(connection, query, ())
    found = groups.get((), RunGroup(ZEROS, members=Members(0, 0)))
    return {"from": query.begin, "to": query.end} | group_to_row(found)


async def _fetch_groups(
    connection: AsyncConnection[Any], query: MetricsQuery, keys: Sequence[str]
) -> dict[Key, RunGroup]:
    """Return the numbers of each group that has runs."""
    query = query if "bucket" in keys else replace(query, bucket="day")
    arguments = query_sql.arguments(query)
    cells = f"({query_sql.run_cells(query, _group(keys))}) cells"
    over = _Grouping(keys, "bucket", cells)
    sums = await _fetch_rows(
        connection, f"SELECT {over.named}, {_SUMS} {over.source} GROUP BY {over.keys}", arguments
    )
    latencies = await _fetch_rows(
        connection, f"SELECT {over.named}, {_LATENCIES} {over.source}", arguments
    )
    codes = await _fetch_rows(
        connection,
        f"""SELECT {over.named}, code, sum(times::bigint)::bigint {over.source}
        CROSS JOIN LATERAL jsonb_each_text(errors) part(code, times) GROUP BY {over.keys}, code""",
        arguments,
    )
    members = await _fetch_members(connection, query, keys)
    spreads = await asyncio.to_thread(_spreads, latencies)
    errors: defaultdict[Key, dict[str, int]] = defaultdict(dict)
    for *key, code, times in codes:
        errors[tuple(key)][code] = times
    return {
        key if keys else (): RunGroup(
            sums=dict(zip(rollup_sql.RUN_MEASURES, numbers, strict=True)),
            spreads=spreads.get(key, {}),
            members=members.get(key, Members()),
            errors=errors[key],
        )
        for key, numbers in ((row[: over.width], row[over.width :]) for row in sums)
    }


_LATENCIES: Final = f"{sent_sql('slots')}, {sent_sql('counts')}"


def _spreads(rows: Sequence[Key]) -> dict[Key, dict[int, Spread]]:
    """Return the latencies per group, from rows of (keys, slots, counts); call it off the event loop."""
    columns: defaultdict[Key, list[Columns]] = defaultdict(list)
    for *key, slots, counts in rows:
        columns[tuple(key)].append((slots, counts))
    return {
        key: {what: Spread(*spread) for what, spread in spreads_of(some).items()}
        for key, some in columns.items()
    }


def _group(keys: Sequence[str]) -> str | None:
    return next((key for key in keys if key != "bucket"), None)


class _Grouping:
    """The SQL of a grouping: the columns to select, their source, and the columns to group by."""

    def __init__(self, keys: Sequence[str], moment: str, cells: str) -> None:
        bucket = f"date_trunc(%(bucket)s::text, {moment}, %(zone)s::text)"
        expressions = [bucket if key == "bucket" else key for key in keys] or ["0"]
        self.width = len(expressions)
        self.named = ", ".join(f"{one} AS k{place}" for place, one in enumerate(expressions))
        self.keys = ", ".join(f"k{place}" for place in range(self.width))
        self.source = f"FROM {cells} {_VERSIONS if 'prompt_version' in keys else ''}"


_HOURLY_MEMBERS: Final = timedelta(days=2)


async def _fetch_members(
    connection: AsyncConnection[Any], query: MetricsQuery, keys: Sequence[str]
) -> dict[Key, Members]:
    """Return the numbers of users and threads; none by hour for over two days, which would read runs."""
    if query.bucket == "hour" and query.end - query.begin > _HOURLY_MEMBERS:
        return {}
    by_run = query.bucket == "hour" or query.user is not None
    groups = _members_by_run(query, keys) if by_run else _members_of_sets(query, keys)
    found = await _fetch_rows(connection, groups, query_sql.arguments(query))
    return {tuple(key): Members(users, threads) for *key, users, threads in found}


def _members_by_run(query: MetricsQuery, keys: Sequence[str]) -> str:
    over = _Grouping(keys, "at", f"({query_sql.members_by_run(query)}) members")
    return f"""
    SELECT {over.keys}, count(DISTINCT owner_id), count(DISTINCT thread_id)
    FROM (SELECT {over.named}, owner_id, thread_id {over.source}) base GROUP BY {over.keys}"""


def _members_of_sets(query: MetricsQuery, keys: Sequence[str]) -> str:
    over = _Grouping(keys, "at", f"({query_sql.member_sets(query, _group(keys))}) members")
    return f"""
    SELECT {over.keys}, coalesce(sum(bit_count(bits)) FILTER (WHERE kind = 'user'), 0)::bigint,
        coalesce(sum(bit_count(bits)) FILTER (WHERE kind = 'conversation'), 0)::bigint
    FROM (SELECT {over.named}, kind, block, bit_or(bits) AS bits {over.source}
        GROUP BY {over.keys}, kind, block) joined
    GROUP BY {over.keys}"""


_NAMES: Final = "SELECT version_id, kind, name, number FROM conversations_versionname"


async def _fetch_version_names(connection: AsyncConnection[Any]) -> dict[int, Row]:
    """Return the readable names of the prompt versions."""
    rows = await _fetch_rows(connection, _NAMES, {})
    return {
        version_id: {"kind": kind, "prompt": name, "version": number}
        for version_id, kind, name, number in rows
    }


_UNNAMED: Final = {"kind": None, "prompt": None, "version": None}


def _group_columns(group: Group | None, key: Key, names: dict[int, Row]) -> Row:
    """Return the columns that name the group."""
    if group is None:
        return {}
    if group != "prompt_version":
        return {group: key[0]}
    return {group: key[0]} | names.get(key[0], _UNNAMED)
