"""What watches Parley: readiness, Prometheus, traces."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_network
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.contrib.auth.models import Group
from prometheus_client.parser import text_string_to_metric_families

from agents.requests import Claim, RunRequest
from agents.worker import tracing
from config.process import schema
from conversations import events
from conversations.events import RunEvent, Usage
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


# --- traces -------------------------------------------------------------------------------------


@pytest.fixture
def exported() -> Iterator[Any]:
    """What would be sent to a collector."""
    trace = pytest.importorskip("opentelemetry.sdk.trace")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    kept = memory.InMemorySpanExporter()
    provider = trace.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(kept))
    tracing.use_tracer(provider.get_tracer("tests"))
    yield kept
    tracing.use_tracer(None)


def test_a_run_is_traced_when_it_is_over(client: Client, exported: Any) -> None:
    accepted = client.start("练胸有什么动作？")
    client.watch(accepted["run_id"])
    whole = arrived(exported, "parley.run.id", accepted["run_id"])
    spans = [
        one for one in exported.get_finished_spans() if one.context.trace_id == whole.context.trace_id
    ]
    assert whole.name == "invoke_agent demo"
    told = dict(whole.attributes)
    assert told["gen_ai.operation.name"] == "invoke_agent"
    assert told["gen_ai.conversation.id"] == accepted["conversation_id"]
    assert told["gen_ai.request.model"] == "global:demo"
    assert told["gen_ai.response.finish_reasons"] == ("stop",)
    assert told["gen_ai.usage.output_tokens"] > 0
    tool = next(one for one in spans if one.name == "execute_tool gymbro.exercise.search")
    assert tool.attributes["gen_ai.operation.name"] == "execute_tool"
    assert tool.parent.span_id == whole.context.span_id
    assert {"stage intent", "stage execution"} <= {one.name for one in spans}
    for one in spans:
        assert whole.start_time <= one.start_time <= one.end_time <= whole.end_time
    assert "练胸" not in str([dict(one.attributes) for one in spans])


def arrived(exported: Any, name: str, value: str) -> Any:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for one in exported.get_finished_spans():
            if one.attributes.get(name) == value:
                return one
        time.sleep(0.02)
    raise AssertionError("no span came")


def claim_of(request: RunRequest) -> Claim:
    return Claim(uuid4(), uuid4(), uuid4(), 1, 1, 1, 7, 0, 0.0, request, "")


def test_model_calls_and_failures_are_spans_by_the_conventions() -> None:
    run = claim_of(RunRequest("text", "global:m", (), "r"))
    usage = Usage(input_tokens=10, output_tokens=5)
    answered = events.ModelCompleted("openai", "gpt-9", usage=usage, finish_reason="tool_calls")
    logged = [
        RunEvent(1, 1_000, events.RunQueued(1)),
        RunEvent(2, 1_100, events.RunStarted(1, 9_000)),
        RunEvent(3, 1_200, events.ModelRouted("openai", "gpt-9")),
        RunEvent(4, 1_900, answered),
        RunEvent(5, 1_900, events.ToolCallStarted("c1", "search")),
        RunEvent(
            6,
            2_100,
            events.ToolCallCompleted(
                "c1", "search", False, 200, error=events.Problem("away", "It is away.")
            ),
        ),
        RunEvent(7, 2_500, events.RunFailed("provider_timeout", "No answer.")),
    ]
    whole, chat, tool = tracing.spans(run, logged, runner="chat")
    assert (whole.begin, whole.end, whole.error) == (1_000, 2_500, "provider_timeout")
    assert whole.attributes["error.type"] == "provider_timeout"
    assert (chat.name, chat.begin, chat.end, chat.error) == ("chat gpt-9", 1_200, 1_900, "")
    assert chat.attributes["gen_ai.provider.name"] == "openai"
    assert chat.attributes["gen_ai.usage.input_tokens"] == 10
    assert (tool.name, tool.begin, tool.end, tool.error) == ("execute_tool search", 1_900, 2_100, "away")


def test_nothing_is_done_for_traces_that_nobody_wants() -> None:
    run = claim_of(RunRequest("text", "m", (), "r"))

    async def ask() -> int:
        before = len(asyncio.all_tasks())
        tracing.trace_later(run, "chat")
        return len(asyncio.all_tasks()) - before

    assert asyncio.run(ask()) == 0
