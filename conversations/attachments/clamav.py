"""A scanner for ATTACHMENT_SCANNER: clamd over its INSTREAM command (man clamd), an example to copy.

The file is sent in pieces, each after its length, to CLAMAV_ADDRESS.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from django.conf import settings

_PIECE: Final = 64 * 1024
_ANSWER_S: Final = 30.0


async def scan(path: Path, mime_type: str) -> str | None:
    """Return clamd's finding, or None. Raise OSError, TimeoutError or ValueError without an answer."""
    async with asyncio.timeout(_ANSWER_S):
        reader, writer = await _connect()
        try:
            writer.write(b"zINSTREAM\0")
            for piece in _pieces(path):
                writer.write(struct.pack(">I", len(piece)) + piece)
                await writer.drain()
            writer.write(struct.pack(">I", 0))
            answer = await reader.read(4096)
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
    return _finding(answer.rstrip(b"\0\n").decode("utf-8", "replace"))


def _connect() -> asyncio.Future[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    address = str(settings.CLAMAV_ADDRESS)
    if address.startswith("/"):
        return asyncio.ensure_future(asyncio.open_unix_connection(address))
    host, _, port = address.rpartition(":")
    return asyncio.ensure_future(asyncio.open_connection(host, int(port)))


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:  # just written, so it is read from memory
        while piece := file.read(_PIECE):
            yield piece


def _finding(answer: str) -> str | None:
    """`stream: OK`, `stream: Eicar-Signature FOUND`, `INSTREAM size limit exceeded. ERROR`."""
    if answer == "stream: OK":
        return None
    if answer.startswith("stream: ") and answer.endswith(" FOUND"):
        return answer.removeprefix("stream: ").removesuffix(" FOUND")
    raise ValueError("clamd gave no verdict")
