"""The documents of a plugin runtime's wire: requests and replies (specs/runner-host.md, Envelope).

Each side numbers its own requests; a document with `action` is a request, one with `code` a reply. Any
other document is rubbish: it is read as None, and the reader continues with the next document.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import msgspec
from msgspec import Struct

from config.http import json_limits

LARGEST: Final = 16 * 1024 * 1024
_OFF_THE_LOOP: Final = 128 * 1024
_MAX_VALUES: Final = 200_000  # they are decoded in one call into C, which nothing interrupts
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class TooLarge(Exception):
    """A document exceeds the 16 MiB that every runtime accepts."""


class TooManyValues(Exception):
    """A document would need many times its size in memory, and block the process while it is decoded."""


class Request(Struct, frozen=True):
    """A request of the other side; `paced` if it acknowledges the parts of a stream."""

    number: int
    action: str
    payload: dict[str, Any]
    context: dict[str, Any]
    paced: bool = False


class Reply(Struct, frozen=True):
    """A reply, or one part of a streamed reply."""

    number: int
    ok: bool
    message: str
    payload: dict[str, Any]
    ended: bool
    index: int | None
    size: int


def read(document: str | bytes) -> Request | Reply | None:
    """Return the content of a whole document; None for rubbish."""
    match parse_json(document):
        case {"seq_id": int(number), "code": int(code), **rest}:
            index = rest.get("stream_index")
            return Reply(
                number,
                code == 0,
                str(rest.get("message") or ""),
                _object(rest.get("data")),
                rest.get("chunk_status") == "end",
                index if isinstance(index, int) else None,
                len(document),
            )
        case {"seq_id": int(number), "action": str(action), **rest}:
            payload, context = _object(rest.get("data")), _object(rest.get("context"))
            return Request(number, action, payload, context, rest.get("stream_flow_control") == 1)
    return None


async def read_without_blocking(document: str | bytes) -> Request | Reply | None:
    """Return the same; a large document is read in an OS thread, so that it does not block the loop.

    Raise TooManyValues.
    """
    if len(document) < _OFF_THE_LOOP:
        return read(document)
    return await asyncio.to_thread(_read_large, document)


def _read_large(document: str | bytes) -> Request | Reply | None:
    encoded = document.encode(errors="replace") if isinstance(document, str) else document
    if json_limits.count_values(encoded) > _MAX_VALUES:
        raise TooManyValues
    return read(document)


def write(document: dict[str, Any]) -> str:
    """Return a document as text; raise TooLarge beyond 16 MiB, TypeError for other than JSON."""
    encoded = _encode(document)
    if len(encoded) > LARGEST:
        raise TooLarge
    return encoded.decode()


async def write_without_blocking(document: dict[str, Any], *, heavy: bool) -> str:
    """Return the same, in an operating-system thread if the document is known to be large."""
    return await asyncio.to_thread(write, document) if heavy else write(document)


def parse_json(document: str | bytes) -> Any:
    """Return the document's value, or None if it is not JSON.

    Python's own parser also accepts half a surrogate pair, which `storable_text` repairs later.
    """
    try:
        return _decode(document)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        pass
    try:
        return json.loads(document)
    except (ValueError, RecursionError):
        return None


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
