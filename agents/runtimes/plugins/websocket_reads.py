"""A WebSocket connection that reads little at a time."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from websockets.asyncio.client import ClientConnection

_READ: Final = 32 * 1024


class SmallReadsConnection(ClientConnection):
    """A connection that takes at most 32 KiB in one turn of the event loop.

    The 250 KiB that asyncio and uvloop read otherwise can hold 28,000 of the smallest messages: half a
    second in which nobody else is served.
    """

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        transport.set_protocol(_SmallReads(self))


class _SmallReads(asyncio.BufferedProtocol):
    """What the transport calls: it offers a small buffer and hands everything on to the connection."""

    def __init__(self, connection: ClientConnection) -> None:
        # A view: asyncio's TLS reads its next record into a slice, and one of a bytearray is a copy.
        self._buffer = memoryview(bytearray(_READ))
        self._connection = connection

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.data_received(bytes(self._buffer[:nbytes]))

    def eof_received(self) -> None:
        self._connection.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()
