"""Notifications through PostgreSQL's LISTEN and NOTIFY, where there is no Redis.

A commit with a NOTIFY in it takes a lock that all such commits of the server's database share. So
notifications never go with what they tell about: one statement after that commit sends all that have
gathered since the one before, and writes nothing that must reach the disk. What such a statement meets,
such as a full queue, harms no run.

A payload holds less than 8,000 bytes of text, so a message is Base64 in one part or several; PostgreSQL
delivers the parts of one statement together and in order.
"""

from __future__ import annotations

import asyncio
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final

import msgspec
import psycopg
import structlog

from config import database
from config.coordination.memory_exchange import MISSED, Exchange, Listener, Message
from config.coordination.postgres_listener import PostgresListener

log = structlog.get_logger(__name__)

PREFIX: Final = "parley_"
CARRIED: Final = 16 * 1024
"""Bytes of one text that a notification carries; who follows the run reads what is longer."""
_PART: Final = 5_900  # bytes; 7,868 as Base64
_WAITING: Final = 1_024
_NOTIFY: Final = """
SELECT pg_notify(channel, payload) FROM unnest(%s::text[], %s::text[]) AS sent(channel, payload)
"""


class PostgresExchange(Exchange):
    """The listeners of one loop, connected to other processes through PostgreSQL."""

    def __init__(self) -> None:
        super().__init__()
        self._sender = Sender()
        self._listener = PostgresListener(Reassembly(self._receive).add, on_listening=self._recheck)

    def notify(self, group: str, message: Message) -> None:
        self._sender.send(PREFIX + group, msgspec.msgpack.encode(message))

    def carries(self, size: int) -> bool:
        return size <= CARRIED

    @contextmanager
    def subscribe(self, group: str, listener: Listener) -> Iterator[None]:
        with super().subscribe(group, listener):
            self._listener.subscribe(PREFIX + group)
            yield

    def _receive(self, channel: str, message: bytes) -> None:
        self._deliver_encoded(channel.removeprefix(PREFIX), message)

    def _recheck(self, channel: str) -> None:
        self._deliver(channel.removeprefix(PREFIX), MISSED)


class Sender:
    """Sends messages with one statement in flight at a time; while that takes long, drops the oldest."""

    def __init__(self) -> None:
        self._pending: deque[tuple[str, bytes]] = deque(maxlen=_WAITING)
        self._sending: asyncio.Task[None] | None = None
        self._numbers = count()
        self._is_down = False

    def send(self, channel: str, message: bytes) -> None:
        """Send soon, without waiting or raising; call it on the event loop."""
        self._pending.append((channel, message))
        if self._sending is None or self._sending.done():
            self._sending = asyncio.get_running_loop().create_task(self._send_all())
            database.finish_before_close(self._sending)  # a command ends right after it has notified

    async def _send_all(self) -> None:
        while self._pending:
            payloads = [
                (channel, payload)
                for channel, message in self._pending
                for payload in split(message, next(self._numbers))
            ]
            self._pending.clear()
            try:
                async with database.connection() as connection:
                    await connection.execute(_NOTIFY, tuple(map(list, zip(*payloads, strict=True))))
            except (psycopg.Error, OSError) as error:
                if not self._is_down:  # once, however long the outage
                    log.warning("notifications not sent", error=type(error).__name__)
                self._is_down = True
            else:
                self._is_down = False


def split(message: bytes, number: int) -> list[str]:
    """Return the payloads of a message: `Base64`, or `number.left:Base64` with the parts that follow."""
    parts = [message[at : at + _PART] for at in range(0, len(message), _PART)]
    if len(parts) == 1:
        return [_encode(message)]
    return [f"{number}.{len(parts) - at}:{_encode(part)}" for at, part in enumerate(parts, 1)]


class Reassembly:
    """Calls `on_message` with the channel and each message, once all its parts are there."""

    def __init__(self, on_message: Callable[[str, bytes], None]) -> None:
        self._on_message = on_message
        self._of: tuple[int, str, str] | None = None
        self._parts: list[bytes] = []

    def add(self, channel: str, payload: str, sender: int) -> None:
        """Take a payload from the backend with the process id `sender`; pass over what is not ours."""
        head, _, body = payload.rpartition(":")
        number, _, left = head.partition(".")
        try:
            part = a2b_base64(body, strict_mode=True)
        except (Base64Error, ValueError):
            log.warning("notification not understood", channel=channel)
            return
        if not head:
            self._on_message(channel, part)
            return
        if self._of != (of := (sender, channel, number)):
            self._of, self._parts = of, []
        self._parts.append(part)
        if left == "0":
            whole, self._of, self._parts = b"".join(self._parts), None, []
            self._on_message(channel, whole)


def _encode(part: bytes) -> str:
    return b2a_base64(part, newline=False).decode()
