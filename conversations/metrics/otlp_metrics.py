"""The metrics of `/metrics` over OTLP: the same families, in OpenTelemetry's form.

What is counted in the database has one value in the whole installation. So only the process that has
just added runs up sends it, under one identity (`service.instance.id` is `database`): a backend that
sums over instances counts nothing twice, and no restart looks like a new beginning. What a process
counts of itself, each process sends by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from prometheus_client import ProcessCollector
from prometheus_client.core import Metric as Family

from config import database, sql
from conversations.metrics import exposition

if TYPE_CHECKING:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import Metric

logger = structlog.get_logger(__name__)

_NAME: Final = "parley"
_OF_ALL: Final = "database"
_STARTED_NS: Final = time.time_ns()
_FIRST: Final = "SELECT min(bucket) FROM conversations_runrollup WHERE grain = 'day'"
_PATIENCE_S: Final = 3.0

_sending = False


async def send_counted() -> None:
    """Send what is counted in the database, if metrics are sent at all; the caller has just counted.

    A collector that is silent holds the caller up for a moment only.
    """
    if not settings.OTEL_METRICS:
        return
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await _send_counted()
    except TimeoutError:
        logger.warning("metrics not sent", error="TimeoutError")


async def _send_counted() -> None:
    rows = await exposition.fetch_rows()
    first = await sql.one(_FIRST)
    since = int(first[0].timestamp()) * 10**9 if first and first[0] else time.time_ns()
    await asyncio.to_thread(_send, list(exposition.counted_families(rows)), since, _OF_ALL)


async def send_own_for_ever() -> None:
    """Send what this process counts of itself, every OTEL_METRIC_EXPORT_INTERVAL milliseconds.

    Once per process, though web and worker may be one.
    """
    global _sending
    if _sending or not settings.OTEL_METRICS:
        return
    _sending = True
    try:
        while True:
            await asyncio.sleep(settings.OTEL_METRICS_INTERVAL_S)
            families = [*exposition.process_families(), *ProcessCollector(registry=None).collect()]
            try:
                await asyncio.to_thread(_send, families, _STARTED_NS, "")
            except Exception as error:  # the next round tries again
                database.log_failure(logger, "metrics not sent", error)
    finally:
        _sending = False


def _send(families: Iterable[Family], since_ns: int, instance: str) -> None:
    """Convert and send; an OS thread's work. The exporter itself logs that a collector is away."""
    from opentelemetry.sdk.metrics.export import MetricsData, ResourceMetrics, ScopeMetrics
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope

    from config.telemetry.resource import make_resource

    metrics = list(to_otlp(families, since_ns=since_ns, now_ns=time.time_ns()))
    scope = ScopeMetrics(InstrumentationScope(_NAME), metrics, "")
    _exporter().export(MetricsData([ResourceMetrics(make_resource(instance), [scope], "")]))


@cache
def _exporter() -> OTLPMetricExporter:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

    return OTLPMetricExporter()


def to_otlp(families: Iterable[Family], *, since_ns: int, now_ns: int) -> Iterator[Metric]:
    """Yield Prometheus' families as OpenTelemetry's metrics, under the same names without `_total`."""
    for family in families:
        match family.type:
            case "counter":
                yield _sum(family.name, family, f"{family.name}_total", since_ns, now_ns)
            case "gauge":
                yield _gauge(family, now_ns)
            case "histogram":
                yield _histogram(family, since_ns, now_ns)
            case "summary":
                yield _sum(family.name, family, f"{family.name}_sum", since_ns, now_ns)
                yield _sum(f"{family.name}_times", family, f"{family.name}_count", since_ns, now_ns)


def _sum(name: str, family: Family, sample: str, since_ns: int, now_ns: int) -> Metric:
    from opentelemetry.sdk.metrics.export import AggregationTemporality, Metric, NumberDataPoint, Sum

    points = [
        NumberDataPoint(dict(one.labels), since_ns, now_ns, one.value)
        for one in family.samples
        if one.name == sample
    ]
    data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(name, family.documentation, "", data)


def _gauge(family: Family, now_ns: int) -> Metric:
    from opentelemetry.sdk.metrics.export import Gauge, Metric, NumberDataPoint

    points = [NumberDataPoint(dict(one.labels), now_ns, now_ns, one.value) for one in family.samples]
    return Metric(family.name, family.documentation, "", Gauge(points))


def _histogram(family: Family, since_ns: int, now_ns: int) -> Metric:
    """Return the histogram; Prometheus' buckets hold the smaller ones too, OpenTelemetry's do not."""
    from opentelemetry.sdk.metrics.export import (
        AggregationTemporality,
        Histogram,
        HistogramDataPoint,
        Metric,
    )

    values: dict[str, Any] = {one.name.removeprefix(family.name): one.value for one in family.samples}
    up_to = [(one.labels["le"], int(one.value)) for one in family.samples if "le" in one.labels]
    counts = [above - below for (_, below), (_, above) in pairwise([("", 0), *up_to])]
    point = HistogramDataPoint(
        {},
        since_ns,
        now_ns,
        up_to[-1][1],
        values.get("_sum", 0.0),
        counts,
        [float(bound) for bound, _ in up_to[:-1]],
        None,  # type: ignore[arg-type]
        None,  # type: ignore[arg-type]
    )
    data = Histogram([point], AggregationTemporality.CUMULATIVE)
    return Metric(family.name, family.documentation, "", data)
