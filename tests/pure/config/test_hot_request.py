"""The headers of a hot request read as those of Django's own request do."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from django.core.handlers.asgi import ASGIRequest

from config.http.hot_request import HotRequest

_HEADERS = [
    (b"host", b"parley.test"),
    (b"content-type", b"application/json"),
    (b"content-length", b"2"),
    (b"last-event-id", b"7"),
    (b"accept", b"text/event-stream"),
    (b"accept", b"*/*"),
    (b"x_run_deadline", b"9"),
]


def _request(kind: type[ASGIRequest]) -> Any:
    scope = {"type": "http", "method": "POST", "path": "/api/v1/agent/runs", "headers": _HEADERS}
    return kind(scope, BytesIO())


@pytest.mark.parametrize(
    "name",
    [
        "Last-Event-ID",
        "last-event-id",
        "LAST_EVENT_ID",
        "Accept",
        "Content-Type",
        "content_length",
        "Host",
    ],
)
def test_a_header_is_found_by_any_spelling(name: str) -> None:
    mine, djangos = _request(HotRequest).headers, _request(ASGIRequest).headers
    assert name in mine
    assert mine[name] == mine.get(name) == djangos[name] != ""


@pytest.mark.parametrize("name", ["X-Run-Deadline", "HTTP_ACCEPT", "Request-Method", "", "Server-Name"])
def test_what_was_not_sent_or_is_no_header_is_not_found(name: str) -> None:
    mine, djangos = _request(HotRequest).headers, _request(ASGIRequest).headers
    assert name not in djangos
    assert name not in mine
    assert mine.get(name) is None
    assert mine.get(name, "none") == "none"
    with pytest.raises(KeyError):
        mine[name]


def test_all_headers_are_listed_once() -> None:
    mine, djangos = _request(HotRequest).headers, _request(ASGIRequest).headers
    assert dict(mine) == dict(djangos)
    assert len(mine) == len(djangos) == 5
