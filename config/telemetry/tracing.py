"""The traces of this process: whether they are on, where they go, and which one a piece of work is in.

Parley has a provider of its own and does not set OpenTelemetry's global one: a library that traces
itself with that stays silent. What crosses processes is W3C's `traceparent` and `tracestate`
(w3.org/TR/trace-context). The SDK is of the extra `otel`; while traces are off nothing here imports it.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

from django.conf import settings
from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, NoOpTracer, SpanContext, TraceFlags, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

NAME: Final = "parley"
_W3C: Final = TraceContextTextMapPropagator()
_LONGEST_STATE: Final = 512  # W3C: at least this much of a tracestate should be passed on
_wanted: Final[ContextVar[tuple[int, int] | None]] = ContextVar("wanted ids", default=None)
_provider: TracerProvider | None = None
_making: Final = threading.Lock()


class Carried(NamedTuple):
    """The trace that a piece of work belongs to, in the two headers of W3C; empty: none."""

    traceparent: str = ""
    tracestate: str = ""


def is_on() -> bool:
    """Return whether traces are sent."""
    return bool(settings.OTEL_TRACES)


def read_headers(headers: Mapping[str, str]) -> Context:
    """Return the context of a caller's headers; a malformed `traceparent` counts as none (§3.2.3)."""
    return _W3C.extract(headers, context=Context())


def carry() -> Carried:
    """Return the trace of the current work, to be stored with what will be done later."""
    if not is_on():
        return Carried()
    headers: dict[str, str] = {}
    _W3C.inject(headers)
    state = headers.get("tracestate", "")
    return Carried(headers.get("traceparent", ""), state if len(state) <= _LONGEST_STATE else "")


def context_of(carried: Carried) -> Context:
    """Return the context in which a span becomes part of the carried trace."""
    return read_headers({name: value for name, value in carried._asdict().items() if value})


def enter(trace_id: int, span_id: int, carried: Carried) -> None:
    """Put the rest of this task into a span whose record is made later, with the same ids."""
    contexts.attach(trace.set_span_in_context(_span_to_come(trace_id, span_id, context_of(carried))))


@contextmanager
def within(span_id: int) -> Iterator[None]:
    """Put a piece of work into a span of the current trace whose record is made later."""
    here = trace.get_current_span().get_span_context()
    if not here.is_valid:
        yield
        return
    span = _span_to_come(here.trace_id, span_id, contexts.get_current())
    token = contexts.attach(trace.set_span_in_context(span))
    try:
        yield
    finally:
        contexts.detach(token)


def _span_to_come(trace_id: int, span_id: int, parent: Context) -> NonRecordingSpan:
    """Return the span; one without a parent counts as sampled."""
    above = trace.get_current_span(parent).get_span_context()
    flags = above.trace_flags if above.is_valid else TraceFlags(TraceFlags.SAMPLED)
    return NonRecordingSpan(SpanContext(trace_id, span_id, False, flags, above.trace_state))


@contextmanager
def ids(trace_id: int, span_id: int) -> Iterator[None]:
    """Give the next span these ids; a span with a parent has the parent's trace id."""
    token = _wanted.set((trace_id, span_id))
    try:
        yield
    finally:
        _wanted.reset(token)


def tracer() -> Tracer:
    """Return the tracer that sends to the OTLP address, in batches on an operating-system thread.

    While no traces are sent, return one that records nothing: late work must not open what was stopped.
    """
    provider = _made()
    return NoOpTracer() if provider is None else provider.get_tracer(NAME)


def flush() -> None:
    """Send what has been recorded, and wait until it is sent."""
    if _provider is not None:
        _provider.force_flush()


def stop() -> None:
    """Send the rest and forget the provider; the next span makes a new one."""
    global _provider
    with _making:
        stopping, _provider = _provider, None
    if stopping is not None:
        stopping.shutdown()


def _made() -> TracerProvider | None:
    global _provider
    if _provider is None:
        with _making:
            if _provider is None and is_on():
                _provider = _new_provider()
            return _provider
    return _provider


def _new_provider() -> TracerProvider:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    from config.telemetry.resource import make_resource

    class Ids(RandomIdGenerator):
        """Random ids, but for spans whose ids were already given to others."""

        def generate_trace_id(self) -> int:
            wanted = _wanted.get()
            return wanted[0] if wanted else super().generate_trace_id()

        def generate_span_id(self) -> int:
            wanted = _wanted.get()
            return wanted[1] if wanted else super().generate_span_id()

    provider = TracerProvider(resource=make_resource(), id_generator=Ids())
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def w3c_headers(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Return W3C's two headers of an ASGI scope's list; the first of each."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name in (b"traceparent", b"tracestate"):
            found.setdefault(name.decode(), value.decode("latin-1"))
    return found
