"""The answers that Parley gives while tests run, as they leave it.

Three places see all of them: the ASGI application of the session's server (whatever client asked), the
test client of Django, and httpx where a test has a server of its own in another process.
"""

from __future__ import annotations

import gzip
import json
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import httpx

MOST_KEPT: Final = 16 * 2**20
_READ: Final = (
    "application/json",
    "application/schema+json",
    "application/x-ndjson",
    "text/event-stream",
)
_STREAMS: Final = ("text/event-stream", "application/x-ndjson")


@dataclass
class Exchange:
    """One answer, or the frames of one socket; `test` is the one that ran when it began."""

    method: str
    path: str
    test: str
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    pieces: list[bytes] = field(default_factory=list)
    size: int = 0
    is_whole: bool = False

    @property
    def kind(self) -> str:
        """The media type, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip()

    @property
    def is_read(self) -> bool:
        """Whether the body is of a kind that is looked at, and not too large to keep."""
        return self.kind in _READ and self.size <= MOST_KEPT

    @property
    def is_stream(self) -> bool:
        """Whether it has frames, of which each can be read as soon as it is there."""
        return self.kind in _STREAMS

    @property
    def body(self) -> bytes:
        """The body as its reader sees it."""
        raw = b"".join(self.pieces)
        return gzip.decompress(raw) if self.headers.get("content-encoding") == "gzip" else raw

    def json(self) -> Any:
        """The body; ValueError if it is no JSON."""
        return json.loads(self.body)

    def head(self, status: int, headers: Iterator[tuple[str, str]]) -> None:
        self.status = status
        self.headers = {name.lower(): value for name, value in headers}

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.is_read:
            self.pieces.append(piece)


class Records:
    """What has been answered and not been looked at yet; other threads add to it.

    `servers` are those of Parley's that run in processes of their own: `host:port`. What the tests in
    `excused` have asked need not fit.
    """

    def __init__(self) -> None:
        self.test = ""
        self.servers: set[str] = set()
        self.excused: set[str] = set()
        self._ended: deque[Exchange] = deque()

    def excuse(self) -> None:
        """Tell nothing of the answers to this test; an answer ends some time after its client has it."""
        self.excused.add(self.test)

    def begin(self, method: str, path: str) -> Exchange:
        return Exchange(method, path, self.test)

    def end(self, exchange: Exchange) -> None:
        if exchange.status:
            self._ended.append(exchange)

    def taken(self) -> Iterator[Exchange]:
        """Each of them, once."""
        with suppress(IndexError):
            while True:
                yield self._ended.popleft()


records: Final = Records()


class Recorded:
    """An ASGI application, whose answers and frames are recorded."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        exchange = records.begin(scope.get("method", "SOCKET"), scope["path"])

        async def watched(message: Any) -> None:
            _note(exchange, message)
            await send(message)

        try:
            await self.app(scope, receive, watched)
        finally:
            records.end(exchange)


def _note(exchange: Exchange, message: Any) -> None:
    match message["type"]:
        case "http.response.start":
            named = ((n.decode("latin-1"), v.decode("latin-1")) for n, v in message["headers"])
            exchange.head(message["status"], named)
        case "http.response.body":
            exchange.add(message.get("body", b""))
            exchange.is_whole = not message.get("more_body", False)
        case "websocket.accept":
            exchange.head(101, iter([("content-type", "application/x-ndjson")]))
        case "websocket.send" if message.get("text") is not None:
            exchange.add(message["text"].encode() + b"\n")


def record_django() -> None:
    """Record what the test clients of Django get."""
    from django.test import Client

    request = Client.request

    def recorded(self: Client, **environment: Any) -> Any:
        response = request(self, **environment)
        asked = response.request
        exchange = records.begin(asked["REQUEST_METHOD"], asked["PATH_INFO"])
        outside = ("X-Request-Id", "")  # the ASGI application around Django adds it
        exchange.head(response.status_code, iter((*response.items(), outside)))
        if not response.streaming:
            exchange.add(response.content)
            exchange.is_whole = True
        records.end(exchange)
        return response

    Client.request = recorded  # type: ignore[method-assign]


def record_httpx() -> None:
    """Record what clients of httpx get from servers that are not in this process."""
    handle, handle_async = (
        httpx.HTTPTransport.handle_request,
        httpx.AsyncHTTPTransport.handle_async_request,
    )

    def recorded(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        response = handle(self, request)
        exchange = _begun(request, response)
        if exchange is not None:
            response.stream = _Stream(response.stream, exchange)
        return response

    async def recorded_async(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        response = await handle_async(self, request)
        exchange = _begun(request, response)
        if exchange is not None:
            response.stream = _AsyncStream(response.stream, exchange)
        return response

    httpx.HTTPTransport.handle_request = recorded  # type: ignore[method-assign]
    httpx.AsyncHTTPTransport.handle_async_request = recorded_async  # type: ignore[method-assign]


def _begun(request: httpx.Request, response: httpx.Response) -> Exchange | None:
    """The answer's record; None of one that Parley did not give, or that is recorded where it leaves."""
    if request.url.netloc.decode() not in records.servers:
        return None
    exchange = records.begin(request.method, request.url.path)
    exchange.head(response.status_code, iter(response.headers.items()))
    return exchange


class _Stream(httpx.SyncByteStream):
    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._exchange.add(piece)
            yield piece
        self._exchange.is_whole = True

    def close(self) -> None:
        self._stream.close()
        records.end(self._exchange)


class _AsyncStream(httpx.AsyncByteStream):
    def __init__(self, stream: Any, exchange: Exchange) -> None:
        self._stream = stream
        self._exchange = exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for piece in self._stream:
            self._exchange.add(piece)
            yield piece
        self._exchange.is_whole = True

    async def aclose(self) -> None:
        await self._stream.aclose()
        records.end(self._exchange)


def frames_of(exchange: Exchange) -> Iterator[tuple[str, Any]]:
    """The whole frames of a stream: the name of each and its data."""
    if exchange.kind == "application/x-ndjson":
        for sent in exchange.body.split(b"\n")[:-1]:
            if sent.strip():
                yield "", json.loads(sent)
        return
    for block in exchange.body.split(b"\n\n")[:-1]:
        name, data = "", list[str]()
        for line in block.decode().split("\n"):
            if line.startswith("event: "):
                name = line[7:]
            elif line.startswith("data: "):
                data.append(line[6:])
        if data and data != ["[DONE]"]:
            yield name, json.loads("\n".join(data))
