"""The spans of a run, made from its log, by the GenAI conventions of OpenTelemetry.

They follow github.com/open-telemetry/semantic-conventions-genai as of November 2026: `invoke_agent`,
`chat` and `execute_tool`, with `gen_ai.provider.name` in the place of the older `gen_ai.system`. They
hold names, counts and codes, and never the text of messages (promise P12).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final
from uuid import UUID

from opentelemetry.trace import SpanKind

from agents.requests import RunRequest
from config.telemetry.span_ids import root_id_of, tool_id_of
from conversations import events
from conversations.events import RunEvent

Value = str | int | float | bool | tuple[str, ...]
_UNNAMED: Final = "parley"
_PROVIDERS: Final = {  # what staff call a provider → the conventions' name for it
    "aws": "aws.bedrock",
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
_OUTPUT: Final = (events.MessageDelta, events.ReasoningDelta, events.ToolCallStarted)


@dataclass(frozen=True)
class Span:
    """A span before its export; times are epoch milliseconds, `span_id` 0 is any id."""

    name: str
    begin: int
    end: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str = ""
    kind: SpanKind = SpanKind.INTERNAL
    span_id: int = 0


@dataclass(frozen=True)
class TracedRun:
    """A run whose log is complete; `runner` is the name of what served it, "" if nothing did."""

    run_id: UUID
    thread_id: UUID
    request: RunRequest
    runner: str = ""


def make_spans(run: TracedRun, logged: Sequence[RunEvent]) -> list[Span]:
    """Return the spans of a run: the whole (`invoke_agent`), then what is within it."""
    parts = [*_waits(logged), *_stages(logged), *_models(run, logged), *_tools(run.run_id, logged)]
    return [_whole(run, logged), *parts]


def _whole(run: TracedRun, logged: Sequence[RunEvent]) -> Span:
    first, last = logged[0], logged[-1]
    error = last.fact.code if isinstance(last.fact, events.RunFailed) else ""
    name = run.runner or run.request.runner or _UNNAMED
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": str(run.thread_id),
        "gen_ai.request.model": run.request.model,
        "parley.run.id": run.run_id.hex,
        "parley.request.id": run.request.request_id,
        "parley.dialect": run.request.dialect,
        "parley.attempts": sum(isinstance(event.fact, events.RunStarted) for event in logged),
    }
    if isinstance(last.fact, events.RunCompleted):
        attributes |= _usage(last.fact.usage) | {
            "gen_ai.response.finish_reasons": (last.fact.finish_reason,)
        }
    return Span(
        f"invoke_agent {name}",
        first.at,
        last.at,
        attributes | _failed(error),
        error,
        span_id=root_id_of(run.run_id),
    )


def _waits(logged: Sequence[RunEvent]) -> Iterator[Span]:
    """Yield the wait in the queue, and a span per attempt that was lost before the next one."""
    starts = [event for event in logged if isinstance(event.fact, events.RunStarted)]
    yield Span("queue", logged[0].at, starts[0].at if starts else logged[-1].at)
    for number, (lost, following) in enumerate(pairwise(starts), 1):
        attributes: dict[str, Value] = {"parley.attempt": number}
        yield Span(
            f"attempt {number}",
            lost.at,
            following.at,
            attributes | _failed("worker_lost"),
            "worker_lost",
        )


def _stages(logged: Sequence[RunEvent]) -> Iterator[Span]:
    begun: dict[str, int] = {}
    for event in logged:
        match event.fact:
            case events.StageStarted(stage):
                begun[stage] = event.at
            case events.StageCompleted(stage) if stage in begun:
                yield Span(f"stage {stage}", begun.pop(stage), event.at, {"parley.stage": stage})


def _models(run: TracedRun, logged: Sequence[RunEvent]) -> Iterator[Span]:
    """Yield a span per model call, from its routing or from the end of the step before it."""
    since, first_output = logged[0].at, 0
    for event in logged:
        match event.fact:
            case events.ModelRouted() | events.ToolCallCompleted() | events.RunStarted():
                since, first_output = event.at, 0
            case events.ModelCompleted() as done:
                yield _model_call(run, done, since, event.at, first_output)
                since, first_output = event.at, 0
            case fact if isinstance(fact, _OUTPUT):
                first_output = first_output or event.at


def _model_call(
    run: TracedRun, done: events.ModelCompleted, begin: int, end: int, first_output: int
) -> Span:
    error = "" if done.finish_reason else "broken_off"
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(done.provider.lower(), done.provider),
        "gen_ai.request.model": done.model,
        "gen_ai.request.stream": True,
        "gen_ai.response.model": done.model,
        "gen_ai.conversation.id": str(run.thread_id),
    }
    if done.finish_reason:
        attributes["gen_ai.response.finish_reasons"] = (done.finish_reason,)
    if first_output:
        attributes["gen_ai.response.time_to_first_chunk"] = (first_output - begin) / 1000
    attributes |= _usage(done.usage) | _failed(error)
    return Span(f"chat {done.model}", begin, end, attributes, error, SpanKind.CLIENT)


def _tools(run_id: UUID, logged: Sequence[RunEvent]) -> Iterator[Span]:
    begun: dict[str, int] = {}
    kinds: dict[str, str] = {}
    for event in logged:
        match event.fact:
            case events.ToolCallStarted() as started:
                begun[started.tool_call_id] = event.at
                kinds[started.tool_call_id] = started.kind
            case events.ToolCallCompleted() as done:
                yield _tool_call(
                    run_id,
                    done,
                    begun.pop(done.tool_call_id, event.at - done.elapsed_ms),
                    event.at,
                    kinds.get(done.tool_call_id, "function"),
                )


def _tool_call(run_id: UUID, done: events.ToolCallCompleted, begin: int, end: int, kind: str) -> Span:
    error = "" if done.ok else (done.error.code if done.error else "tool_error")
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": done.tool_name,
        "gen_ai.tool.call.id": done.tool_call_id,
        "gen_ai.tool.type": "extension" if kind in ("mcp", "plugin") else "function",
    }
    return Span(
        f"execute_tool {done.tool_name}",
        begin,
        end,
        attributes | _failed(error),
        error,
        SpanKind.CLIENT if kind == "mcp" else SpanKind.INTERNAL,
        tool_id_of(run_id, done.tool_call_id),
    )


def _usage(usage: events.Usage) -> dict[str, Value]:
    found: dict[str, Value] = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {name: count for name, count in found.items() if count}


def _failed(error: str) -> dict[str, Value]:
    return {"error.type": error} if error else {}
