"""OpenTelemetry traces of runs: one trace from the caller through the queue to every tool.

They cost nothing while a run goes on: after its end its spans are made from the log, with the times of
its events. The run's request carries the trace in which it was accepted, so whichever process executes
or ends the run adds to the same one. The ids of spans are computed from the run, so a tool's server can
be told the id of a span that is made later.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import structlog
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import StatusCode, Tracer, format_trace_id

from agents import requests
from agents.requests import Claim, RunRequest
from agents.worker.run_spans import Span, TracedRun, make_spans
from config.process import cancellation
from config.telemetry import tracing
from config.telemetry.span_ids import root_id_of, trace_id_of
from config.telemetry.tracing import Carried
from conversations.log import event_log
from conversations.runs import settling
from conversations.runs.stored_requests import fetch_request

logger = structlog.get_logger(__name__)


def enter_run(claim: Claim) -> None:
    """Put this task into the run's trace: what its tools send on names the run's span."""
    if not tracing.is_on():
        return
    carried = _carried(claim.request)
    parent = trace.get_current_span(tracing.context_of(carried)).get_span_context()
    trace_id = parent.trace_id if parent.is_valid else trace_id_of(claim.run_id)
    tracing.enter(trace_id, root_id_of(claim.run_id), carried)
    structlog.contextvars.bind_contextvars(trace_id=format_trace_id(trace_id))


def trace_later(claim: Claim, runner: str) -> None:
    """Make the spans of an ended run in the background, if traces are on."""
    if tracing.is_on():
        run = TracedRun(claim.run_id, claim.thread_id, claim.request, runner)
        cancellation.run_detached(_trace(run))


def trace_settled_runs() -> None:
    """Trace also the runs that end without their worker."""
    settling.call_after_end(_trace_settled)


def _trace_settled(run_id: UUID) -> None:
    if tracing.is_on():
        cancellation.run_detached(_trace_stored(run_id))


async def _trace_stored(run_id: UUID) -> None:
    try:
        stored = await fetch_request(run_id)
    except Exception as error:
        _report(run_id, error)
        return
    if stored is not None:
        await _trace(TracedRun(run_id, stored.thread_id, requests.load(stored.request)))


async def _trace(run: TracedRun) -> None:
    try:
        logged = await event_log.read_joined(run.run_id)
        if logged:  # it may have been erased meanwhile
            _export(tracing.tracer(), run, make_spans(run, logged))
    except Exception as error:  # a run is over, traced or not
        _report(run.run_id, error)


def _report(run_id: UUID, error: Exception) -> None:
    logger.warning("run not traced", run_id=run_id.hex, error=type(error).__name__)


def _export(tracer: Tracer, run: TracedRun, spans: Sequence[Span]) -> None:
    """Start and end the spans: the first is the run's, the others are within it."""
    whole, *parts = spans
    with tracing.ids(trace_id_of(run.run_id), whole.span_id):
        root = _begin(tracer, whole, tracing.context_of(_carried(run.request)))
    within = trace.set_span_in_context(root, Context())
    for part in parts:
        _end(_begin_part(tracer, part, within), part)
    _end(root, whole)


def _begin_part(tracer: Tracer, span: Span, within: Context) -> trace.Span:
    if not span.span_id:
        return _begin(tracer, span, within)
    with tracing.ids(0, span.span_id):
        return _begin(tracer, span, within)


def _begin(tracer: Tracer, span: Span, within: Context) -> trace.Span:
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


def _carried(request: RunRequest) -> Carried:
    return Carried(request.traceparent, request.tracestate)
