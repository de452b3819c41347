"""The dashboard's charts, cards and links, made from the rows that REST returns.

Every number has a link to its runs: admin's list of runs with the same filters.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from conversations.metrics.histograms import SHARES
from conversations.metrics.query import MetricsQuery, end_of_bucket
from conversations.metrics.rollup_reads import Row
from conversations.metrics.rollups import zone

COLOURS: Final = ("#2563eb", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#0891b2", "#db2777", "#65a30d")
_FADED: Final = "#94a3b8"
_MOST_GROUPS: Final = 8
Values = Sequence[float | int | None]


@dataclass(frozen=True)
class Series:
    """One line, or one colour of the bars; a faded one shows the previous period."""

    name: str
    values: Values
    faded: bool = False


@dataclass(frozen=True)
class Chart:
    """Numbers by bucket, each with a link to its runs."""

    title: str
    unit: str
    labels: Sequence[str]
    links: Sequence[str]
    series: Sequence[Series]
    bars: bool = False
    stacked: bool = False
    note: str = ""

    @property
    def rows(self) -> Iterable[tuple[str, str, Values]]:
        """Return the label, the link and the values of each bucket."""
        columns = zip(*(one.values for one in self.series), strict=True)
        return zip(self.labels, self.links, columns, strict=True)

    @property
    def kind(self) -> str:
        return "bar" if self.bars else "line"

    @property
    def is_empty(self) -> bool:
        return not any(value for one in self.series for value in one.values)

    @property
    def data(self) -> str:
        """Return the chart as the bundled Chart.js takes it."""
        found = [self._dataset(place, one) for place, one in enumerate(self.series)]
        return json.dumps({"labels": list(self.labels), "datasets": found})

    def _dataset(self, place: int, one: Series) -> dict[str, Any]:
        colour = _FADED if one.faded else COLOURS[place % len(COLOURS)]
        drawn: dict[str, Any] = {
            "label": one.name,
            "data": [None if value is None else float(value) for value in one.values],
            "borderColor": colour,
            "backgroundColor": colour if self.bars and not one.faded else f"{colour}22",
            "borderWidth": 0 if self.bars and not one.faded else 2,
        }
        if one.faded:
            drawn |= {"type": "line", "borderDash": [5, 4], "stack": "before"}
        return drawn | {
            "pointRadius": 2 if len(self.labels) < 40 else 0,
            "tension": 0.25,
            "spanGaps": True,
        }

    @property
    def options(self) -> str:
        axis = {"stacked": self.stacked, "grid": {"display": False}}
        return json.dumps(
            {
                "animation": False,
                "maintainAspectRatio": False,
                "interaction": {"mode": "index", "intersect": False},
                "plugins": {
                    "legend": {
                        "display": len(self.series) > 1,
                        "position": "bottom",
                        "labels": {"boxWidth": 10, "boxHeight": 10, "usePointStyle": True},
                    }
                },
                "scales": {
                    "x": axis | {"ticks": {"maxTicksLimit": 8, "maxRotation": 0}},
                    "y": axis | {"beginAtZero": True, "grid": {}, "ticks": {"maxTicksLimit": 5}},
                },
            }
        )

    @property
    def links_json(self) -> str:
        return json.dumps(list(self.links))


@dataclass(frozen=True)
class Card:
    """One number, its change since the previous period, and a link to its runs."""

    title: str
    value: str
    change: str
    is_better: bool | None
    link: str


# --- links --------------------------------------------------------------------------------------


def runs_link(query: MetricsQuery, begin: datetime | None = None, **more: Any) -> str:
    """Return the address of admin's list of runs: the question's filters, a bucket's begin, and more."""
    since, until = query.begin, query.end
    if begin is not None:
        end = end_of_bucket(begin, query.bucket).astimezone(zone())
        since, until = max(since, begin), min(until, end)
    parameters: dict[str, Any] = {
        "created_at__gte": since.isoformat(),
        "created_at__lt": until.isoformat(),
        "model__exact": query.model,
        "dialect__exact": query.dialect,
        "runner__exact": query.runner,
        "prompt_version": query.prompt_version,
        "owner__id__exact": query.user,
    } | more
    kept = {name: value for name, value in parameters.items() if value is not None}
    return f"/admin/conversations/run/?{urlencode(kept)}"


# --- charts -------------------------------------------------------------------------------------


def make_charts_over_time(
    query: MetricsQuery, rows: Sequence[Row], before: Sequence[Row]
) -> list[Chart]:
    """Return the charts of a series without groups; `before` are the previous period's rows, or none."""
    labels = [_label(row["bucket"], query.bucket) for row in rows]
    links = [runs_link(query, row["bucket"]) for row in rows]

    def chart(
        title: str, unit: str, columns: dict[str, str], *, compared: str = "", **more: Any
    ) -> Chart:
        series = [Series(name, [row[column] for row in rows]) for name, column in columns.items()]
        if before and compared:
            old = [row[compared] for row in before[: len(rows)]]
            series.append(Series("before", old + [None] * (len(rows) - len(old)), faded=True))
        return Chart(title, unit, labels, links, series, **more)

    bars = {"bars": True, "stacked": True}
    spreads = [
        chart(title, "ms", _percentiles(name, SHARES), compared=f"{name}_p95")
        for title, name in _LATENCIES.items()
    ]
    return [
        chart("Runs by how they ended", "runs", _ENDS, compared="runs", **bars),
        *spreads,
        chart("Output speed", "tokens/s", _percentiles("tokens_per_s", ("p50", "p95"))),
        chart("Tokens", "tokens", _TOKENS, bars=True),
        chart("Cost", "USD", {"cost": "cost_usd"}, compared="cost_usd", **bars),
        chart("Active users and conversations", "", _ACTIVE, compared="active_users"),
        chart("Feedback score", "-1 to 1", _SCORES, note="with its 95 % interval"),
        chart("Reconnects and time-outs", "", {"reconnects": "reconnects", "timed out": "timed_out"}),
    ]


# of each chart its columns, by the names of the series
_LATENCIES: Final = {
    "Duration": "duration_ms",
    "Time to first token": "first_token_ms",
    "Queue wait": "queue_wait_ms",
}
_ENDS: Final = {name: name for name in ("completed", "cancelled", "live", "failed")}
_TOKENS: Final = {
    "input": "input_tokens",
    "output": "output_tokens",
    "of input cached": "cached_tokens",
}
_ACTIVE: Final = {"users": "active_users", "conversations": "conversations"}
_SCORES: Final = {
    "score": "feedback_score",
    "low": "feedback_score_low",
    "high": "feedback_score_high",
}


def make_charts_by_group(query: MetricsQuery, rows: Sequence[Row]) -> list[Chart]:
    """Return the charts of a series with groups: the eight most used ones, each a series."""
    begins = sorted({row["bucket"] for row in rows})
    labels = [_label(begin, query.bucket) for begin in begins]
    links = [runs_link(query, begin) for begin in begins]
    used: dict[str, int] = {}
    cells: dict[tuple[str, datetime], Row] = {}
    for row in rows:
        name = group_name(query, row)
        used[name] = used.get(name, 0) + row["runs"]
        cells[name, row["bucket"]] = row
    names = sorted(used, key=lambda name: -used[name])[:_MOST_GROUPS]

    def chart(title: str, unit: str, column: str, **more: Any) -> Chart:
        series = [
            Series(name, [cells.get((name, begin), {}).get(column) for begin in begins])
            for name in names
        ]
        return Chart(title, unit, labels, links, series, **more)

    return [
        chart("Runs", "runs", "runs", bars=True, stacked=True),
        chart("Success rate", "share", "success_rate"),
        chart("Duration, p95", "ms", "duration_ms_p95"),
        chart("Time to first token, p95", "ms", "first_token_ms_p95"),
        chart("Output speed, p50", "tokens/s", "tokens_per_s_p50"),
        chart("Output tokens", "tokens", "output_tokens", bars=True, stacked=True),
        chart("Cost", "USD", "cost_usd", bars=True, stacked=True),
        chart("Feedback score", "-1 to 1", "feedback_score"),
    ]


def group_name(query: MetricsQuery, row: Row) -> str:
    """Return the name of a row's group."""
    if query.group == "prompt_version":
        return version_name(row)
    return str(row[query.group or "model"]) or "unknown"


def version_name(row: Row) -> str:
    """Return `coach v3`, or the bare id of a version whose name no run has."""
    return (
        f"{row['prompt']} v{row['version']}" if row.get("prompt") else f"version {row['prompt_version']}"
    )


def _percentiles(name: str, shares: Iterable[str]) -> dict[str, str]:
    return {share: f"{name}_{share}" for share in shares}


def _label(at: datetime, bucket: str) -> str:
    form = {"hour": "%d %b %H:%M", "month": "%b %Y"}.get(bucket, "%d %b")
    return at.astimezone(zone()).strftime(form)


# --- cards --------------------------------------------------------------------------------------

_CARDS: Final = (  # title, column, unit, whether more is better
    ("Runs", "runs", "", None),
    ("Success rate", "success_rate", "%", True),
    ("Active users", "active_users", "", True),
    ("Conversations", "conversations", "", True),
    ("Turns a conversation", "turns_per_conversation", "", None),
    ("Duration p95", "duration_ms_p95", "ms", False),
    ("First token p50", "first_token_ms_p50", "ms", False),
    ("Queue wait p95", "queue_wait_ms_p95", "ms", False),
    ("Output tokens", "output_tokens", "", None),
    ("Cost", "cost_usd", "$", None),
    ("Feedback score", "feedback_score", "", True),
    ("Failed", "failed", "", False),
)


def make_cards(query: MetricsQuery, this: Row, before: Row) -> list[Card]:
    """Return the numbers of the whole range beside those of the previous period."""
    failed = runs_link(query, status__exact="failed")
    return [
        Card(
            title,
            format_value(this[column], unit),
            *_change(this[column], before[column], more_is_better),
            failed if column == "failed" else runs_link(query),
        )
        for title, column, unit, more_is_better in _CARDS
    ]


def _change(now: Any, before: Any, more_is_better: bool | None) -> tuple[str, bool | None]:
    if now is None or not before:
        return "", None
    change = (now - before) / abs(before)
    better = None if more_is_better is None or abs(change) < 0.005 else (change > 0) == more_is_better
    return (f"{change:+.0%}" if abs(change) >= 0.005 else "±0%"), better


def format_value(value: Any, unit: str = "") -> str:
    """Return a number for people."""
    match value:
        case None:
            return "–"
        case int():
            return f"{_short(value)}{f' {unit}' if unit else ''}"
        case float() if unit == "%":
            return f"{value:.1%}"
        case float() if unit == "$":
            return f"${value:,.2f}"
        case float() if unit == "ms":
            return f"{value:,.0f} ms" if value < 10_000 else f"{value / 1000:,.1f} s"
        case float():
            return f"{value:,.2f}"
    return str(value)


def _short(value: int) -> str:
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**4, "k")):
        if value >= size:
            return f"{value / (10**3 if letter == 'k' else size):,.1f}{letter}"
    return f"{value:,}"
