"""Rollups of stale time: hours are computed from runs, days from hours. One process at a time does it.

An hour is stale while it is young, while it has live runs, and after feedback, a reconnect or a deletion
(triggers mark it). Each day is a transaction of its own, so an interrupted round leaves whole days, and
the rest stale. Repeating a round gives the same result.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

from django.conf import settings
from psycopg import AsyncConnection

from config import database, sql
from conversations.metrics import rollup_sql
from conversations.metrics.dimensions import CELL
from conversations.metrics.rollup_sql import MEMBER_SETS, RUNS, STEPS

_LOCK: Final = 0x524F_4C4C
_HOUR: Final = timedelta(hours=1)
_STALE_AT_ONCE: Final = 2_000
_AT_LEAST: Final = 2  # days a round, for the newest alone may take all of its time, in every round
_IN_RANGE: Final = "run.created_at >= %(begin)s AND run.created_at < %(end)s"
_HOUR_OF: Final = "date_trunc('hour', {}created_at, %(zone)s::text)"


def _hour_statements() -> tuple[str, ...]:
    """Return the statements that compute the hours of a range."""
    runs = rollup_sql.run_cells(rollup_sql.measured_runs(_IN_RANGE), _HOUR_OF.format("source."))
    return (
        RUNS.replace(runs, "hour"),
        STEPS.replace(rollup_sql.step_cells(_HOUR_OF.format("run.")), "hour"),
        *(
            RUNS.replace(rollup_sql.merged_cells(RUNS, of="hour", kept=kept, into="bucket"), cut)
            for cut, kept in rollup_sql.HOUR_CUTS.items()
        ),
        rollup_sql.LEARN_NAMES,
    )


def _day_statements() -> tuple[str, ...]:
    """Return the statements that compute a day from its hours: in order, each from an earlier one."""
    return (
        *(table.replace(rollup_sql.merged_cells(table, of="hour"), "day") for table in (RUNS, STEPS)),
        *(
            table.replace(rollup_sql.merged_cells(table, of="day", kept=kept), cut)
            for table in (RUNS, STEPS)
            for cut, kept in rollup_sql.CUTS.items()
        ),
        rollup_sql.replace_rows(
            "conversations_threadday",
            rollup_sql.thread_days(rollup_sql.measured_runs(_IN_RANGE)),
            key=("day", "owner_id", "thread_id", *CELL),
            values=rollup_sql.THREAD_MEASURES,
            where="kept.day >= %(begin)s AND kept.day < %(end)s",
        ),
        *(rollup_sql.number_members(kind) for kind in rollup_sql.MEMBERS),
        MEMBER_SETS.replace(rollup_sql.member_sets(), "day"),
        *(
            MEMBER_SETS.replace(rollup_sql.merged_members(kept), cut)
            for cut, kept in rollup_sql.CUTS.items()
        ),
    )


@dataclass(frozen=True)
class RollUpResult:
    """The result of a round; `more` if stale hours are left."""

    days: int = 0
    more: bool = False


def zone() -> ZoneInfo:
    """Return the time zone of hours and days."""
    return ZoneInfo(settings.TIME_ZONE)


def start_of_day(day: date) -> datetime:
    """Return the beginning of a day in TIME_ZONE."""
    return datetime(day.year, day.month, day.day, tzinfo=zone())


async def roll_up(*, budget_s: float = 2.0) -> RollUpResult | None:
    """Roll up stale days, newest first, for about `budget_s` seconds; None if another process does it.

    Every round includes a day other than the newest, however long the newest takes or stays stale.
    """
    async with sql.advisory_lock(_LOCK) as acquired:
        if not acquired:
            return None
        async with database.connection() as connection:
            await _mark_young(connection)
            stale = dict(await (await connection.execute(_STALE, (_STALE_AT_ONCE,))).fetchall())
            until, days = time.monotonic() + budget_s, _group_by_day(stale)
            done: set[date] = set()
            for day in _order_days(list(days)):
                begin, end = _span_of(days[day])
                await roll_up_day(connection, day, begin=begin, end=end)
                done.add(day)
                if len(done) >= _AT_LEAST and time.monotonic() > until:
                    break
            await _unmark_stale(
                connection, {at: stale[at] for at in stale if done.issuperset(_days_of(at))}
            )
        return RollUpResult(len(done), more=len(done) < len(days) or len(stale) == _STALE_AT_ONCE)


async def roll_up_range(
    first: date, last: date, on_day_done: Callable[[date], None] = lambda _: None
) -> int:
    """Roll up every day from `first` to `last` again. Return their number. Wait for another process."""
    days = (last - first).days + 1
    for number in range(days):
        day = first + timedelta(days=number)
        begin, end = start_of_day(day), start_of_day(day + timedelta(days=1))
        async with sql.advisory_lock(_LOCK, wait=True), database.connection() as connection:
            stale = dict(await (await connection.execute(_STALE_WITHIN, (begin, end))).fetchall())
            await roll_up_day(connection, day, begin=begin, end=end)
            await _unmark_stale(connection, stale)
        on_day_done(day)
    if days > 1:
        await sql.change(f"ANALYZE {', '.join(_TABLES)}")  # autovacuum would come a minute later
    return days


async def fetch_first_day() -> date | None:
    """Return the day of the oldest run; None without runs."""
    ((first,),) = await sql.every("SELECT min(created_at) FROM conversations_run")
    return first.astimezone(zone()).date() if first else None


async def roll_up_day(
    connection: AsyncConnection[Any], day: date, *, begin: datetime, end: datetime
) -> None:
    """Compute the hours of [begin, end), which belong to this day, and then the day."""
    whole = {"begin": start_of_day(day), "end": start_of_day(day + timedelta(days=1))}
    async with connection.transaction():
        await connection.execute(_AT_LEISURE)
        for statement in _MAKE_HOURS:
            await connection.execute(
                statement, {"begin": begin, "end": end, "zone": settings.TIME_ZONE}, prepare=False
            )
        for statement in _MAKE_DAYS:
            await connection.execute(statement, whole, prepare=False)


_AT_LEISURE: Final = """
SELECT set_config('work_mem', '64MB', true), set_config('statement_timeout', '10min', true),
    set_config('plan_cache_mode', 'force_custom_plan', true), set_config('jit', 'off', true),
    set_config('enable_seqscan', 'on', true)
"""
_MAKE_HOURS, _MAKE_DAYS = _hour_statements(), _day_statements()


# --- what is stale ------------------------------------------------------------------------------

_SINCE: Final = """
WITH before AS (SELECT rolled_until, time_zone FROM conversations_metrics WHERE id = 1),
stored AS (
    INSERT INTO conversations_metrics (id, rolled_until, time_zone)
    VALUES (1, clock_timestamp(), %(zone)s)
    ON CONFLICT (id) DO UPDATE SET rolled_until = excluded.rolled_until, time_zone = excluded.time_zone)
SELECT rolled_until, time_zone = %(zone)s FROM before
"""
_MARK: Final = """
INSERT INTO conversations_stalehour (at) {hours}
ON CONFLICT (at) DO UPDATE SET marks = conversations_stalehour.marks + 1
"""
_MARK_YOUNG: Final = _MARK.format(
    hours="""SELECT generate_series(
        date_trunc('hour', %(since)s::timestamptz - interval '5 minutes', 'UTC'),
        clock_timestamp(), interval '1 hour')"""
)
_MARK_ALL: Final = _MARK.format(
    hours="""SELECT DISTINCT date_trunc('hour', created_at, 'UTC') FROM conversations_run
    UNION SELECT date_trunc('hour', clock_timestamp(), 'UTC')"""
)
_MARK_LIVE: Final = _MARK.format(
    hours="""SELECT DISTINCT date_trunc('hour', created_at, 'UTC') FROM conversations_run
    WHERE status IN ('queued', 'running')"""
)
_TABLES: Final = (
    "conversations_runrollup",
    "conversations_steprollup",
    "conversations_threadday",
    "conversations_memberset",
)


async def _mark_young(connection: AsyncConnection[Any]) -> None:
    """Mark the hours since the last round as stale; in the first round, or in another TIME_ZONE, all."""
    async with connection.transaction():
        row = await (await connection.execute(_SINCE, {"zone": settings.TIME_ZONE})).fetchone()
        since, same_zone = row or (None, True)
        if since and same_zone:
            await connection.execute(_MARK_YOUNG, {"since": since})
            return
        for table in () if same_zone else _TABLES:
            await connection.execute(f"DELETE FROM {table}")
        await connection.execute(_MARK_ALL)


async def mark_as_rolled_up() -> None:
    """Record that all time up to now is being rolled up, so that no round does it too.

    Except the hours of live runs, which will change.
    """
    async with database.connection() as connection, connection.transaction():
        await connection.execute(_SINCE, {"zone": settings.TIME_ZONE})
        await connection.execute(_MARK_LIVE)


_STALE: Final = "SELECT at, marks FROM conversations_stalehour ORDER BY at DESC LIMIT %s"
_STALE_WITHIN: Final = """
SELECT at, marks FROM conversations_stalehour
WHERE at >= %s AND at <= %s::timestamptz - interval '1 hour'
"""  # the hours that lie entirely in a range

# An hour that still had live runs when it was added up stays stale; so does one marked meanwhile.
_FORGET: Final = """
DELETE FROM conversations_stalehour stale USING unnest(%s::timestamptz[], %s::bigint[]) done(at, marks)
WHERE stale.at = done.at AND stale.marks = done.marks AND NOT EXISTS (
    SELECT FROM conversations_runrollup WHERE grain = 'hour' AND queued + running > 0
    AND bucket > stale.at - interval '1 hour' AND bucket < stale.at + interval '1 hour')
"""


async def _unmark_stale(connection: AsyncConnection[Any], done: dict[datetime, int]) -> None:
    await connection.execute(_FORGET, (list(done), list(done.values())))


def _group_by_day(stale: dict[datetime, int]) -> dict[date, list[datetime]]:
    """Return the stale hours of each day, newest day first."""
    found: dict[date, list[datetime]] = {}
    for at in stale:
        for day in _days_of(at):
            found.setdefault(day, []).append(at)
    return found


def _order_days(days: list[date]) -> list[date]:
    """Return the newest day, then a random other one, then the rest, newest first."""
    lot = random.sample(days[1:], k=min(1, len(days[1:])))
    return list(dict.fromkeys(days[:1] + lot + days))


def _days_of(at: datetime) -> list[date]:
    """Return the days of an hour of UTC: one, or two where TIME_ZONE is off by half an hour."""
    ends = at + _HOUR - timedelta(microseconds=1)
    return sorted({moment.astimezone(zone()).date() for moment in (at, ends)}, reverse=True)


def _span_of(hours: list[datetime]) -> tuple[datetime, datetime]:
    """Return the span of these hours, extended to whole hours of TIME_ZONE."""
    begin = min(hours).astimezone(zone()).replace(minute=0)
    end = (max(hours) + _HOUR).astimezone(zone())
    return begin, end if end.minute == 0 else end.replace(minute=0) + _HOUR
