"""A reader's position in a newest-first list, as an opaque text: the place of its last row.

A place is a time and a key that orders rows of the same time. It names a row, not a number of rows,
so rows added meanwhile neither repeat nor hide anything.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct

from config.errors import InvalidRequest

MOST: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST: Final = 200


class Place(Struct, frozen=True, array_like=True):
    """A row's time, in microseconds since 1970; lists add the key that orders rows of one time."""

    at_us: int

    @property
    def at(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.at_us)

    @property
    def arguments(self) -> dict[str, Any]:
        """Return the time `at` and the key, for a statement that reads below the place."""
        return msgspec.structs.asdict(self) | {"at": self.at}


T = TypeVar("T", bound=Place)


def write_cursor(at: datetime, *key: int | UUID) -> str:
    """Return the cursor of the row with this time and key."""
    place = ((at - _EPOCH) // timedelta(microseconds=1), *key)
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def read_cursor(text: str, kind: type[T]) -> T:
    """Return the place that a cursor names. Raise InvalidRequest unless it is a cursor of this list."""
    try:
        if len(text) > _LONGEST:
            raise ValueError
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        place = msgspec.json.decode(base64.b64decode(padded, b"-_", validate=True), type=kind)
        _ = place.at  # a time that exists
    except (UnicodeEncodeError, binascii.Error, msgspec.MsgspecError, ValueError, OverflowError):
        raise invalid_cursor() from None
    return place


def invalid_cursor() -> InvalidRequest:
    """Return the error for a cursor that none of our pages has given."""
    return InvalidRequest("cursor must be a nextCursor of this list.", code="invalid_cursor")


def read_limit(text: str | None, *, default: int, most: int = MOST) -> int:
    """Return the page size: 1 to `most`. Raise InvalidRequest for any other text."""
    if not text:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= most:
        return int(text)
    raise InvalidRequest(f"limit must be 1 to {most}.", code="invalid_limit")
