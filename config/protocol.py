"""Connections: how large and how slow the head of a request may be, and how many an address may hold.

What is refused here never reaches the application, and gets the shape of every other error. Once a head
is complete, the deadline of its body is the application's (`config.bodies`).
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any, Final
from uuid import uuid4

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from config import errors, limits

HEAD_LIMIT: Final = 65_536  # bytes of request line, headers and trailers
HEAD_S: Final = 10.0
MOST_PIPELINED: Final = 64  # requests of a connection that wait for the answers before them


class Connections:
    """The open connections by address.

    Those of a trusted proxy are its clients', and those of a Unix socket have no address: neither count.
    """

    def __init__(self) -> None:
        self._addresses: dict[asyncio.BaseTransport, str] = {}
        self._held: Counter[str] = Counter()

    def enter(self, transport: asyncio.BaseTransport) -> None:
        """Count one more connection. TooManyRequests when its address holds as many as it may."""
        if not settings.CONNECTIONS_PER_ADDRESS:
            return
        address = limits.peer_address(transport.get_extra_info("peername"))
        if address is None:
            return
        if self._held[address] >= settings.CONNECTIONS_PER_ADDRESS:
            raise errors.TooManyRequests(
                "Too many connections from this address.", code="too_many_connections", retry_after=1
            )
        self._addresses[transport] = address
        self._held[address] += 1

    def leave(self, transport: asyncio.BaseTransport) -> None:
        """Count one less; a connection that was refused or is not counted changes nothing."""
        address = self._addresses.pop(transport, None)
        if address is not None:
            self._held[address] -= 1
            if not self._held[address]:
                del self._held[address]


connections: Final = Connections()


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on heads, idle connections and connections of an address.

    The parser joins the pieces of a header without any limit, and hands trailers over as headers. So
    what it hands over is counted, and so is what it takes without handing over anything: one header, a
    trailer, a chunk's extension that never ends. A trailer is dropped: by then the head was judged.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._in_head = False
        self._head_size = 0
        self._silent_size = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._refusal: errors.ParleyError | None = None
        self._answered: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        try:
            connections.enter(transport)
        except errors.TooManyRequests as refusal:
            self._refuse(refusal)
        else:
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        connections.leave(self.transport)
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True  # uvicorn tells only the request that came last
            self._answered.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._silent_size += len(data)
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if self._silent_size > HEAD_LIMIT:
            self._refuse(errors.HeadTooLarge())
        elif self._deadline is None and self._waits_for_client():
            self._set_deadline()

    def _waits_for_client(self) -> bool:
        """Whether no answer is being made and no keep-alive runs: only the client can go on."""
        answered = self.cycle is None or self.cycle.response_complete
        return answered and self.timeout_keep_alive_task is None

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEAD_S, self._expire)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        """Half a head is refused; a client that has sent nothing would take an answer for another's."""
        self._deadline = None
        if self._in_head:
            self._refuse(errors.BodyTooSlow("The request line and the headers did not arrive in time."))
        else:
            self.transport.close()

    def on_message_begin(self) -> None:
        self._in_head, self._head_size = True, 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._take(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._take(len(name) + len(value) + 4)
        if self._in_head:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._cancel_deadline()
        if len(self.pipeline) >= MOST_PIPELINED:
            self._refusal = errors.TooManyRequests(retry_after=1)
            raise self._refusal
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._silent_size = 0
        super().on_body(body)

    def _take(self, size: int) -> None:
        """Count bytes of a head. HeadTooLarge, which the parser turns into an error of its own."""
        self._silent_size = 0
        self._head_size += size
        if self._head_size > HEAD_LIMIT:
            self._refusal = errors.HeadTooLarge()
            raise self._refusal

    def handle_websocket_upgrade(self) -> None:
        self._cancel_deadline()
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Answer what the parser cannot read, or what made us stop it."""
        self._refuse(self._refusal or errors.MalformedRequest())

    def _refuse(self, error: errors.ParleyError) -> None:
        """Answer, unless that would go into the middle of another answer, and hang up: where the next
        request begins is unknown."""
        if not self._is_answering():
            self.transport.write(_answer(error))
        self.transport.close()

    def _is_answering(self) -> bool:
        if self.cycle is None or self.cycle.response_complete:
            return False
        return self._in_head or self.cycle.response_started or bool(self.pipeline)


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol; the connection counts for its address until it is closed."""

    def connection_lost(self, exc: Exception | None) -> None:
        connections.leave(self.transport)
        super().connection_lost(exc)


def _answer(error: errors.ParleyError) -> bytes:
    """The refusal with OpenAI's words too: no address is known yet, and its clients show no others."""
    request_id = uuid4().hex
    told = errors.body(error) | {"request_id": request_id, "error": errors.openai_error(error)}
    body = json.dumps(told).encode()
    headers = errors.headers(error) | {
        "content-type": "application/json",
        "content-length": str(len(body)),
        "x-request-id": request_id,
        "connection": "close",
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return STATUS_LINE[error.status] + lines.encode() + b"\r\n" + body
