"""Metrics as a collector gets them over OTLP: the numbers of /metrics, once for all processes."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from config import database, sql
from conversations.metrics import exposition, otlp_metrics, refresh
from tests.support import metrics_seed
from tests.support.metrics_seed import Seeded

otlp = pytest.importorskip("tests.support.fakes.otlp_collector")


@pytest.fixture
def seeded(database: None) -> Iterator[Seeded]:
    made = metrics_seed.seed()
    yield made
    metrics_seed.forget(made)


@pytest.fixture
def collector(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with otlp.OtlpCollector() as running:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", running.url)
        settings.OTEL_METRICS = True
        otlp_metrics._exporter.cache_clear()
        yield running
        settings.OTEL_METRICS = False
        otlp_metrics._exporter.cache_clear()


def exports(collector: Any) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each export: the attributes of its resource, and its metrics by name."""
    return [
        (otlp.plain(one.resource.attributes), {m.name: m for s in one.scope_metrics for m in s.metrics})
        for request in collector.metrics
        for one in request.resource_metrics
    ]


def test_the_numbers_are_those_of_prometheus(seeded: Seeded, collector: Any) -> None:
    database.run_sync(otlp_metrics.send_counted())
    rows = database.run_sync(exposition.fetch_rows())
    ((resource, metrics),) = exports(collector)
    assert resource["service.instance.id"] == "database"
    registry = CollectorRegistry()
    registry.register(exposition._Collected(list(exposition.counted_families(rows))))
    text = generate_latest(registry).decode()
    compared = 0
    for family in text_string_to_metric_families(text):
        if family.name in ("parley_runs_live", "parley_rollup_age_seconds") or "oldest" in family.name:
            assert family.name in metrics  # other tests change them meanwhile
        elif family.type == "histogram":
            (point,) = metrics[family.name].histogram.data_points
            below, cumulative = 0, []
            for count in point.bucket_counts:
                below += count
                cumulative.append(float(below))
            assert cumulative == [one.value for one in family.samples if "le" in one.labels]
            assert list(point.explicit_bounds) == [float(2**power) for power in range(25)]
            assert point.count == below
            compared += 1
        else:
            data = metrics[family.name].sum
            assert data.is_monotonic
            sent = {
                tuple(sorted(otlp.plain(one.attributes).items())): one.as_double
                for one in data.data_points
            }
            read = {tuple(sorted(one.labels.items())): one.value for one in family.samples}
            assert sent == read
            compared += 1
    assert compared >= 12


def test_counters_begin_when_the_first_run_did_in_every_process(seeded: Seeded, collector: Any) -> None:
    for _ in range(2):
        database.run_sync(otlp_metrics.send_counted())
    begun = {
        point.start_time_unix_nano
        for _, metrics in exports(collector)
        for point in metrics["parley_runs"].sum.data_points
    }
    assert len(begun) == 1
    assert max(begun) < otlp_metrics._STARTED_NS


def test_what_is_counted_is_sent_by_the_process_that_counts(
    collector: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process for which no round is due sends nothing, though it looks every two seconds."""

    async def resting(*_: Any) -> Any:
        return ()

    with monkeypatch.context() as patched:
        patched.setattr(sql, "one", resting)
        database.run_sync(refresh.refresh_if_due())
        assert exports(collector) == []


def test_each_process_sends_what_is_its_own(collector: Any) -> None:
    families = [*exposition.process_families()]
    otlp_metrics._send(families, otlp_metrics._STARTED_NS, "")
    ((resource, metrics),) = exports(collector)
    assert resource["service.name"] == "parley"
    assert resource["service.instance.id"] not in ("", "database")
    assert metrics["parley_loop_held_seconds"].sum.is_monotonic
    assert "parley_loop_held_seconds_times" in metrics
    assert "parley_runs" not in metrics


def test_nothing_is_sent_while_metrics_are_off(seeded: Seeded) -> None:
    with otlp.OtlpCollector() as running:
        database.run_sync(otlp_metrics.send_counted())
        database.run_sync(otlp_metrics.send_own_for_ever())
    assert running.paths == []


def test_a_silent_collector_holds_nobody_up(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, seeded: Seeded
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # it accepts and says nothing
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
        monkeypatch.setattr(otlp_metrics, "_PATIENCE_S", 0.3)
        settings.OTEL_METRICS = True
        otlp_metrics._exporter.cache_clear()

        async def send() -> float:
            begun = time.monotonic()
            await otlp_metrics.send_counted()
            return time.monotonic() - begun

        assert database.run_sync(send()) < 1.5
        settings.OTEL_METRICS = False
        otlp_metrics._exporter.cache_clear()
