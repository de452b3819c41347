"""The spans of a run's log, by the names of OpenTelemetry's GenAI conventions."""

from __future__ import annotations

from uuid import UUID, uuid4

from opentelemetry.trace import SpanKind

from agents.requests import RunRequest, identity
from agents.worker.run_spans import TracedRun, make_spans
from config.telemetry.span_ids import root_id_of, tool_id_of, trace_id_of
from conversations import events
from conversations.events import RunEvent, Usage

RUN = UUID(int=7)


def run_of(request: RunRequest) -> TracedRun:
    return TracedRun(RUN, uuid4(), request, "chat")


def log_of(*facts: tuple[int, events.Fact]) -> list[RunEvent]:
    return [RunEvent(seq, at, fact) for seq, (at, fact) in enumerate(facts, 1)]


def test_model_calls_and_failures_are_spans_by_the_conventions() -> None:
    usage = Usage(input_tokens=10, output_tokens=5, cached_tokens=4)
    answered = events.ModelCompleted("xai", "grok-9", usage=usage, finish_reason="tool_calls")
    problem = events.Problem("away", "It is away.")
    logged = log_of(
        (1_000, events.RunQueued(1)),
        (1_100, events.RunStarted(1, 9_000)),
        (1_200, events.ModelRouted("xai", "grok-9")),
        (1_450, events.ReasoningDelta("m", "hm")),
        (1_500, events.MessageDelta("m", "yes")),
        (1_900, answered),
        (1_900, events.ToolCallStarted("c1", "search", kind="mcp")),
        (2_100, events.ToolCallCompleted("c1", "search", False, 200, error=problem)),
        (2_500, events.RunFailed("provider_timeout", "No answer.")),
    )
    whole, queue, chat, tool = make_spans(run_of(RunRequest("text", "global:m", (), "r")), logged)
    assert (whole.name, whole.begin, whole.end, whole.error, whole.span_id) == (
        "invoke_agent chat",
        1_000,
        2_500,
        "provider_timeout",
        root_id_of(RUN),
    )
    assert whole.attributes["error.type"] == "provider_timeout"
    assert whole.attributes["gen_ai.request.model"] == "global:m"
    assert (queue.name, queue.begin, queue.end) == ("queue", 1_000, 1_100)
    assert (chat.name, chat.begin, chat.end, chat.error, chat.kind) == (
        "chat grok-9",
        1_200,
        1_900,
        "",
        SpanKind.CLIENT,
    )
    assert dict(chat.attributes) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "x_ai",
        "gen_ai.request.model": "grok-9",
        "gen_ai.request.stream": True,
        "gen_ai.response.model": "grok-9",
        "gen_ai.conversation.id": whole.attributes["gen_ai.conversation.id"],
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.response.time_to_first_chunk": 0.25,
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
    }
    assert (tool.name, tool.begin, tool.end, tool.error, tool.kind, tool.span_id) == (
        "execute_tool search",
        1_900,
        2_100,
        "away",
        SpanKind.CLIENT,
        tool_id_of(RUN, "c1"),
    )
    assert "yes" not in str([dict(span.attributes) for span in (whole, queue, chat, tool)])


def test_an_attempt_that_was_lost_is_a_span_and_the_run_is_still_one() -> None:
    """The second worker makes the same ids as the first would have made."""
    logged = log_of(
        (1_000, events.RunQueued(1)),
        (1_100, events.RunStarted(1, 9_000)),
        (13_000, events.RunStarted(2, 9_000)),
        (14_000, events.RunCompleted("stop")),
    )
    whole, queue, lost = make_spans(run_of(RunRequest("text", "m", (), "r")), logged)
    assert (whole.attributes["parley.attempts"], whole.error) == (2, "")
    assert (queue.begin, queue.end) == (1_000, 1_100)
    assert (lost.name, lost.begin, lost.end, lost.error) == (
        "attempt 1",
        1_100,
        13_000,
        "worker_lost",
    )


def test_a_run_that_never_started_waited_all_its_time() -> None:
    logged = log_of((1_000, events.RunQueued(1)), (9_000, events.RunFailed("cancelled", "")))
    whole, queue = make_spans(TracedRun(RUN, uuid4(), RunRequest("text", "m", (), "r")), logged)
    assert (whole.name, queue.begin, queue.end) == ("invoke_agent parley", 1_000, 9_000)


def test_ids_are_of_the_run_and_differ() -> None:
    ids = [root_id_of(RUN), tool_id_of(RUN, "c1"), tool_id_of(RUN, "c2"), trace_id_of(RUN)]
    assert len(set(ids)) == 4
    assert all(0 < one < 2**64 for one in ids[:3])
    assert ids[3] < 2**128
    assert root_id_of(UUID(int=8)) != ids[0]


def test_the_trace_is_no_part_of_what_distinguishes_requests() -> None:
    one = RunRequest("text", "m", (), "r")
    other = RunRequest("text", "m", (), "r", traceparent="00-1-2-01", tracestate="a=b")
    assert identity(one) == identity(other)
