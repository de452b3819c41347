"""A loopback Exa: what it answers is said by the query, so that tests at once do not meet."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from pytest_django import Settings

from prompts import app_settings
from prompts.endpoints import web_search_key as web_search_key
from prompts.models import AppSetting

KEY = "exa-cAnArYkEy0123456789abcdef"


@dataclass(frozen=True)
class Answer:
    """A status and a body; `stay` holds the answer back until the fake is closed."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    stay: bool = False
    cut: bool = False


@dataclass(frozen=True)
class Asked:
    """What Exa was sent."""

    path: str
    key: str
    body: dict[str, Any]


def page(**more: Any) -> dict[str, Any]:
    """A result as Exa tells it, where the text is asked for."""
    return {
        "id": "https://example.com/a",
        "title": "Training news",
        "url": "https://example.com/a",
        "publishedDate": "2026-11-01T00:00:00.000Z",
        "author": "A. Coach",
        "image": "https://example.com/a.png",
        "favicon": "https://example.com/favicon.ico",
        "text": "Short\n text.",
    } | more


def found(*items: Any) -> Answer:
    """Search results."""
    cost = {"total": 0.006, "search": {"neural": 0.005}, "contents": {"text": 0.001}}
    about = {"requestId": "r", "resolvedSearchType": "neural", "searchTime": 471.3, "costDollars": cost}
    return Answer(body=json.dumps(about | {"results": items}).encode())


def refused(status: int, tag: str, words: str = "Refused.") -> Answer:
    """A refusal; its tags are an open set."""
    return Answer(status, json.dumps({"requestId": "r", "error": words, "tag": tag}).encode())


class FakeExa:
    """The server, on threads of its own between `__enter__` and `__exit__`."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: dict[str, Answer] = {}
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def requests_for(self, query: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.body["query"] == query]


@contextmanager
def switched_on(exa: FakeExa, settings: Settings) -> Iterator[FakeExa]:
    """Staff have set up this Exa, and switched the search on."""
    settings.EXA_BASE_URL = exa.url
    web_search_key.store_key(KEY, by=None)
    app_settings.change("web_search_enabled", True, by=None)
    forget()
    yield exa
    web_search_key.store_key("", by=None)
    AppSetting.objects.filter(pk="web_search_enabled").delete()
    forget()


def forget() -> None:
    web_search_key._sealed.clear()
    app_settings.clear_cache()


def _handler(exa: FakeExa) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            exa.asked.append(Asked(self.path, self.headers.get("x-api-key", ""), body))
            answer = exa.answers.get(body["query"], Answer(500))
            if answer.stay:
                exa.closing.wait(30)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer.body) + (100 if answer.cut else 0)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: object) -> None:
            pass

    return Handler
