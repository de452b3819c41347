"""Traces as a collector gets them over OTLP, from the caller's span to the call of the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from config.telemetry import tracing
from tests.conftest import Server
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text

CALLER_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
CALLER_SPAN = "00f067aa0ba902b7"
TRACEPARENT = f"00-{CALLER_TRACE}-{CALLER_SPAN}-01"


def root_of(collector: Any, run_id: str) -> Any:
    return collector.wait_for(lambda span: span.attributes.get("parley.run.id") == UUID(run_id).hex)


def test_one_trace_from_the_caller_through_the_queue_to_the_model(
    client: Client,
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
    collector: Any,
) -> None:
    name = uuid4().hex
    provider.script(text("A secret answer."), name=name)
    model = scripted(f"script:{name}").name
    client.http.headers.update({"traceparent": TRACEPARENT, "tracestate": "vendor=opaque"})
    run_id = client.start("A secret question.", model=model)["run_id"]
    client.watch(run_id)
    whole = root_of(collector, run_id)
    mine = [span for span in collector.spans if span.trace_id == CALLER_TRACE]
    post = next(span for span in mine if span.name.startswith("POST"))
    assert (post.name, post.kind) == ("POST /api/v1/agent/runs", "SERVER")
    assert (post.parent_id, post.trace_state) == (CALLER_SPAN, "vendor=opaque")
    assert post.attributes["http.response.status_code"] == 202
    assert (whole.trace_id, whole.parent_id, whole.kind) == (CALLER_TRACE, post.span_id, "INTERNAL")
    assert whole.trace_state == "vendor=opaque"
    assert whole.name == "invoke_agent chat"
    assert whole.attributes["gen_ai.operation.name"] == "invoke_agent"
    assert whole.attributes["gen_ai.request.model"] == model
    assert whole.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    inside = {span.name: span for span in mine if span.parent_id == whole.span_id}
    assert {"queue", "stage intent"} <= set(inside)
    (chat,) = (span for span in mine if span.attributes.get("gen_ai.operation.name") == "chat")
    assert (chat.name, chat.kind) == (f"chat script:{name}", "CLIENT")
    assert chat.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    assert chat.attributes["gen_ai.usage.output_tokens"] > 0
    assert chat.attributes["gen_ai.response.time_to_first_chunk"] >= 0
    for span in inside.values():
        assert whole.begin <= span.begin <= span.end <= whole.end
    assert whole.resource["service.name"] == "parley"
    for secret in ("secret", client.token):
        assert not any(secret.encode() in body for body in collector.raw)
    (asked,) = provider.requests_for(f"script:{name}")
    assert not {"traceparent", "tracestate"} & set(asked.headers)


@pytest.mark.parametrize(
    "malformed",
    [
        "",
        "nonsense",
        f"00-{'0' * 32}-{CALLER_SPAN}-01",
        f"00-{CALLER_TRACE}-{'0' * 16}-01",
        f"ff-{CALLER_TRACE}-{CALLER_SPAN}-01",
        f"00-{CALLER_TRACE.upper()}-{CALLER_SPAN}-01",
        f"00-{CALLER_TRACE}-{CALLER_SPAN}-01-more",
    ],
)
def test_a_malformed_traceparent_begins_a_new_trace(
    client: Client, collector: Any, malformed: str
) -> None:
    answer = client.http.get("/api/v1/agent/runs/nothing", headers={"traceparent": malformed})
    assert answer.status_code in (404, 405)
    span = collector.wait_for(lambda span: span.name.startswith("GET /api/v1/agent/runs/"))
    assert span.trace_id != CALLER_TRACE
    assert span.parent_id == ""


def test_a_caller_that_does_not_sample_is_obeyed(client: Client, collector: Any) -> None:
    not_sampled = {"traceparent": f"00-{CALLER_TRACE}-{CALLER_SPAN}-00"}
    body = {"model": "demo", "text": "hello"}
    unseen = client.http.post("/api/v1/agent/runs", json=body, headers=not_sampled).json()["run_id"]
    client.http.headers.update(not_sampled)
    client.watch(unseen)
    del client.http.headers["traceparent"]
    seen = client.start()["run_id"]
    client.watch(seen)
    root_of(collector, seen)
    tracing.flush()
    assert not any(span.trace_id == CALLER_TRACE for span in collector.spans)


def test_a_run_that_no_worker_ends_is_in_the_trace_too(
    client: Client, server: Server, collector: Any
) -> None:
    """It is settled by another process than the worker's in a real installation."""
    client.http.headers.update({"traceparent": TRACEPARENT})
    busy = client.start("tell me at length")
    waiting = client.start("and then", conversation_id=busy["conversation_id"])
    assert client.http.post(f"/api/v1/agent/runs/{waiting['run_id']}/cancel").status_code < 300
    whole = root_of(collector, waiting["run_id"])
    assert whole.trace_id == CALLER_TRACE
    assert (whole.failed, whole.attributes["error.type"]) == (True, "cancelled")
    client.watch(busy["run_id"])


def test_the_same_request_with_another_traceparent_is_the_same_run(
    client: Client, collector: Any
) -> None:
    body = {
        "threadId": str(uuid4()),
        "runId": uuid4().hex,
        "messages": [{"id": "1", "role": "user", "content": "go"}],
    }
    answers = [
        client.http.post("/api/v1/agent/runs", json=body, headers={"traceparent": sent})
        for sent in (TRACEPARENT, TRACEPARENT.replace("00f0", "11f1"))
    ]
    assert [answer.status_code < 300 for answer in answers] == [True, True]
    assert len({answer.json()["taskId"] for answer in answers}) == 1


def test_nothing_is_done_or_stored_while_traces_are_off(client: Client, server: Server) -> None:
    from conversations.models import Run

    client.http.headers.update({"traceparent": TRACEPARENT})
    run_id = client.start()["run_id"]
    client.watch(run_id)
    assert "traceparent" not in Run.objects.get(pk=UUID(run_id)).request

    async def provider_of_server() -> Any:
        return tracing._provider

    assert asyncio.run_coroutine_threadsafe(provider_of_server(), server.loop).result(5) is None
