"""An HTTP/2 client for many streams: connections by TLS, requests side by side, bodies as they come."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, cast

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection

from benchmarks.fronts import HOST

_WINDOW: Final = 2**24
_FRAME_HEAD: Final = 9
_GOAWAY: Final = 7


class Exchange:
    """A request and its answer; the body goes to `on_body` as it comes."""

    def __init__(self, on_body: Callable[[bytes], None]) -> None:
        loop = asyncio.get_running_loop()
        self.on_body = on_body
        self.status: asyncio.Future[int] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.headers: dict[str, str] = {}

    def fail(self, error: Exception) -> None:
        for future in (self.status, self.ended):
            if not future.done():
                future.set_exception(error)
                future.exception()  # seen: nobody need wait for both


class Connection(asyncio.Protocol):
    """A connection of HTTP/2 and the exchanges on it."""

    def __init__(self) -> None:
        self._h2 = H2Connection(H2Configuration(client_side=True, header_encoding="utf-8"))
        self._open: dict[int, Exchange] = {}
        self._authority = ""
        self._rest = b""
        self._lost = asyncio.get_running_loop().create_future()

    @classmethod
    async def to(cls, port: int, *, source: str = HOST, certificate: str) -> Self:
        """Connect to a port of this machine, from this address of it."""
        context = ssl.create_default_context(cafile=certificate)
        context.set_alpn_protocols(["h2"])
        loop = asyncio.get_running_loop()
        _, made = await loop.create_connection(
            cls, HOST, port, ssl=context, server_hostname=HOST, local_addr=(source, 0)
        )
        made._authority = f"{HOST}:{port}"
        return made

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass
        chosen = transport.get_extra_info("ssl_object").selected_alpn_protocol()
        assert chosen == "h2", f"the proxy speaks {chosen}"
        self._h2.initiate_connection()
        self._h2.increment_flow_control_window(_WINDOW)
        self._write()

    def data_received(self, data: bytes) -> None:
        for event in self._h2.receive_data(self._without_goaway(data)):
            self._take(event)
        self._write()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set_result(None)
        for exchange in self._open.values():
            exchange.fail(exc or ConnectionError("the proxy closed the connection"))

    def request(
        self,
        path: str,
        on_body: Callable[[bytes], None],
        *,
        headers: Mapping[str, str],
        payload: Any = None,
        announced: int = 0,
    ) -> Exchange:
        """Send a GET, a POST of small JSON, or the head of one whose `announced` bytes never come."""
        body = b"" if payload is None else json.dumps(payload).encode()
        size = announced or len(body)
        head = {":method": "POST" if size else "GET", ":path": path}
        head |= {":scheme": "https", ":authority": self._authority, **headers}
        if size:
            head |= {"content-type": "application/json", "content-length": str(size)}
        number = self._h2.get_next_available_stream_id()
        exchange = self._open[number] = Exchange(on_body)
        self._h2.send_headers(number, list(head.items()), end_stream=not size)
        if body:
            self._h2.send_data(number, body, end_stream=True)
        self._write()
        return exchange

    async def fetch(self, path: str, *, headers: Mapping[str, str], payload: Any = None) -> Any:
        """Send a request and return the JSON of its answer; RuntimeError if it is refused."""
        body = bytearray()
        exchange = self.request(path, body.extend, headers=headers, payload=payload)
        status = await exchange.status
        await exchange.ended
        if status >= 400:
            raise RuntimeError(f"{path}: HTTP {status} {bytes(body[:200])!r}")
        return json.loads(body)

    async def close(self) -> None:
        """Hang up."""
        self._transport.abort()
        await self._lost

    def _without_goaway(self, data: bytes) -> bytes:
        """Return the whole frames but GOAWAY, after which h2 would read nothing more.

        A proxy that reads its files again sends it and goes on with its streams (RFC 9113 §6.8).
        """
        self._rest += data
        whole = list[bytes]()
        while len(self._rest) >= _FRAME_HEAD:
            size = _FRAME_HEAD + int.from_bytes(self._rest[:3])
            if len(self._rest) < size:
                break
            if self._rest[3] != _GOAWAY:
                whole.append(self._rest[:size])
            self._rest = self._rest[size:]
        return b"".join(whole)

    def _take(self, event: Any) -> None:
        exchange = self._open.get(getattr(event, "stream_id", None) or 0)
        if exchange is None:
            return
        match event:
            case events.ResponseReceived():
                exchange.headers = dict(cast("list[tuple[str, str]]", event.headers))
                exchange.status.set_result(int(exchange.headers[":status"]))
            case events.DataReceived():
                exchange.on_body(event.data)
                if event.flow_controlled_length:
                    self._h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case events.StreamEnded():
                exchange.ended.set_result(None)
                del self._open[event.stream_id]
            case events.StreamReset():
                exchange.fail(ConnectionError(f"the proxy reset the stream: {event.error_code}"))
                del self._open[event.stream_id]

    def _write(self) -> None:
        if data := self._h2.data_to_send():
            self._transport.write(data)


class Arrivals:
    """When each frame of a stream came, by its id; the text is that of Parley's text run."""

    def __init__(self) -> None:
        self.at: dict[int, float] = {}
        self.body = bytearray()
        self._seen = 0

    def feed(self, data: bytes) -> None:
        """Take a piece of the body; a frame has come when its last byte has."""
        now = time.perf_counter()
        self.body += data
        end = self.body.rfind(b"\n\n")
        for line in bytes(self.body[self._seen : max(end, self._seen)]).split(b"\n"):
            if line.startswith(b"id: "):
                self.at[int(line[4:])] = now
        self._seen = max(end, self._seen)

    @property
    def whole(self) -> bool:
        """Whether the run's last frame has come."""
        return b"event: completed\n" in self.body


def delays(through: Arrivals, direct: Arrivals) -> list[tuple[float, float]]:
    """Return by how many seconds each frame came later through the proxy than beside it, and when.

    Frames that were there before both readers had begun say nothing.
    """
    begun = max(min(through.at.values()), min(direct.at.values()))
    both = through.at.keys() & direct.at.keys()
    frames = ((through.at[place], direct.at[place]) for place in both)
    return [(came - beside, came) for came, beside in frames if beside > begun]
