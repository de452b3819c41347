"""A span per HTTP request, by OpenTelemetry's HTTP conventions; it joins the caller's `traceparent`.

It holds the route and the status, never a query or a body: a query may carry a signature. Probes and
files are not traced. Nothing is done while traces are off.
"""

from __future__ import annotations

from typing import Any, Final

import structlog
from asgiref.typing import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    HTTPScope,
    Scope,
)
from django.urls import Resolver404, resolve
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, StatusCode, format_trace_id

from config.telemetry import tracing

_NOT_TRACED: Final = ("/health", "/ready", "/metrics", "/static/", "/favicon.ico")
_METHODS: Final = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class HttpSpans:
    """Records each request as a span, from its arrival to the end of its answer."""

    def __init__(self, app: ASGI3Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] != "http" or not tracing.is_on() or scope["path"].startswith(_NOT_TRACED):
            await self.app(scope, receive, send)
            return
        await self._traced(scope, receive, send)

    async def _traced(
        self, scope: HTTPScope, receive: ASGIReceiveCallable, send: ASGISendCallable
    ) -> None:
        span = _begin(scope)

        async def send_noting_status(event: ASGISendEvent) -> None:
            if event["type"] == "http.response.start":
                _note_status(span, event["status"])
            await send(event)

        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                await self.app(scope, receive, send_noting_status)
        except Exception as error:
            _fail(span, type(error).__name__)
            raise
        finally:
            span.end()


def _begin(scope: HTTPScope) -> Span:
    method = scope["method"] if scope["method"] in _METHODS else "_OTHER"
    route = _route(scope["path"])
    attributes: dict[str, Any] = {
        "http.request.method": method,
        "url.scheme": scope["scheme"],
        "network.protocol.version": scope["http_version"],
    }
    if route:
        attributes["http.route"] = route
    span = tracing.tracer().start_span(
        f"{method} {route}" if route else method,
        context=tracing.read_headers(tracing.w3c_headers(scope["headers"])),
        kind=SpanKind.SERVER,
        attributes=attributes,
    )
    trace_id = format_trace_id(span.get_span_context().trace_id)
    structlog.contextvars.bind_contextvars(trace_id=trace_id)
    return span


def _route(path: str) -> str:
    """Return the pattern of the address, which holds no id; "" for an address that is none of ours."""
    try:
        return f"/{resolve(path).route}"
    except Resolver404:
        return ""


def _note_status(span: Span, status: int) -> None:
    span.set_attribute("http.response.status_code", status)
    if status >= 500:
        _fail(span, str(status))


def _fail(span: Span, error: str) -> None:
    span.set_attribute("error.type", error)
    span.set_status(StatusCode.ERROR)
