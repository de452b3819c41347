"""The SQL of the rows that answer a query: whole days from days, the hours at both ends from hours.

With `user`, cells are computed from that user's own runs (by the index `run_of_owner`) by the same
statement that makes the rollups, so the numbers are defined in the same way.
"""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

from conversations.metrics import rollup_sql
from conversations.metrics.dimensions import CELL, DIMENSIONS, Dimension
from conversations.metrics.query import MetricsQuery

Arguments = dict[str, Any]
_WHOLE: Final = "grain = '{}' AND bucket >= %(first)s AND bucket < %(last)s"
_EDGES: Final = """grain = '{}' AND (bucket >= %(begin)s AND bucket < least(%(first)s, %(end)s)
    OR bucket >= %(last)s AND bucket < %(end)s)"""
_HOURS: Final = "grain = '{}' AND bucket >= %(begin)s AND bucket < %(end)s"


def arguments(query: MetricsQuery) -> Arguments:
    """Return the arguments of all statements of this module."""
    first, last = query.first_day, max(query.last_day, query.first_day)
    return vars(query) | {"first": first, "last": last, "zone": settings.TIME_ZONE}


def run_cells(query: MetricsQuery, group: str | None = None) -> str:
    """Return the cells of `RunRollup`, with `group` and the filtered dimensions separate."""
    if query.user is None:
        names = _separate_columns(query, group)
        days, hours = rollup_sql.grain_for("day", names), rollup_sql.grain_for("hour", names)
        return _cells("conversations_runrollup", query, days=days, hours=hours)
    where = f"""run.owner_id = %(user)s AND run.created_at >= %(begin)s AND run.created_at < %(end)s
        {run_filters(query)}"""
    unit = "hour" if query.bucket == "hour" else "day"
    bucket = f"date_trunc('{unit}', source.created_at, %(zone)s::text)"
    return rollup_sql.run_cells(rollup_sql.measured_runs(where), bucket)


def step_cells(query: MetricsQuery, kind: str) -> str:
    """Return the cells of `StepRollup`, for stages or for tools."""
    if query.user is None:
        more = f"AND kind = '{kind}'"
        days = rollup_sql.grain_for("day", _separate_columns(query, None))
        return _cells("conversations_steprollup", query, more, days=days, hours="hour")
    made = rollup_sql.step_cells(
        "date_trunc('day', run.created_at, %(zone)s::text)",
        where=f"AND run.owner_id = %(user)s {run_filters(query)}",
    )
    return f"SELECT * FROM ({made}) made WHERE kind = '{kind}'"


def members(query: MetricsQuery) -> str:
    """Return the numbers of each thread per day, including days cut at both ends."""
    measures = ", ".join(rollup_sql.THREAD_MEASURES)
    whole = f"""
    SELECT day AS at, owner_id, thread_id, {_CELL}, {measures} FROM conversations_threadday
    WHERE day >= %(first)s AND day < %(last)s {_user_condition("owner_id", query)} {_filters(query)}"""
    if query.is_of_whole_days:
        return whole
    return f"{whole} UNION ALL {_runs_of(query, at=_DAY, reach=_CUT_OFF, more=_OF_A_RUN)}"


def members_by_run(query: MetricsQuery) -> str:
    """Return users, threads and times run by run: for a short range, or one user."""
    whole = "run.created_at >= %(begin)s AND run.created_at < %(end)s"
    return _runs_of(query, at="run.created_at", reach=whole)


def member_sets(query: MetricsQuery, group: str | None) -> str:
    """Return (at, kind, cell, block, bits) of the members of whole days and of cut days."""
    grain = rollup_sql.grain_for("day", _separate_columns(query, group))
    whole = f"""
    SELECT bucket AS at, kind, {_CELL}, block, bits FROM conversations_memberset
    WHERE {_WHOLE.format(grain)} {_filters(query)}"""
    if query.is_of_whole_days:
        return whole
    ends = rollup_sql.members_of(_runs_of(query, at=_DAY, reach=_CUT_OFF), "at")
    return f"{whole} UNION ALL SELECT * FROM ({ends}) ends"


def _runs_of(query: MetricsQuery, *, at: str, reach: str, more: str = "") -> str:
    owner = _user_condition("run.owner_id", query)
    return f"""
    SELECT {at} AS at, run.owner_id, run.thread_id, run.model,
        {rollup_sql.VERSIONS} AS prompt_versions, run.dialect, run.runner {more}
    FROM conversations_run run WHERE {reach} {owner} {run_filters(query)}"""


_CELL: Final = ", ".join(CELL)
_CUT_OFF: Final = """(run.created_at >= %(begin)s AND run.created_at < least(%(first)s, %(end)s)
        OR run.created_at >= %(last)s AND run.created_at < %(end)s)"""
_DAY: Final = "date_trunc('day', run.created_at, %(zone)s::text)"
_OF_A_RUN: Final = """, 1 AS runs, (run.status = 'completed')::int AS completed,
        (run.status = 'failed')::int AS failed, (run.status = 'cancelled')::int AS cancelled,
        run.input_tokens, run.output_tokens, run.cached_tokens,
        coalesce(run.cost_usd, 0) AS cost_usd"""


def _filtered(query: MetricsQuery) -> list[Dimension]:
    return [one for one in DIMENSIONS if getattr(query, one.name) is not None]


def _separate_columns(query: MetricsQuery, group: str | None) -> set[str]:
    """Return the columns of the dimensions that must stay separate."""
    kept = [one for one in DIMENSIONS if one.name == group]
    return {one.column for one in (*kept, *_filtered(query))}


def _cells(table: str, query: MetricsQuery, more: str = "", *, days: str, hours: str) -> str:
    filters = f"{_filters(query)} {more}"
    if query.bucket == "hour":
        return f"SELECT * FROM {table} WHERE {_HOURS.format(hours)} {filters}"
    whole = f"SELECT * FROM {table} WHERE {_WHOLE.format(days)} {filters}"
    if query.is_of_whole_days:
        return whole
    return f"{whole} UNION ALL SELECT * FROM {table} WHERE {_EDGES.format(hours)} {filters}"


def _user_condition(column: str, query: MetricsQuery) -> str:
    return f"AND {column} = %(user)s" if query.user else ""


def _filters(query: MetricsQuery) -> str:
    return " ".join(f"AND {one.condition}" for one in _filtered(query))


def run_filters(query: MetricsQuery) -> str:
    """Return the conditions of the filters on `conversations_run run`."""
    return " ".join(f"AND {one.run_condition}" for one in _filtered(query))
