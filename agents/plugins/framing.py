"""How a document is cut for its way: pieces or lines (specs/runner-host.md, Framing).

The older runtimes cut large documents over WebSocket and mark nothing, so their reader puts messages
together until they are a document. Over stdio every generation marks them: chunk_start, chunk_data,
chunk_end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from agents.plugins.envelopes import LARGEST, parsed

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
    own to look like one does not thereby speak for the runtime.
    """

    def __init__(self) -> None:
        self._held: list[str] = []
        self._size = 0

    def feed(self, message: str) -> str | None:
        """The document that this message completes, if it does. Broken beyond 16 MiB."""
        if not self._held and not message.lstrip().startswith("{"):
            return None
        self._held.append(message)
        self._size += len(message)
        if self._size > LARGEST:
            raise Broken("a document is larger than 16 MiB")
        if not message.rstrip().endswith("}"):
            return None
        whole = "".join(self._held)
        if parsed(whole) is None:
            return None
        self._held, self._size = [], 0
        return whole


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
