"""How a document is cut for its way: pieces or lines (specs/runner-host.md, Framing).

The older runtimes cut large documents over WebSocket and mark nothing, so their reader puts messages
together until they are a document. Over stdio every generation marks them: chunk_start, chunk_data,
chunk_end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import StringIO
from typing import Any, Final

import msgspec

from agents.runtimes.plugins.envelopes import LARGEST, parsed

PIECE: Final = 64 * 1024
LINE: Final = 16 * 1024
_MOST_LINES: Final = 4096
_BEYOND_ASCII: Final = re.compile("[^\x00-\x7f]+")


class Broken(Exception):
    """The other side does not keep to the framing: the connection cannot go on."""


def in_ascii(document: str) -> str:
    """JSON text with every character beyond ASCII escaped: cut anywhere, it stays text."""
    if document.isascii():
        return document
    return _BEYOND_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], document)


def pieces(document: str) -> Iterator[str]:
    """The document in messages as the older runtimes expect it."""
    document = in_ascii(document)
    return (document[start : start + PIECE] for start in range(0, len(document), PIECE))


def lines(document: str) -> Iterator[bytes]:
    """The document in lines: one, or a marked run of them."""
    encoded = document.encode()
    if len(encoded) <= LINE:
        yield encoded + b"\n"
        return
    document = in_ascii(document)
    size = max(LINE, -(-len(document) // (_MOST_LINES - 1)))
    yield _line({"type": "chunk_start", "total_size": len(document)})
    for start in range(0, len(document), size):
        yield _line({"type": "chunk_data", "data": document[start : start + size], "offset": start})
    yield _line({"type": "chunk_end"})


class Together:
    """Puts the pieces of WebSocket messages together.

    Only the whole of what has begun is ever read as a document: a plugin that gets a piece of its
    own to look like one does not thereby speak for the runtime. What is whole is seen by its brackets,
    each piece once: whoever parsed to find out would do so again for every piece.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._held = StringIO()
        self._brackets = _Brackets()

    def feed(self, message: str) -> str | None:
        """The document that this message completes, if it does. Broken beyond 16 MiB."""
        if not self._held.tell() and not message.lstrip().startswith("{"):
            return None
        self._held.write(message)
        if self._held.tell() > LARGEST:
            self._begin()
            raise Broken("a document is larger than 16 MiB")
        for start in range(0, len(message), PIECE):
            self._brackets.add(message[start : start + PIECE])
        if self._brackets.are_open:
            return None
        whole = self._held.getvalue()
        self._begin()
        return whole


class _Brackets:
    """Whether those of a JSON text in pieces are closed; what is in its strings does not count."""

    def __init__(self) -> None:
        self.are_open = True
        self._depth = 0
        self._in_string = False
        self._escape = ""

    def add(self, piece: str) -> None:
        """Go on with a piece, in time that grows with its length alone."""
        text = (self._escape + piece).replace("\\\\", "").replace('\\"', "")
        self._escape = "\\" if text.endswith("\\") else ""
        parts = text.removesuffix("\\").split('"')
        outside = "".join(parts[self._in_string :: 2])
        self._in_string ^= len(parts) % 2 == 0
        self._depth += sum(map(outside.count, "{[")) - sum(map(outside.count, "}]"))
        self.are_open = self._in_string or self._depth > 0


class Lines:
    """Puts the lines of stdio together; what a plugin prints in between is passed over."""

    def __init__(self) -> None:
        self._held: list[str] | None = None
        self._size = 0

    def feed(self, line: bytes) -> bytes | None:
        """The document that this line completes, if it does. Broken beyond 16 MiB."""
        if not line.startswith(b"{"):
            return None
        if b'"chunk_' not in line[:64] and self._held is None:
            return line
        return self._chunk(line)

    def _chunk(self, line: bytes) -> bytes | None:
        match parsed(line):
            case {"type": "chunk_start"}:
                self._held, self._size = [], 0
            case {"type": "chunk_data", "data": str(part)} if self._held is not None:
                self._held.append(part)
                self._size += len(part)
                if self._size > LARGEST:
                    raise Broken("a document is larger than 16 MiB")
            case {"type": "chunk_end"} if self._held is not None:
                whole, self._held = "".join(self._held), None
                return whole.encode(errors="replace")
            case {"seq_id": int()}:
                return line
        return None


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"
