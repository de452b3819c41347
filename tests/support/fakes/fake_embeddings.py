"""A loopback server of OpenAI's `POST /embeddings`, as its API reference has it, that can misbehave.

A text about sleep points one way, any other the other. The model's name says what it does:
`status-500` refuses, `short` leaves the last vector out, `rubbish` answers no JSON, `mixed` gives them
in another order.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

from tests.support.fakes.fake_model import status


class FakeEmbeddings(ThreadingHTTPServer):
    """`asked` holds (path, Authorization, body) of each request."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: FakeEmbeddings

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, self.headers.get("Authorization", ""), body))
        code, content = answer(body["model"], body["input"])
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Nothing."""


def answer(model: str, texts: list[str]) -> tuple[int, bytes]:
    if model.startswith("status-"):
        refused = status(int(model.rpartition("-")[2]))
        return refused.status, cast("bytes", refused.steps[0])
    if model == "rubbish":
        return 200, b"<html>"
    vectors = [[1.0, 0.0] if "sleep" in text.lower() else [0.0, 1.0] for text in texts]
    told = [
        {"object": "embedding", "index": place, "embedding": vector}
        for place, vector in enumerate(vectors)
    ]
    if model == "short":
        told.pop()
    if model == "mixed":
        told.reverse()
    usage = {"prompt_tokens": len(texts), "total_tokens": len(texts)}
    return 200, json.dumps({"object": "list", "data": told, "model": model, "usage": usage}).encode()


@contextmanager
def embeddings_server() -> Iterator[FakeEmbeddings]:
    with FakeEmbeddings() as served:
        thread = threading.Thread(target=served.serve_forever, daemon=True)
        thread.start()
        try:
            yield served
        finally:
            served.shutdown()
            thread.join(10)
