"""The documents of a plugin runtime's wire: requests and replies (specs/runner-host.md, Envelope).

Each side numbers its own requests; a document with `action` is a request, one with `code` a reply.
What is neither is rubbish: it reads as None, and whoever reads it goes on with the next document.
"""

from __future__ import annotations

import asyncio
import json
from typing import Any, Final

import msgspec
from msgspec import Struct

from config.http import json_size

LARGEST: Final = 16 * 1024 * 1024
_OFF_THE_LOOP: Final = 128 * 1024
_MOST_VALUES: Final = 200_000  # decoded in one call into C, which nothing interrupts
_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


class TooLarge(Exception):
    """A document is beyond the 16 MiB that every runtime accepts."""


class TooManyValues(Exception):
    """A document would take many times its size in memory, and hold the process while it is decoded."""


class Request(Struct, frozen=True):
    """What the other side asks for; `paced` if it acknowledges what is streamed to it."""

    number: int
    action: str
    payload: dict[str, Any]
    context: dict[str, Any]
    paced: bool = False


class Reply(Struct, frozen=True):
    """An answer, or one part of a streamed one."""

    number: int
    ok: bool
    message: str
    payload: dict[str, Any]
    ended: bool
    index: int | None
    size: int


def read(document: str | bytes) -> Request | Reply | None:
    """What a whole document says; None of anything else."""
    match parsed(document):
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


async def read_soon(document: str | bytes) -> Request | Reply | None:
    """The same; a large document is read in a thread, so that the loop is never held. TooManyValues."""
    if len(document) < _OFF_THE_LOOP:
        return read(document)
    return await asyncio.to_thread(_read_large, document)


def _read_large(document: str | bytes) -> Request | Reply | None:
    encoded = document.encode(errors="replace") if isinstance(document, str) else document
    if json_size.count(encoded) > _MOST_VALUES:
        raise TooManyValues
    return read(document)


def write(document: dict[str, Any]) -> str:
    """A document as text. TooLarge beyond 16 MiB; TypeError of what JSON cannot say."""
    encoded = _encode(document)
    if len(encoded) > LARGEST:
        raise TooLarge
    return encoded.decode()


async def write_soon(document: dict[str, Any], *, heavy: bool) -> str:
    """The same, in a thread if it is known to be large."""
    return await asyncio.to_thread(write, document) if heavy else write(document)


def parsed(document: str | bytes) -> Any:
    """The document's value, None if it has none.

    Python's own parser also takes half a surrogate pair, which `storable_text` mends later.
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
