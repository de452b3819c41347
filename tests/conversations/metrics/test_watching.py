"""What watches Parley: readiness and Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import Any

import httpx
import pytest
from django.contrib.auth.models import Group
from prometheus_client.parser import text_string_to_metric_families

from config.process import schema
from conversations.metrics import exposition
from tests.conftest import Server
from tests.support import metrics_seed
from tests.support.client import Client
from tests.support.metrics_seed import Seeded

TOKEN = "a token of the tests"


@pytest.fixture
def seeded(database: None) -> Iterator[Seeded]:
    made = metrics_seed.seed()
    yield made
    metrics_seed.forget(made)


def get(server: Server, path: str, **headers: str) -> httpx.Response:
    return httpx.get(f"{server.url}{path}", headers=headers, trust_env=False)


# --- readiness ----------------------------------------------------------------------------------


def test_ready_says_that_every_migration_is_there(server: Server) -> None:
    answer = get(server, "/ready")
    assert (answer.status_code, answer.json()) == (
        200,
        {"status": "ok", "database": True, "migrations": []},
    )


def test_not_ready_while_a_migration_is_missing(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    known = schema._migrations() | {("conversations", "9999_to_come")}
    monkeypatch.setattr(schema, "_migrations", lambda: known)
    answer = get(server, "/ready")
    assert answer.status_code == 503
    assert answer.json()["migrations"] == ["conversations.9999_to_come"]
    assert get(server, "/health").status_code == 200


# --- Prometheus ---------------------------------------------------------------------------------


def test_metrics_are_for_prometheus_alone(
    server: Server, client: Client, make_client: Callable[..., Client], settings: Any
) -> None:
    answer = get(server, "/metrics")
    assert (answer.status_code, answer.json()["code"]) == (401, "token_missing")
    assert client.http.get("/metrics").status_code == 403
    assert get(server, "/metrics", Authorization=f"Bearer {TOKEN}").status_code == 401
    settings.METRICS_TOKEN = TOKEN
    assert get(server, "/metrics", Authorization=f"Bearer {TOKEN}").status_code == 200
    assert get(server, "/metrics", Authorization="Bearer another").status_code == 401
    settings.METRICS_TOKEN = ""
    settings.METRICS_NETWORKS = [ip_network("10.0.0.0/8"), ip_network("::/64")]
    assert get(server, "/metrics").status_code == 401
    settings.METRICS_NETWORKS = [ip_network("127.0.0.0/8")]
    assert get(server, "/metrics").status_code == 200
    settings.METRICS_NETWORKS = []
    analyst = make_client(is_staff=True)
    analyst.user.groups.set([Group.objects.get(name="analyst")])
    assert analyst.http.get("/metrics").status_code == 200


def test_prometheus_reads_what_was_counted_by_hand(
    server: Server, seeded: Seeded, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.METRICS_TOKEN = TOKEN
    monkeypatch.setattr(exposition, "CACHED_S", 0.0)
    text = get(server, "/metrics", Authorization=f"Bearer {TOKEN}").text
    found = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    def of(name: str, **labels: str) -> float:
        return found[name, *sorted(labels.items())]

    mine = {"model": seeded.model, "dialect": "text"}
    statuses = ("completed", "failed", "cancelled")
    assert [of("parley_runs_total", **mine, status=one) for one in statuses] == [2.0, 2.0, 1.0]
    kinds = ("input", "output", "cached")
    assert [of("parley_tokens_total", **mine, kind=one) for one in kinds] == [310.0, 150.0, 20.0]
    assert of("parley_cost_usd_total", **mine) == 0.75
    assert of("parley_runs_timed_out_total", **mine) == 1.0
    assert [of("parley_feedback_total", **mine, score=one) for one in ("good", "bad")] == [1.0, 1.0]
    assert of("parley_tool_calls_total", tool="gym.search", ok="true") >= 1.0
    assert of("parley_runs_live", status="running") >= 1.0
    counts = [of("parley_run_duration_ms_bucket", le=str(float(2**power))) for power in range(25)]
    assert counts == sorted(counts)
    assert of("parley_run_duration_ms_bucket", le="+Inf") == of("parley_run_duration_ms_count") >= 3
    assert of("parley_streams_open") >= 0
    assert of("process_resident_memory_bytes") > 0
