"""Limits on connections: the size and duration of a request's head, and the number per address.

Requests refused here never reach the application but get errors in the same format. After the head,
the application limits the body (`config.http.body_limits`).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from django.conf import settings
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from config import errors
from config.coordination import rate_limits
from config.process.corked_transport import CorkedTransport

HEAD_LIMIT: Final = 65_536  # bytes of request line, headers and trailers
HEAD_S: Final = 10.0
_LAST_LOOK_S: Final = 0.01
MOST_PIPELINED: Final = 64  # requests per connection that wait for earlier responses

Answer: TypeAlias = tuple[int, dict[str, str], bytes]
TurnAway: TypeAlias = Callable[[Any], Answer | None]
"""Return status, headers and body for a request (its ASGI scope) that is refused unheard, or None."""


def let_in(_scope: Any) -> None:
    """Turn nobody away."""


class Connections:
    """The open connections by address, without those of trusted proxies and Unix sockets."""

    def __init__(self) -> None:
        self._addresses: dict[asyncio.BaseTransport, str] = {}
        self._held: Counter[str] = Counter()

    def enter(self, transport: asyncio.BaseTransport) -> None:
        """Count a new connection; raise TooManyRequests if its address has reached the limit."""
        if not settings.CONNECTIONS_PER_ADDRESS:
            return
        address = rate_limits.peer_address(transport.get_extra_info("peername"))
        if address is None:
            return
        if self._held[address] >= settings.CONNECTIONS_PER_ADDRESS:
            raise errors.TooManyRequests(
                "Too many connections from this address.", code="too_many_connections", retry_after=1
            )
        self._addresses[transport] = address
        self._held[address] += 1

    def leave(self, transport: asyncio.BaseTransport) -> None:
        """Remove a connection from the count, if it was counted."""
        address = self._addresses.pop(transport, None)
        if address is not None:
            self._held[address] -= 1
            if not self._held[address]:
                del self._held[address]


connections: Final = Connections()


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on heads, idle connections and connections per address.

    The parser joins the parts of a header without a limit and reports trailers as headers. So this class
    counts the reported bytes, and also the bytes received without a report (an endless header, trailer
    or chunk extension). Trailers are dropped, because the head has been processed by then.
    """

    def __init__(self, *args: Any, turn_away: TurnAway = let_in, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._turn_away = turn_away
        self._reading = False  # inside data_received, where a whole request may come at once
        self._unstarted: tuple[RequestResponseCycle, Any, Answer] | None = None
        self._in_head = False
        self._head_size = 0
        self._silent_size = 0
        self._deadline: asyncio.TimerHandle | None = None
        self._refusal: errors.ParleyError | None = None
        self._answered: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        corked = CorkedTransport(transport, self.loop)
        super().connection_made(corked)
        try:
            connections.enter(corked)
        except errors.TooManyRequests as refusal:
            self._refuse(refusal)
        else:
            self._set_deadline()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        connections.leave(self.transport)
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True  # uvicorn notifies only the last request
            self._answered.message_event.set()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        if self._reading and (answer := self._turn_away(cycle.scope)) is not None:
            self._unstarted = cycle, app, answer
        else:
            super()._start_asgi_task(cycle, app)

    def _answer_unstarted(self, cycle: RequestResponseCycle, app: Any, answer: Answer) -> None:
        """Turn a request away that is here as a whole; the application lets others finish speaking."""
        if cycle.more_body:
            super()._start_asgi_task(cycle, app)
        else:
            self.transport.write(_render(*answer))
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._silent_size += len(data)
        self._reading = True
        super().data_received(data)
        self._reading = False
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return
        if self._unstarted is not None:
            unstarted, self._unstarted = self._unstarted, None
            self._answer_unstarted(*unstarted)
        if self._silent_size > HEAD_LIMIT:
            self._refuse(errors.HeadTooLarge())
        elif self._deadline is None and self._waits_for_client():
            self._set_deadline()

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection, but first read what has come while something held the loop.

        A turn of the loop runs its timers before it reads: the next request may be here already.
        """
        self.timeout_keep_alive_task = self.loop.call_later(_LAST_LOOK_S, self._close_idle)

    def _close_idle(self) -> None:
        super().timeout_keep_alive_handler()

    def _waits_for_client(self) -> bool:
        """Return whether only the client can continue: no response is pending and no keep-alive runs."""
        answered = self.cycle is None or self.cycle.response_complete
        return answered and self.timeout_keep_alive_task is None

    def _set_deadline(self) -> None:
        self._deadline = self.loop.call_later(HEAD_S, self._expire)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _expire(self) -> None:
        """Refuse a partial head; only close if nothing was sent, as there is no request to answer."""
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
        """Count bytes of a head; raise HeadTooLarge, which the parser converts to its own error."""
        self._silent_size = 0
        self._head_size += size
        if self._head_size > HEAD_LIMIT:
            self._refusal = errors.HeadTooLarge()
            raise self._refusal

    def handle_websocket_upgrade(self) -> None:
        self._cancel_deadline()
        super().handle_websocket_upgrade()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that the parser cannot read, or that exceeded a limit."""
        self._refuse(self._refusal or errors.MalformedRequest())

    def _refuse(self, error: errors.ParleyError) -> None:
        """Respond, unless another response is in progress, and close the connection."""
        if not self._is_answering():
            self.transport.write(_render_error(error))
        self.transport.close()

    def _is_answering(self) -> bool:
        if self.cycle is None or self.cycle.response_complete:
            return False
        return self._in_head or self.cycle.response_started or bool(self.pipeline)


class SocketProtocol(WebSocketsSansIOProtocol):
    """uvicorn's WebSocket protocol, which keeps the connection in the count until it is closed."""

    def connection_lost(self, exc: Exception | None) -> None:
        connections.leave(self.transport)
        super().connection_lost(exc)


def _render_error(error: errors.ParleyError) -> bytes:
    """Return the error response, with OpenAI's `error` as well because the path is not known yet."""
    return _render(error.status, *errors.render(error, errors.OPENAI_PATHS[0]))


def _render(status: int, headers: dict[str, str], body: bytes) -> bytes:
    """Return the last response of a connection."""
    said = headers | {"connection": "close"}
    lines = "".join(f"{name}: {value}\r\n" for name, value in said.items())
    return STATUS_LINE[status] + lines.encode() + b"\r\n" + body
