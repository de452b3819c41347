"""A transport that sends all that one turn of the loop writes by one system call."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

_MOST: Final = 64 * 1024
"""Bytes that are kept; more are sent at once, so that a slow reader is noticed."""


class CorkedTransport(asyncio.Transport):
    """A transport in front of another one: it keeps what is written until the turn of the loop ends.

    uvloop sends each piece at once, and a short answer consists of several: its head, its body, the end
    of its chunks. A system call on a socket costs as much as all else that a piece needs, because it
    also wakes the reader.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._pieces: list[Any] = []
        self._size = 0

    def write(self, data: Any) -> None:
        if not self._pieces:
            self._loop.call_soon(self._flush)
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _MOST:
            self._flush()

    def writelines(self, list_of_data: Iterable[Any]) -> None:
        for data in list_of_data:
            self.write(data)

    def _flush(self) -> None:
        pieces, self._pieces, self._size = self._pieces, [], 0
        if pieces and not self._transport.is_closing():
            self._transport.writelines(pieces)

    def write_eof(self) -> None:
        self._flush()
        self._transport.write_eof()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def abort(self) -> None:
        self._pieces, self._size = [], 0
        self._transport.abort()

    def get_write_buffer_size(self) -> int:
        return self._size + self._transport.get_write_buffer_size()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def is_reading(self) -> bool:
        return self._transport.is_reading()

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._transport.get_protocol()

    def can_write_eof(self) -> bool:
        return self._transport.can_write_eof()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._transport.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._transport.get_write_buffer_limits()
