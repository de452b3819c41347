"""Sentry on loopback: it takes envelopes (develop.sentry.dev, Envelopes) and keeps their events."""

from __future__ import annotations

import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class SentryServer:
    """Listens while it is entered; `raw` is every body that came, unpacked."""

    def __init__(self) -> None:
        self.raw: list[bytes] = []
        self.kinds: list[str] = []
        self._events: list[dict[str, Any]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.dsn = f"http://public-key@127.0.0.1:{self._http.server_address[1]}/1"

    def __enter__(self) -> Self:
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()

    @property
    def events(self) -> list[dict[str, Any]]:
        return list(self._events)

    def named(self, message: str, seconds: float = 20) -> dict[str, Any]:
        """Return the one event of this message, once it has come."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if found := [one for one in self.events if one["logentry"]["message"] == message]:
                (only,) = found
                return only
            time.sleep(0.02)
        raise AssertionError(f"no {message!r} among {[one.get('logentry') for one in self.events]}")

    def take(self, body: bytes) -> None:
        self.raw.append(body)
        lines = body.split(b"\n")
        for head, item in zip(lines[1::2], lines[2::2], strict=False):
            kind = json.loads(head)["type"]
            self.kinds.append(kind)
            if kind == "event":
                self._events.append(json.loads(item))

    def _handler(server) -> type[BaseHTTPRequestHandler]:  # noqa: N805
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                assert self.path == "/api/1/envelope/"
                body = self.rfile.read(int(self.headers["Content-Length"]))
                packed = self.headers.get("Content-Encoding") == "gzip"
                server.take(gzip.decompress(body) if packed else body)
                self.send_response(200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                pass

        return Handler
