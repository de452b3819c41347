"""Metrics in admin: one page of cards, charts and tables, each number a link to its runs.

It reads the rows that REST returns, so the numbers are the same. Without JavaScript the tables remain.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from django.contrib import admin, messages
from django.http import HttpRequest
from django.utils import timezone

from config import sql
from config.database import run_sync
from config.errors import InvalidRequest
from config.staff.staff_pages import ReportAdmin
from conversations.metrics import charts, detail_rows, rollup_reads
from conversations.metrics.dimensions import GROUPS
from conversations.metrics.query import BUCKETS, MetricsQuery, parse_query
from conversations.metrics.rollup_reads import Row
from conversations.metrics.rollups import zone
from conversations.models.rollups import Metrics

T = TypeVar("T")
_USERS: Final = 10
_AT_ONCE: Final = 3
_RANGES: Final = (("Today", 1), ("7 days", 7), ("30 days", 30), ("90 days", 90))
_OPTIONS: Final = """
SELECT DISTINCT {name} FROM conversations_runrollup
WHERE grain = 'day' AND bucket >= now() - interval '90 days' ORDER BY 1 LIMIT 200
"""
_VERSIONS: Final = """
SELECT version_id, name || ' v' || number FROM conversations_versionname
ORDER BY name, number DESC LIMIT 200
"""


@admin.register(Metrics)
class MetricsAdmin(ReportAdmin):
    """The list is the page; there is nothing to change."""

    title = "Metrics"
    template = "conversations/metrics.html"

    def figures(self, request: HttpRequest) -> dict[str, Any]:
        try:
            query = parse_query(request.GET.dict())
        except InvalidRequest as refusal:
            messages.error(request, refusal.detail)
            query = parse_query({})
        return run_sync(fetch_page(query)) | {"query": query, "form": _form(query)}


async def fetch_page(query: MetricsQuery) -> dict[str, Any]:
    """Return the values of the whole page; the slowest are read first."""
    room = asyncio.Semaphore(_AT_ONCE)

    async def read(what: Coroutine[Any, Any, T]) -> T:
        async with room:
            return await what

    ((users, _), versions, models), ((this, old), series, before, stages, tools) = await asyncio.gather(
        asyncio.gather(
            read(detail_rows.fetch_user_page(query, limit=_USERS, cursor=None)),
            read(rollup_reads.fetch_by_group(query, "prompt_version")),
            read(rollup_reads.fetch_by_group(query, "model")),
        ),
        asyncio.gather(
            read(rollup_reads.fetch_overview(replace(query, compares=True))),
            read(rollup_reads.fetch_timeseries(query)),
            read(_before(query)),
            read(rollup_reads.fetch_steps(query, "stage")),
            read(rollup_reads.fetch_steps(query, "tool")),
        ),
    )
    drawn = charts.make_charts_over_time(query, series, before)
    if query.group is not None:
        drawn = charts.make_charts_by_group(query, series)
    return {
        "cards": charts.make_cards(query, this, old),
        "charts": drawn,
        "models": [row | {"link": charts.runs_link(query, model__exact=row["model"])} for row in models],
        "versions": [_version(query, row) for row in versions],
        "stages": stages,
        "tools": tools,
        "users": [
            row | {"link": charts.runs_link(query, owner__id__exact=row["user_id"])} for row in users
        ],
        "errors": [
            (code, times, charts.runs_link(query, error_code__exact=code))
            for code, times in this["errors"].items()
        ],
    }


async def _before(query: MetricsQuery) -> list[Row]:
    if not query.compares or query.group is not None:
        return []
    return await rollup_reads.fetch_timeseries(query.previous_period)


def _version(query: MetricsQuery, row: Row) -> Row:
    link = charts.runs_link(query, prompt_version=row["prompt_version"])
    return row | {"link": link, "name": charts.version_name(row)}


def _form(query: MetricsQuery) -> dict[str, Any]:
    """Return the choices of the form, and the chosen ones."""
    last = (query.end - timedelta(microseconds=1)).astimezone(zone()).date()
    return {
        "first": query.begin.astimezone(zone()).date().isoformat(),
        "last": last.isoformat(),
        "buckets": BUCKETS,
        "groups": [(group, group.replace("_", " ")) for group in GROUPS],
        "filters": [
            (name, name, getattr(query, name) or "", _options(name, getattr(query, name) or ""))
            for name in ("model", "dialect", "runner")
        ]
        + [("prompt_version", "version", query.prompt_version or "", sql.fetch(_VERSIONS))],
        "ranges": [(title, _range(days)) for title, days in _RANGES],
    }


def _range(days: int) -> str:
    today = timezone.localdate()
    return urlencode({"from": (today - timedelta(days=days - 1)).isoformat(), "to": today.isoformat()})


def _options(name: str, chosen: str) -> list[tuple[str, str]]:
    found = {value for (value,) in sql.fetch(_OPTIONS.format(name=name))} | {chosen}
    return [(value, value) for value in sorted(found) if value]
