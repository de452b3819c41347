"""Redis pub/sub directly on the socket; hiredis encodes and decodes the protocol.

A message published, received and decoded costs 43 µs of CPU here; with redis-py's asyncio client and
PubSub 85, with the pub/sub layer of channels_redis 111, with coredis 211 (`benchmarks.alternatives`, 26
November 2026, medians of seven). A run of one token needs four. A subscribed connection cannot publish,
so each loop has two connections.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import hiredis
import structlog
from redis.asyncio import ConnectionPool

log = structlog.get_logger(__name__)

_OPEN_S: Final = 2.0
_BEAT_S: Final = 2.0
_RETRY_S: Final = 0.5
_WAITING: Final = 1024
_UNSENT: Final = 4 * 1024 * 1024
_VERIFIES: Final = {
    "none": ssl.CERT_NONE,
    "optional": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}
_TLS_OPTIONS: Final = frozenset(
    f"ssl_{name}"
    for name in (
        *("ca_certs", "ca_path", "ca_data", "cert_reqs", "check_hostname"),
        *("certfile", "keyfile", "password", "ciphers", "min_version"),
    )
)


class Publisher:
    """Sends messages; it drops the oldest while Redis is down and the newest while it is slow."""

    def __init__(self, url: str) -> None:
        self._pending: deque[bytes] = deque(maxlen=_WAITING)
        self._connection = Connection(url, on_open=self._flush)

    def publish(self, channel: str, message: bytes) -> None:
        """Send soon, without waiting or raising; call it on the event loop."""
        self._connection.keep()
        command = pack("PUBLISH", channel, message)
        if not self._connection.write(command):
            self._pending.append(command)

    def _flush(self) -> None:
        while self._pending:
            self._connection.write(self._pending.popleft())


class Subscriber:
    """Calls `on_message` with the channel and each message on its channels.

    `on_subscribed` gets each channel when its messages begin to arrive, also after an outage.
    """

    def __init__(
        self,
        url: str,
        on_message: Callable[[str, bytes], None],
        *,
        on_subscribed: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._channels: dict[str, None] = {}
        self._on_message, self._on_subscribed = on_message, on_subscribed
        self._connection = Connection(url, on_open=self._resubscribe, on_reply=self._dispatch)

    def subscribe(self, channel: str) -> None:
        """Subscribe to a channel; idempotent."""
        if channel not in self._channels:
            self._channels[channel] = None
            self._connection.write(pack("SUBSCRIBE", channel))
        self._connection.keep()

    def _resubscribe(self) -> None:
        self._connection.write(pack("SUBSCRIBE", *self._channels))

    def _dispatch(self, answer: Any) -> None:
        match answer:
            case [b"message", bytes(channel), bytes(message)]:
                self._on_message(channel.decode(), message)
            case [b"subscribe", bytes(channel), _]:
                self._on_subscribed(channel.decode())


class Connection:
    """A connection to Redis that reconnects when it breaks or gets no reply to PING."""

    def __init__(
        self,
        url: str,
        *,
        on_open: Callable[[], None],
        on_reply: Callable[[Any], None] = lambda _: None,
    ) -> None:
        self._url = url
        self._on_open, self._on_reply = on_open, on_reply
        self._wire: _Wire | None = None
        self._is_down = False
        self._task: asyncio.Task[None] | None = None

    def keep(self) -> None:
        """Connect and stay connected until the loop ends; idempotent."""
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._keep())

    def write(self, command: bytes) -> bool:
        """Send a packed command soon, unless Redis is slow; False if there is no connection."""
        if self._wire is None:
            return False
        self._wire.write(command)
        return True

    async def _keep(self) -> None:
        while True:
            try:
                async with _connect(self._url, self._receive) as wire:
                    self._wire = wire
                    self._on_open()
                    await wire.wait_closed()
            except Exception as error:  # its errors differ by address; a retry may succeed
                self._log_down(error)
            finally:
                self._wire = None
            await asyncio.sleep(_RETRY_S)

    def _log_down(self, error: Exception) -> None:
        """Log an outage once, however many retries fail."""
        if not self._is_down:
            log.warning("Redis pub/sub is down", error=str(error) or type(error).__name__)
        self._is_down = True

    def _receive(self, answer: Any) -> None:
        if self._is_down:
            log.info("Redis pub/sub is back")
            self._is_down = False
        self._on_reply(answer)


class _Wire(asyncio.Protocol):
    """The protocol of one connection."""

    def __init__(self, on_reply: Callable[[Any], None]) -> None:
        self._reader = hiredis.Reader()
        self._on_reply = on_reply
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._commands: list[bytes] = []
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
                self._on_reply(answer)
        except Exception as error:
            self._close(error)

    def connection_lost(self, error: Exception | None) -> None:
        self._close(error or ConnectionError("Redis has closed the connection."))

    def write(self, command: bytes) -> None:
        """Send the command with all that this turn of the loop writes, by one system call."""
        if not self._commands:
            self._loop.call_soon(self._flush)
        self._commands.append(command)

    def _flush(self) -> None:
        commands, self._commands = self._commands, []
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if transport.get_write_buffer_size() < _UNSENT:
            transport.write(b"".join(commands))

    async def wait_closed(self) -> None:
        """Send PING every _BEAT_S until the connection ends; raise its error."""
        while True:
            self._is_silent = True
            self.write(pack("PING"))
            with suppress(TimeoutError):
                async with asyncio.timeout(_BEAT_S):
                    return await asyncio.shield(self._ended)
            if self._is_silent:
                raise ConnectionError("Redis does not answer.")

    def _close(self, error: Exception) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)
            self._ended.exception()  # marks it as retrieved if nobody waits


@asynccontextmanager
async def _connect(url: str, on_reply: Callable[[Any], None]) -> AsyncIterator[_Wire]:
    """Connect to an address of redis-py's, with its options: by TCP, TLS or a Unix socket."""
    place: dict[str, Any] = ConnectionPool.from_url(url).connection_kwargs
    loop = asyncio.get_running_loop()
    wire = _Wire(on_reply)
    async with asyncio.timeout(_OPEN_S):
        if "path" in place:
            await loop.create_unix_connection(lambda: wire, place["path"])
        else:
            secure = url.startswith("rediss:")
            tls = await asyncio.to_thread(_tls, place) if secure else None  # reads certificates
            host, port = place.get("host", "localhost"), place.get("port", 6379)
            await loop.create_connection(lambda: wire, host, port, ssl=tls)
    try:
        wire.write(_auth_command(place.get("username"), place.get("password")))
        yield wire
    finally:
        if wire.transport is not None:
            wire.transport.abort()


def _tls(place: Mapping[str, Any]) -> ssl.SSLContext:
    """Return the context for the `ssl_…` options of an address; raise ValueError for an unknown one."""
    if unknown := sorted(name for name in place if name.startswith("ssl_") and name not in _TLS_OPTIONS):
        raise ValueError(f"REDIS_URL: the option {unknown[0]} is not supported")
    context = ssl.create_default_context(
        cafile=place.get("ssl_ca_certs"),
        capath=place.get("ssl_ca_path"),
        cadata=place.get("ssl_ca_data"),
    )
    wanted = place.get("ssl_cert_reqs", "required")
    if wanted not in _VERIFIES:
        raise ValueError(f"REDIS_URL: ssl_cert_reqs must be one of {', '.join(_VERIFIES)}")
    verifies = _VERIFIES[wanted]
    context.check_hostname = place.get("ssl_check_hostname", True) and verifies is not ssl.CERT_NONE
    context.verify_mode = verifies
    if "ssl_certfile" in place:
        keys = place.get("ssl_keyfile"), place.get("ssl_password")
        context.load_cert_chain(place["ssl_certfile"], *keys)
    if "ssl_ciphers" in place:
        context.set_ciphers(place["ssl_ciphers"])
    if "ssl_min_version" in place:
        context.minimum_version = ssl.TLSVersion(int(place["ssl_min_version"]))
    return context


def _auth_command(username: str | None, password: str | None) -> bytes:
    if not password:
        return b""
    return pack("AUTH", *((username,) if username else ()), password)


def pack(*command: str | bytes) -> bytes:
    """Return a command in Redis's protocol."""
    line: bytes = hiredis.pack_command(command)  # type: ignore[arg-type] # its types allow one word
    return line
