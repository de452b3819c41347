"""Redis pub/sub with nothing between a message and the socket; hiredis writes and reads the protocol.

Two messages stand between a lone run and its first word: the wake-up of a worker, and the word. The
way through a client's pool, locks, retries and time-outs cost 0.95 ms and 1.7 ms of CPU for each of
them, this one 0.4 ms and 0.4. A subscribed connection cannot publish, so a loop holds two lines.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import hiredis
import structlog
from redis.asyncio import ConnectionPool, SSLConnection, UnixDomainSocketConnection

log = structlog.get_logger(__name__)

_OPEN_S: Final = 2.0
_BEAT_S: Final = 2.0
_RETRY_S: Final = 0.5
_WAITING: Final = 1024
_UNSENT: Final = 4 * 1024 * 1024


class Publisher:
    """Sends messages; while Redis is away the oldest are dropped, while it is slow the newest."""

    def __init__(self, url: str) -> None:
        self._waiting: deque[bytes] = deque(maxlen=_WAITING)
        self._line = Line(url, opened=self._flush)

    def publish(self, channel: str, message: bytes) -> None:
        """Send soon; call it on the event loop. Never waits and never raises."""
        self._line.keep()
        command = packed("PUBLISH", channel, message)
        if not self._line.write(command):
            self._waiting.append(command)

    def _flush(self) -> None:
        while self._waiting:
            self._line.write(self._waiting.popleft())


class Subscriber:
    """Calls `heard` with the channel and the message of all that is published on its channels."""

    def __init__(self, url: str, heard: Callable[[str, bytes], None]) -> None:
        self._channels: dict[str, None] = {}
        self._heard = heard
        self._line = Line(url, opened=self._greet, answered=self._take)

    def subscribe(self, channel: str) -> None:
        """Hear this channel too from now on; again is harmless."""
        if channel not in self._channels:
            self._channels[channel] = None
            self._line.write(packed("SUBSCRIBE", channel))
        self._line.keep()

    def _greet(self) -> None:
        self._line.write(packed("SUBSCRIBE", *self._channels))

    def _take(self, answer: Any) -> None:
        match answer:
            case [b"message", bytes(channel), bytes(message)]:
                self._heard(channel.decode(), message)


class Line:
    """A connection to Redis that is made anew whenever it breaks, or answers no PING."""

    def __init__(
        self,
        url: str,
        *,
        opened: Callable[[], None],
        answered: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self._url = url
        self._opened, self._answered = opened, answered
        self._wire: _Wire | None = None
        self._is_down = False
        self._keeping: asyncio.Task[None] | None = None

    def keep(self) -> None:
        """Connect, and stay so until the loop ends; again is harmless."""
        if self._keeping is None or self._keeping.done():
            self._keeping = asyncio.get_running_loop().create_task(self._keep())

    def write(self, command: bytes) -> bool:
        """Send a packed command now; False if there is no connection. A slow Redis gets no more."""
        if self._wire is None:
            return False
        self._wire.write(command)
        return True

    async def _keep(self) -> None:
        while True:
            try:
                async with _opened(self._url, self._hear) as wire:
                    self._wire = wire
                    self._opened()
                    await wire.broken()
            except Exception as error:  # its errors differ by address; the next try may do better
                self._say_down(error)
            finally:
                self._wire = None
            await asyncio.sleep(_RETRY_S)

    def _say_down(self, error: Exception) -> None:
        """Once an outage, however many tries fail in it."""
        if not self._is_down:
            log.warning("Redis pub/sub is down", error=str(error) or type(error).__name__)
        self._is_down = True

    def _hear(self, answer: Any) -> None:
        if self._is_down:
            log.info("Redis pub/sub is back")
            self._is_down = False
        self._answered(answer)


class _Wire(asyncio.Protocol):
    """One connection, from its first byte to its last."""

    def __init__(self, answered: Callable[[Any], None]) -> None:
        self._reader = hiredis.Reader()
        self._answered = answered
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._is_silent = False
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._is_silent = False
        try:
            self._reader.feed(data)
            while (answer := self._reader.gets()) is not False:
                if isinstance(answer, hiredis.ReplyError):
                    raise answer
                self._answered(answer)
        except Exception as error:
            self._end(error)

    def connection_lost(self, error: Exception | None) -> None:
        self._end(error or ConnectionError("Redis has closed the connection."))

    def write(self, command: bytes) -> None:
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() < _UNSENT:
            transport.write(command)

    async def broken(self) -> None:
        """Wait for the end, asking for a sign of life every _BEAT_S; raises what it ended with."""
        while True:
            self._is_silent = True
            self.write(packed("PING"))
            with suppress(TimeoutError):
                async with asyncio.timeout(_BEAT_S):
                    return await asyncio.shield(self._ended)
            if self._is_silent:
                raise ConnectionError("Redis does not answer.")

    def _end(self, error: Exception) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)
            self._ended.exception()  # read here: who has stopped waiting shall not be told again


@asynccontextmanager
async def _opened(url: str, answered: Callable[[Any], None]) -> AsyncIterator[_Wire]:
    """A connection to where the address leads, as redis-py reads it: TCP, TLS or a Unix socket."""
    place: Any = ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]
    loop = asyncio.get_running_loop()
    wire = _Wire(answered)
    async with asyncio.timeout(_OPEN_S):
        if isinstance(place, UnixDomainSocketConnection):
            await loop.create_unix_connection(lambda: wire, place.path)
        else:
            tls = place.ssl_context.get() if isinstance(place, SSLConnection) else None
            await loop.create_connection(lambda: wire, place.host, place.port, ssl=tls)
    try:
        wire.write(_introduction(place.username, place.password))
        yield wire
    finally:
        if wire.transport is not None:
            wire.transport.abort()


def _introduction(username: str | None, password: str | None) -> bytes:
    if not password:
        return b""
    return packed("AUTH", *((username,) if username else ()), password)


def packed(*command: str | bytes) -> bytes:
    """A command as Redis reads it."""
    line: bytes = hiredis.pack_command(command)  # type: ignore[arg-type] # its types know one word
    return line
