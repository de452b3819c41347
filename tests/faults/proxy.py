"""A TCP proxy between client and server that cuts, delays and splits what the server sends.

It stands on the test's own loop. Each connection gets its own fate by lot: after how many bytes it is
cut, whether the cut is a clean end or a reset, and in what pieces the bytes arrive.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Faults:
    """How badly the proxy behaves; `cut_after` is a range of bytes from the server."""

    cut_after: tuple[int, int] = (2_200, 5_000)  # an SSE answer begins with 2 KiB of padding
    pieces: tuple[int, int] = (1, 1_500)
    delay_s: float = 0.002


class Proxy:
    """Listens on loopback while the block lasts; `cuts` counts what it has cut."""

    def __init__(self, port: int, random: Random, faults: Faults) -> None:
        self._target, self._random, self._faults = port, random, faults
        self._open: set[asyncio.Task[None]] = set()
        self.cuts = 0
        self.port = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        task.add_done_callback(self._open.discard)
        with suppress(OSError, asyncio.CancelledError):
            await self._carry(reader, writer)
        writer.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self._target)
        asking = asyncio.create_task(_copy(reader, up_writer))
        try:
            await self._answer(up_reader, writer)
        finally:
            asking.cancel()
            up_writer.transport.abort()
            await asyncio.gather(asking, return_exceptions=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass bytes on, in pieces, up to this connection's limit."""
        left = self._random.randint(*self._faults.cut_after)
        while some := await reader.read(self._random.randint(*self._faults.pieces)):
            if self._random.random() < 0.1:
                await asyncio.sleep(self._random.uniform(0, self._faults.delay_s))
            writer.write(some[:left])
            await writer.drain()
            left -= len(some)
            if left <= 0:
                self.cuts += 1
                break
        if left > 0 or self._random.random() < 0.5:
            writer.close()  # a clean end; otherwise a reset
            await writer.wait_closed()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while some := await reader.read(65_536):
            writer.write(some)
            await writer.drain()
