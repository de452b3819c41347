"""Metrics for Prometheus: counted in the database, so every process returns the same ones.

Counters are sums of all days; histograms are those of the rollups, with every eighth slot as a bucket.
Both are as fresh as the rollups. An answer is cached for some seconds, so that any number of scrapes
costs little. Each process adds its own values (its memory, its open streams).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic
from typing import Any, Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)

from config import database
from config.process import watchdog
from conversations.metrics.histograms import MEASURED, PER_DOUBLING, STRIDE

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
CACHED_S: Final = 5.0
OF_THIS_PROCESS: Final[dict[str, tuple[str, Callable[[], float]]]] = {}  # name → (help, value)

_RUNS: Final = """
SELECT model, dialect, sum(completed), sum(failed), sum(cancelled), sum(timed_out), sum(reconnects),
    sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(cost_usd), sum(feedback_good),
    sum(feedback_bad)
FROM conversations_runrollup WHERE grain = 'day' GROUP BY model, dialect
"""
_ERRORS: Final = """
SELECT code, sum(times::bigint) FROM conversations_runrollup
CROSS JOIN LATERAL jsonb_each_text(errors) part(code, times) WHERE grain = 'day' GROUP BY code
"""
_SUMS: Final = """
SELECT sum(duration_ms), sum(queue_wait_ms), sum(first_token_ms), sum(speed)
FROM conversations_runrollup WHERE grain = 'day'
"""
_SLOTS: Final = """
SELECT slot, sum(n) FROM conversations_runrollup
CROSS JOIN LATERAL unnest(slots, counts) part(slot, n) WHERE grain = 'day' GROUP BY slot
"""
_TOOLS: Final = """
SELECT name, sum(succeeded), sum(calls - succeeded), sum(total_ms) FROM conversations_steprollup
WHERE grain = 'day' AND kind = 'tool' GROUP BY name
"""
_LIVE: Final = """
SELECT (SELECT count(*) FROM conversations_run WHERE status = 'queued'),
    (SELECT count(*) FROM conversations_run WHERE status = 'running'),
    (SELECT extract(epoch FROM clock_timestamp() - rolled_until) FROM conversations_metrics),
    (SELECT extract(epoch FROM clock_timestamp() - min(created_at)) FROM conversations_run run
        WHERE status = 'queued' AND NOT EXISTS (
            SELECT FROM conversations_run earlier WHERE earlier.thread_id = run.thread_id
            AND (earlier.thread_seq, earlier.id) < (run.thread_seq, run.id)
            AND earlier.status IN ('queued', 'running')))
"""
_BUCKETS: Final = range(25)  # powers of two: 1 ms to 4.6 hours
_QUERIES: Final = (_RUNS, _ERRORS, _SUMS, _SLOTS, _TOOLS, _LIVE)
Rows = list[tuple[Any, ...]]

_cached: tuple[float, bytes] = (float("-inf"), b"")
_asking: Final = asyncio.Lock()


async def fetch_exposition() -> bytes:
    """Return the metrics as text, at most CACHED_S seconds old."""
    global _cached
    async with _asking:  # concurrent scrapes get the same answer
        if monotonic() - _cached[0] >= CACHED_S:
            found = await fetch_rows()
            _cached = (monotonic(), await asyncio.to_thread(_write_exposition, found))
        return _cached[1]


async def fetch_rows() -> list[Rows]:
    """Return what `counted_families` reads, as it is now."""
    async with database.connection() as connection:
        return [await (await connection.execute(query)).fetchall() for query in _QUERIES]


def _write_exposition(found: Sequence[Rows]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected([*counted_families(found), *process_families()]))
    ProcessCollector(registry=registry)
    return generate_latest(registry)


class _Collected:
    """The collector of metrics that are already counted."""

    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def counted_families(found: Sequence[Rows]) -> Iterator[Metric]:
    """Yield what is counted in the database, and so is the same in every process."""
    return _families(*found)


def _families(
    runs: Rows, errors: Rows, sums: Rows, slots: Rows, tools: Rows, live: Rows
) -> Iterator[Metric]:
    yield from _of_runs(runs)
    yield _counter("parley_run_errors", "Failed runs", ("code",), [((code,), n) for code, n in errors])
    yield from _histograms(sums[0], dict(slots))
    calls = [
        ((name, ok), n) for name, good, bad, _ in tools for ok, n in (("true", good), ("false", bad))
    ]
    yield _counter("parley_tool_calls", "Tool calls", ("tool", "ok"), calls)
    seconds = [((name,), float(total) / 1000) for name, _, _, total in tools]
    yield _counter("parley_tool_seconds", "Time in tool calls", ("tool",), seconds)
    queued, running, age, waiting = live[0]
    now = GaugeMetricFamily("parley_runs_live", "Runs that wait or run", labels=["status"])
    now.add_metric(["queued"], queued)
    now.add_metric(["running"], running)
    yield now
    help_text = "Seconds that the oldest run has waited that only lacks a worker"
    yield GaugeMetricFamily("parley_runs_oldest_waiting_seconds", help_text, value=float(waiting or 0))
    if age is not None:
        help_text = "Seconds since runs were last added up"
        yield GaugeMetricFamily("parley_rollup_age_seconds", help_text, value=float(age))


def _of_runs(runs: Rows) -> Iterator[Metric]:
    def each(*named: tuple[str, int]) -> list[tuple[tuple[str, ...], float]]:
        return [((row[0], row[1], name), float(row[place])) for row in runs for name, place in named]

    labels = ("model", "dialect")
    ended = each(("completed", 2), ("failed", 3), ("cancelled", 4))
    yield _counter("parley_runs", "Ended runs", (*labels, "status"), ended)
    tokens = each(("input", 7), ("output", 8), ("cached", 9))
    yield _counter("parley_tokens", "Tokens; cached ones are input too", (*labels, "kind"), tokens)
    judged = each(("good", 11), ("bad", 12))
    yield _counter("parley_feedback", "Judgements that take a side", (*labels, "score"), judged)
    for name, help_text, place in (
        ("parley_runs_timed_out", "Runs past their deadline", 5),
        ("parley_reconnects", "Readers that came back", 6),
        ("parley_cost_usd", "What is known of the cost", 10),
    ):
        values = [((row[0], row[1]), float(row[place])) for row in runs]
        yield _counter(name, help_text, labels, values)


def _histograms(sums: Sequence[Any], slots: dict[int, int]) -> Iterator[Metric]:
    for place, name in enumerate(MEASURED):
        of_this = {slot % STRIDE: int(n) for slot, n in slots.items() if slot // STRIDE == place}
        buckets = [
            (str(float(2**power)), sum(n for slot, n in of_this.items() if slot <= power * PER_DOUBLING))
            for power in _BUCKETS
        ]
        buckets.append(("+Inf", sum(of_this.values())))
        family = HistogramMetricFamily(f"parley_run_{name}", f"Of runs, {name.replace('_', ' ')}")
        family.add_metric([], buckets, float(sums[place] or 0))
        yield family


def process_families() -> Iterator[Metric]:
    """Yield what this process counts of itself."""
    for name, (help_text, value) in OF_THIS_PROCESS.items():
        yield GaugeMetricFamily(name, help_text, value=value())
    totals, help_text = watchdog.totals, "Times in which nothing could run on this process's event loop"
    yield SummaryMetricFamily("parley_loop_held_seconds", help_text, totals.times, totals.seconds)
    help_text = "The longest of them since the process started"
    yield GaugeMetricFamily("parley_loop_held_longest_seconds", help_text, totals.longest)


def _counter(
    name: str, help_text: str, labels: tuple[str, ...], values: Iterable[tuple[tuple[str, ...], Any]]
) -> Metric:
    family = CounterMetricFamily(name, help_text, labels=labels)
    for of, value in values:
        family.add_metric(of, float(value))
    return family
