"""The connection of one event loop that listens to PostgreSQL's notifications.

It is its own: LISTEN belongs to a session, which a pool passes on and a pooler by transaction splits.
The loop reads the socket itself, without a task to wake. Every few seconds a statement shows that the
server is there; a broken connection is made again, and listens to the same channels.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from uuid import uuid4

import psycopg
import structlog
from psycopg import AsyncConnection, sql

from config import database

log = structlog.get_logger(__name__)

OnPayload = Callable[[str, str, int], None]
NAME: Final = "parley notifications"
"""Of the connection, in PostgreSQL's `pg_stat_activity`."""
BEAT_S: Final = 5.0
_SILENT_S: Final = 2.0
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
_ECHO: Final = "SELECT pg_notify(%s, '')"
POOLER: Final = "Set DIRECT_DATABASE_URL: a pooler in transaction mode keeps no LISTEN."


class PostgresListener:
    """Calls `on_payload` with channel, payload and the sender's process id.

    `on_listening` gets each channel when its notifications begin to arrive, also after an outage.
    """

    def __init__(self, on_payload: OnPayload, *, on_listening: Callable[[str], None]) -> None:
        self._on_payload = on_payload
        self._on_listening = on_listening
        self._channels: dict[str, None] = {}
        self._echo = f"parley_echo_{uuid4().hex}"
        self._hears = False
        self._is_down = False
        self._pause_s = _FIRST_PAUSE_S
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def subscribe(self, channel: str) -> None:
        """Listen to a channel soon, and until the loop ends; idempotent."""
        if channel not in self._channels:
            self._channels[channel] = None
            self._news.set()
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._keep())

    async def _keep(self) -> None:
        while True:
            try:
                async with database.session(NAME) as connection:
                    await self._serve(connection)
            except database.UnusablePooler:
                self._log_deaf()
            except Exception as error:  # its errors differ by address; a retry may succeed
                self._log_down(error)
            await asyncio.sleep(self._pause_s * random.uniform(0.75, 1.25))
            self._pause_s = min(2 * self._pause_s, _LONGEST_PAUSE_S)

    async def _serve(self, connection: AsyncConnection[Any]) -> None:
        """Listen until the connection breaks; raise its error."""
        connection.add_notify_handler(lambda found: self._take(found.channel, found.payload, found.pid))
        listening = set[str]()
        self._hears = False
        await listen(connection, self._echo)
        while True:
            self._news.clear()
            for channel in [one for one in self._channels if one not in listening]:
                await listen(connection, channel)
                listening.add(channel)
                self._on_listening(channel)
            if not self._hears:
                await self._send_echo()
            is_silent = await self._read_until_news(connection)
            self._judge(is_silent)
            async with asyncio.timeout(_SILENT_S):
                await ask(connection)

    async def _send_echo(self) -> None:
        """Notify this connection by another one: only so a pooler that splits sessions is noticed."""
        async with database.connection() as another:
            await another.execute(_ECHO, (self._echo,))

    async def _read_until_news(self, connection: AsyncConnection[Any]) -> bool:
        """Take notifications until there is something to do; return whether that was not in BEAT_S."""
        with self._reading(connection):
            try:
                async with asyncio.timeout(BEAT_S):
                    await self._news.wait()
            except TimeoutError:
                return True
        return False

    @contextmanager
    def _reading(self, connection: AsyncConnection[Any]) -> Iterator[None]:
        """Inside the block, take what arrives on the idle connection; psycopg does so elsewhere."""
        loop, socket, wire = asyncio.get_running_loop(), connection.fileno(), connection.pgconn

        def read() -> None:
            try:
                wire.consume_input()
                while (found := wire.notifies()) is not None:
                    self._take(found.relname.decode(), found.extra.decode(), found.be_pid)
            except psycopg.Error:
                self._news.set()  # the next statement raises the error

        loop.add_reader(socket, read)
        try:
            read()
            yield
        finally:
            loop.remove_reader(socket)

    def _take(self, channel: str, payload: str, sender: int) -> None:
        if channel == self._echo:
            self._hears = True
            self._news.set()
        else:
            self._on_payload(channel, payload, sender)

    def _judge(self, is_silent: bool) -> None:
        """Log that notifications arrive again, or that the echo has not."""
        if self._hears:
            self._pause_s = _FIRST_PAUSE_S
            if self._is_down:
                log.info("LISTEN is back")
            self._is_down = False
        elif is_silent:
            self._log_deaf()

    def _log_deaf(self) -> None:
        if not self._is_down:
            log.error("notifications do not arrive", fix=POOLER)
        self._is_down = True

    def _log_down(self, error: Exception) -> None:
        """Log an outage once, however many attempts fail."""
        if not self._is_down:
            log.warning("LISTEN is down", error=type(error).__name__)
        self._is_down = True


async def ask(connection: AsyncConnection[Any]) -> None:
    """Return when the server answers."""
    await connection.execute("SELECT 1")


async def listen(connection: AsyncConnection[Any], channel: str) -> None:
    """Let the session get the notifications of a channel."""
    await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
