"""A TCP server on loopback whose answers are written by hand, byte by byte, on a thread of its own."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Self

_LARGEST_HEAD: Final = 64 * 1024
_STARTED_WITHIN_S: Final = 10.0


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: Any

    @property
    def key(self) -> str:
        """The key that came with it, wherever its wire has it."""
        names = ("x-goog-api-key", "x-api-key", "authorization")
        given = next((self.headers[name] for name in names if name in self.headers), "")
        return given.removeprefix("Bearer ")


class Writer:
    """The client's end: `raw` writes bytes as they are and waits until they are on their way."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def raw(self, *pieces: bytes) -> None:
        """Write the pieces, each in a packet of its own."""
        for piece in pieces:
            self._writer.write(piece)
            await self._writer.drain()

    async def head(self, status: str = "200 OK", **headers: str) -> None:
        """The head of an answer whose body ends with the connection."""
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        await self.raw(f"HTTP/1.1 {status}\r\nConnection: close\r\n{lines}\r\n".encode())

    async def events(self, *pieces: bytes) -> None:
        """A whole answer that is an event stream."""
        await self.head(content_type="text/event-stream")
        await self.raw(*pieces)

    async def json(self, value: Any, **headers: str) -> None:
        """A whole answer that is JSON; of bytes as they are."""
        await self.head(content_type="application/json", **headers)
        await self.raw(value if isinstance(value, bytes) else json.dumps(value).encode())

    async def gone(self) -> None:
        """Return when the client has left."""
        while not self._writer.is_closing():
            await self.raw(b"")
            await asyncio.sleep(0.05)

    def reset(self) -> None:
        """End the connection by RST, in the middle of what was written."""
        self._writer.transport.abort()


Answer = Callable[[Asked, Writer], Awaitable[None]]


class Loopback:
    """Answers each connection's one request by `answer`, until the block is left."""

    def __init__(self, answer: Answer) -> None:
        self.port = 0
        self._answer = answer
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._started.wait(_STARTED_WITHIN_S)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(_STARTED_WITHIN_S)

    async def _serve(self) -> None:
        self._loop, self._stopped = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_LARGEST_HEAD)
        self.port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stopped.wait()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await self._answer(await _asked(reader), Writer(writer))
        writer.close()


async def _asked(reader: asyncio.StreamReader) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Asked(first.split(" ")[1], headers, json.loads(body or b"null"))
