"""The load client: it starts a run and reads its stream to the end.

It must stay far cheaper than what it measures, so it speaks HTTP over a bare protocol and looks
for text with one regular expression over raw bytes.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import httptools

HOST = "127.0.0.1"
FRAME_END = b"\n\n"


@dataclass(frozen=True)
class Call:
    """One HTTP request; a body makes it a POST of JSON, `last_id` one that goes on after that frame."""

    path: str
    payload: Any = None
    token: str = ""
    last_id: int = 0

    def encode(self) -> bytes:
        body = b"" if self.payload is None else json.dumps(self.payload).encode()
        lines = [
            f"{'POST' if body else 'GET'} {self.path} HTTP/1.1",
            f"host: {HOST}",
            "connection: close",
        ]
        if self.token:
            lines.append(f"authorization: Bearer {self.token}")
        if self.last_id:
            lines.append(f"last-event-id: {self.last_id}")
        if body:
            lines += ["content-type: application/json", f"content-length: {len(body)}"]
        return "\r\n".join([*lines, "", ""]).encode() + body


@dataclass(frozen=True)
class Target:
    """A server as the client sees it: how a run starts, where its events are, what carries text."""

    name: str
    port: int
    start: Callable[[str], Call]
    delta: re.Pattern[bytes]
    follow: Callable[[Any], Call] | None = None
    end: bytes = b""
    error: bytes = b"event: error\n"


def parley(port: int, token: str, model: str) -> Target:
    """The text run: POST answers 202, then GET the events (specs/text-run.md §1-2)."""
    return Target(
        "Parley",
        port,
        start=lambda prompt: Call("/api/v1/agent/runs", {"model": model, "text": prompt}, token),
        follow=lambda accepted: Call(f"/api/v1/agent/runs/{accepted['run_id']}/events", token=token),
        delta=re.compile(rb'event: content_delta\n[^{]*\{[^\n]*?"delta": ?"([^"\\]*)"'),
        end=b"event: completed\n",
    )


def json_proxy(port: int) -> Target:
    """`benchmarks.json_proxy`: the least that a server with events of its own has to do."""
    return _stream("JSON proxy", port)


def django_view(port: int) -> Target:
    """`benchmarks.django_view`: what a Django developer writes by hand."""
    return _stream("Django view", port)


def _stream(name: str, port: int) -> Target:
    return Target(
        name,
        port,
        start=lambda prompt: Call("/stream", {"prompt": prompt}),
        delta=re.compile(rb'"delta": ?"([^"\\]*)"'),
    )


def fake_model(port: int) -> Target:
    """The fake model itself: the ceiling of this client."""
    body = {"model": "bench", "stream": True}
    return Target(
        "fake model itself",
        port,
        start=lambda prompt: Call(
            "/v1/chat/completions", body | {"messages": [{"role": "user", "content": prompt}]}
        ),
        delta=re.compile(rb'"content":"(t[^"\\]*)"'),
    )


# --- one run --------------------------------------------------------------------------------------


class Exchange(asyncio.Protocol):
    """One request and its answer on a connection of its own; the body goes to `on_body` as it comes."""

    def __init__(self, on_body: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self.on_body = on_body  # httptools calls it directly
        self.parser = httptools.HttpResponseParser(self)
        self.status: asyncio.Future[int] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.answered_at = 0.0
        self.headers: dict[bytes, bytes] = {}
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(error)

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(exc or ConnectionError("the server closed the connection"))

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers[name.lower()] = value

    def on_headers_complete(self) -> None:
        self.answered_at = time.perf_counter()
        self.status.set_result(self.parser.get_status_code())

    def on_message_complete(self) -> None:
        self.ended.set_result(None)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def _fail(self, error: Exception) -> None:
        for future in (self.status, self.ended):
            if not future.done():
                future.set_exception(error)
                future.exception()  # seen: a run that was given up must not log it again


async def send(port: int, call: Call, on_body: Callable[[bytes], None]) -> tuple[Exchange, float]:
    """Open a connection, write the request; the exchange and the clock at that moment."""
    loop = asyncio.get_running_loop()
    transport, exchange = await loop.create_connection(lambda: Exchange(on_body), HOST, port)
    request, sent_at = call.encode(), time.perf_counter()
    transport.write(request)
    return exchange, sent_at


async def fetch(port: int, call: Call) -> Any:
    """A plain request with a JSON answer."""
    body = bytearray()
    exchange, _ = await send(port, call, body.extend)
    status = await exchange.status
    await exchange.ended
    exchange.close()
    if status >= 400:
        raise RuntimeError(f"{call.path}: HTTP {status} {bytes(body[:200])!r}")
    return json.loads(body)


@dataclass
class Run:
    """What one run did, in seconds since its POST was written."""

    accept: float = 0.0
    first: float = 0.0
    total: float = 0.0
    frames: int = 0
    text: bytes = b""
    error: str = ""


class Reader:
    """Cuts a body into whole frames and keeps their text."""

    def __init__(self, target: Target, run: Run) -> None:
        self.target = target
        self.run = run
        self.rest = b""
        self.sent_at = 0.0
        self.finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def feed(self, data: bytes) -> None:
        whole, end, rest = (self.rest + data).rpartition(FRAME_END)
        self.rest = rest
        if not end:
            return
        whole += end
        if pieces := self.target.delta.findall(whole):
            if not self.run.text:
                self.run.first = time.perf_counter() - self.sent_at
            self.run.frames += len(pieces)
            self.run.text += b"".join(pieces)
        if self.target.error in whole:
            self.run.error = whole[whole.index(self.target.error) :][:300].decode(errors="replace")
        ended = self.run.error or (self.target.end and self.target.end in whole)
        if ended and not self.finished.done():
            self.finished.set_result(None)


async def run_once(target: Target, prompt: str, *, limit_s: float, run: Run | None = None) -> Run:
    """Start one run and read it to its end; whatever goes wrong is in `error`."""
    run = run or Run()
    try:
        async with asyncio.timeout(limit_s):
            await _follow(target, prompt, run)
    except Exception as error:
        run.error = run.error or f"{type(error).__name__}: {error}"[:300]
    return run


async def _follow(target: Target, prompt: str, run: Run) -> None:
    reader, accepted = Reader(target, run), bytearray()
    sink: Callable[[bytes], None] = accepted.extend if target.follow else reader.feed
    exchange, reader.sent_at = await send(target.port, target.start(prompt), sink)
    try:
        status = await exchange.status
        run.accept = exchange.answered_at - reader.sent_at
        if status >= 400:
            await exchange.ended
            raise RuntimeError(f"POST: HTTP {status} {bytes(accepted[:200] or reader.rest[:200])!r}")
        if target.follow is not None:
            await exchange.ended
            exchange.close()
            exchange, _ = await send(target.port, target.follow(json.loads(accepted)), reader.feed)
            if (status := await exchange.status) >= 400:
                raise RuntimeError(f"GET events: HTTP {status}")
        await _end(reader, exchange)
        run.total = time.perf_counter() - reader.sent_at
    finally:
        exchange.close()


async def _end(reader: Reader, exchange: Exchange) -> None:
    """Wait for the last frame, or for the end of the body where the target names no last frame."""
    if not reader.target.end:
        await exchange.ended
        return
    await asyncio.wait({reader.finished, exchange.ended}, return_when=asyncio.FIRST_COMPLETED)
    if not reader.finished.done():
        raise ConnectionError("the stream ended before its last frame")
