"""A collector on loopback that speaks OTLP over HTTP, decoded with OpenTelemetry's own messages."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


@dataclass(frozen=True)
class CollectedSpan:
    """A span as a collector stores it; ids in hexadecimal digits, times in nanoseconds."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: str
    begin: int
    end: int
    attributes: dict[str, Any]
    failed: bool
    trace_state: str
    resource: dict[str, Any]


class OtlpCollector:
    """Listens while it is entered; `raw` is every body that came, unpacked."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.paths: list[str] = []
        self._spans: list[CollectedSpan] = []
        self._metrics: list[ExportMetricsServiceRequest] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def spans(self) -> list[CollectedSpan]:
        return list(self._spans)

    @property
    def metrics(self) -> list[ExportMetricsServiceRequest]:
        return list(self._metrics)

    def take(self, path: str, body: bytes) -> bytes:
        """Store an export; return the answer."""
        self.paths.append(path)
        self.raw.append(body)
        if path == "/v1/traces":
            self._spans += _spans(ExportTraceServiceRequest.FromString(body))
            return bytes(ExportTraceServiceResponse().SerializeToString())
        assert path == "/v1/metrics", path
        self._metrics.append(ExportMetricsServiceRequest.FromString(body))
        return bytes(ExportMetricsServiceResponse().SerializeToString())

    def wait_for(self, fits: Callable[[CollectedSpan], bool]) -> CollectedSpan:
        """Return the first span that fits, once it has come."""
        until = time.monotonic() + 20
        while time.monotonic() < until:
            for span in self.spans:
                if fits(span):
                    return span
            time.sleep(0.02)
        raise AssertionError(f"no such span among {[span.name for span in self.spans]}")

    def _handler(collector) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                answer = collector.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _spans(request: ExportTraceServiceRequest) -> list[CollectedSpan]:
    return [
        CollectedSpan(
            name=span.name,
            trace_id=span.trace_id.hex(),
            span_id=span.span_id.hex(),
            parent_id=span.parent_span_id.hex(),
            kind=span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
            begin=span.start_time_unix_nano,
            end=span.end_time_unix_nano,
            attributes=plain(span.attributes),
            failed=span.status.code == span.status.STATUS_CODE_ERROR,
            trace_state=span.trace_state,
            resource=plain(of_resource.resource.attributes),
        )
        for of_resource in request.resource_spans
        for of_scope in of_resource.scope_spans
        for span in of_scope.spans
    ]


def plain(attributes: Any) -> dict[str, Any]:
    """Return OTLP's attributes as Python's values."""
    return {one.key: _value(one.value) for one in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)
