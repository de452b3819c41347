"""The division of documents into pieces or lines for their transport (specs/runner-host.md, Framing).

The older runtimes divide large documents over WebSocket without marks, so their reader joins messages
until they are a document. Over stdio every generation uses marks: chunk_start, chunk_data, chunk_end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any, Final

import msgspec

from agents.runtimes.plugins.envelopes import LARGEST, parse_json
from config.http import json_limits

PIECE: Final = 64 * 1024
LINE: Final = 16 * 1024
_MAX_LINES: Final = 4096
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7f]+")


class FramingError(Exception):
    """The other side violates the framing: the connection cannot continue."""


def escape_non_ascii(document: str) -> str:
    """Return JSON text with escapes for characters beyond ASCII, so that it can be cut anywhere."""
    if document.isascii():
        return document
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], document)


def pieces(document: str) -> Iterator[str]:
    """Return the messages of a document for the older runtimes."""
    document = escape_non_ascii(document)
    return (document[start : start + PIECE] for start in range(0, len(document), PIECE))


def lines(document: str) -> Iterator[bytes]:
    """Yield the lines of a document: one, or several between marks."""
    encoded = document.encode()
    if len(encoded) <= LINE:
        yield encoded + b"\n"
        return
    document = escape_non_ascii(document)
    size = max(LINE, -(-len(document) // (_MAX_LINES - 1)))
    yield _line({"type": "chunk_start", "total_size": len(document)})
    for start in range(0, len(document), size):
        yield _line({"type": "chunk_data", "data": document[start : start + size], "offset": start})
    yield _line({"type": "chunk_end"})


class PieceJoiner:
    """A reader that joins the pieces of WebSocket messages.

    Only the whole of the received text is read as a document: a plugin that makes a piece look like a
    document cannot pretend to be the runtime. The end is found by the brackets, which are counted once
    per piece; an attempt to parse would be repeated for every piece.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._received = StringIO()
        self._scanner = json_limits.JsonScanner()

    def feed(self, message: str) -> str | None:
        """Return the document that this message completes, or None; raise FramingError beyond 16 MiB."""
        if not self._received.tell() and not message.lstrip().startswith("{"):
            return None
        self._received.write(message)
        if self._received.tell() > LARGEST:
            self._begin()
            raise FramingError("a document is larger than 16 MiB")
        self._scanner.add(message.encode(errors="replace"))
        if self._scanner.in_string or self._scanner.depth > 0:
            return None
        whole = self._received.getvalue()
        self._begin()
        return whole


class LineJoiner:
    """A reader that joins the lines of stdio, and ignores what a plugin prints between them."""

    def __init__(self) -> None:
        self._data: list[str] | None = None
        self._size = 0

    def feed(self, line: bytes) -> bytes | None:
        """Return the document that this line completes, or None; raise FramingError beyond 16 MiB."""
        if not line.startswith(b"{"):
            return None
        if b'"chunk_' not in line[:64] and self._data is None:
            return line
        return self._chunk(line)

    def _chunk(self, line: bytes) -> bytes | None:
        match parse_json(line):
            case {"type": "chunk_start"}:
                self._data, self._size = [], 0
            case {"type": "chunk_data", "data": str(part)} if self._data is not None:
                self._data.append(part)
                self._size += len(part)
                if self._size > LARGEST:
                    raise FramingError("a document is larger than 16 MiB")
            case {"type": "chunk_end"} if self._data is not None:
                whole, self._data = "".join(self._data), None
                return whole.encode(errors="replace")
            case {"seq_id": int()}:
                return line
        return None


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"
