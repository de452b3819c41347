"""JSON of a provider into structs that have only the fields we use; the rest is skipped unread.

They live for one event and hold no cycles, so the garbage collector need not look at them (`gc=False`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from agents.providers.refusals import invalid_response_error

T = TypeVar("T")


def make_decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Return a decoder that raises ProviderError `provider_invalid_response` for any other data."""
    decode = msgspec.json.Decoder(kind).decode

    def decoded(data: bytes) -> T:
        try:
            return decode(data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _mended(data, decode)

    return decoded


def _mended(data: bytes, decode: Callable[[bytes], T]) -> T:
    """Decode an event with half a surrogate pair, from a provider that cuts text by UTF-16 units."""
    try:
        text = json.dumps(json.loads(data), ensure_ascii=False)
        return decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode())
    except (ValueError, RecursionError):
        raise invalid_response_error() from None


def parse_object(text: str) -> dict[str, Any]:
    """Return a call's arguments as an object; any other value becomes text under `arguments`."""
    try:
        found = msgspec.json.decode(text or "{}")
    except (msgspec.DecodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"arguments": text}
