"""OpenTelemetry traces of runs, by the GenAI semantic conventions (opentelemetry.io, semconv 1.37).

They are off unless OTEL_EXPORTER_OTLP_ENDPOINT is set, and cost nothing while a run goes on: after its
end its spans are made from the log, with the times of its events. They hold names, counts and codes,
and never the text of messages (promise P12). The SDK is of the
extra `otel`; its own variables (OTEL_SERVICE_NAME, OTEL_EXPORTER_OTLP_HEADERS, …) hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import structlog
from django.conf import settings
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode, Tracer

from agents.requests import Claim
from config.process import cancellation
from conversations import events
from conversations.events import RunEvent
from conversations.log import event_log

logger = structlog.get_logger(__name__)

Value = str | int | tuple[str, ...]
_NAME: Final = "parley"
_tracer: Tracer | None = None


@dataclass(frozen=True)
class Span:
    """A span before its export; times are epoch milliseconds."""

    name: str
    begin: int
    end: int
    attributes: Mapping[str, Value] = field(default_factory=dict)
    error: str = ""
    kind: SpanKind = SpanKind.INTERNAL


def trace_later(run: Claim, runner: str) -> None:
    """Make the spans of an ended run in the background, if tracing is on."""
    if _tracer is None and not settings.OTEL_EXPORTER_OTLP_ENDPOINT:
        return
    cancellation.run_detached(_trace(run, runner))


def use_tracer(tracer: Tracer | None) -> None:
    """Trace with this tracer; None goes back to the settings."""
    global _tracer
    _tracer = tracer


async def _trace(run: Claim, runner: str) -> None:
    try:
        _export(_made(), spans(run, await event_log.read_joined(run.run_id), runner=runner))
    except Exception as error:  # a run is over, traced or not
        logger.warning("run not traced", run_id=run.run_id.hex, error=type(error).__name__)


def _made() -> Tracer:
    """Return the tracer that exports to OTEL_EXPORTER_OTLP_ENDPOINT, in batches on its own OS thread."""
    if _tracer is None:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(resource=Resource.create({"service.name": _NAME}))
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        use_tracer(provider.get_tracer(_NAME))
    assert _tracer is not None
    return _tracer


def _export(tracer: Tracer, made: Sequence[Span]) -> None:
    """Start and end the spans: the first is the run's, the others are within it."""
    whole, *parts = made
    root = _begin(tracer, whole, None)
    within = trace.set_span_in_context(root)
    for part in parts:
        _end(_begin(tracer, part, within), part)
    _end(root, whole)


def _begin(tracer: Tracer, span: Span, within: Any) -> trace.Span:
    return tracer.start_span(
        span.name,
        context=within,
        kind=span.kind,
        attributes=dict(span.attributes),
        start_time=span.begin * 1_000_000,
    )


def _end(begun: trace.Span, span: Span) -> None:
    if span.error:
        begun.set_status(StatusCode.ERROR, span.error)
    begun.end(span.end * 1_000_000)


# the spans of a log


def spans(run: Claim, logged: Sequence[RunEvent], *, runner: str) -> list[Span]:
    """Return the spans of a run: the whole (`invoke_agent`), then stages, model calls and tool calls."""
    first, last = logged[0], logged[-1]
    error = last.fact.code if isinstance(last.fact, events.RunFailed) else ""
    attributes: dict[str, Value] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": runner or _NAME,
        "gen_ai.conversation.id": str(run.thread_id),
        "gen_ai.request.model": run.request.model,
        "parley.run.id": run.run_id.hex,
        "parley.request.id": run.request.request_id,
        "parley.dialect": run.request.dialect,
    }
    if isinstance(last.fact, events.RunCompleted):
        attributes |= _usage(last.fact.usage) | {
            "gen_ai.response.finish_reasons": (last.fact.finish_reason,)
        }
    name = f"invoke_agent {attributes['gen_ai.agent.name']}"
    whole = Span(name, first.at, last.at, attributes | _failed(error), error, SpanKind.SERVER)
    return [whole, *_stages(logged), *_models(run.request.model, logged), *_tools(logged)]


def _stages(logged: Sequence[RunEvent]) -> Iterator[Span]:
    begun: dict[str, int] = {}
    for event in logged:
        match event.fact:
            case events.StageStarted(stage):
                begun[stage] = event.at
            case events.StageCompleted(stage) if stage in begun:
                yield Span(f"stage {stage}", begun.pop(stage), event.at, {"parley.stage": stage})


def _models(model: str, logged: Sequence[RunEvent]) -> Iterator[Span]:
    """Yield a span per model call, from its routing or from the end of the step before it."""
    since = logged[0].at
    for event in logged:
        match event.fact:
            case events.ModelRouted() | events.ToolCallCompleted() | events.RunStarted():
                since = event.at
            case events.ModelCompleted() as done:
                attributes: dict[str, Value] = {
                    "gen_ai.operation.name": "chat",
                    "gen_ai.provider.name": done.provider,
                    "gen_ai.request.model": model,
                    "gen_ai.response.model": done.model,
                    "gen_ai.response.finish_reasons": (done.finish_reason,),
                }
                error = "" if done.finish_reason else "broken_off"
                attributes |= _usage(done.usage) | _failed(error)
                name = f"chat {done.model}"
                yield Span(name, since, event.at, attributes, error, SpanKind.CLIENT)
                since = event.at


def _tools(logged: Sequence[RunEvent]) -> Iterator[Span]:
    begun: dict[str, int] = {}
    for event in logged:
        match event.fact:
            case events.ToolCallStarted(tool_call_id):
                begun[tool_call_id] = event.at
            case events.ToolCallCompleted() as done:
                error = "" if done.ok else (done.error.code if done.error else "tool_error")
                attributes: dict[str, Value] = {
                    "gen_ai.operation.name": "execute_tool",
                    "gen_ai.tool.name": done.tool_name,
                    "gen_ai.tool.call.id": done.tool_call_id,
                }
                since = begun.pop(done.tool_call_id, event.at - done.elapsed_ms)
                name = f"execute_tool {done.tool_name}"
                yield Span(name, since, event.at, attributes | _failed(error), error)


def _usage(usage: events.Usage) -> dict[str, Value]:
    found: dict[str, Value] = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
    }
    return {name: count for name, count in found.items() if count}


def _failed(error: str) -> dict[str, Value]:
    return {"error.type": error} if error else {}
