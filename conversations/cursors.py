"""Where a reader of a newest-first list has got to, as an opaque text: the place of its last row.

A place is a time and what orders rows of the same time. It names a row, not a number of rows, so what
is added meanwhile neither repeats nor hides anything.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from config.errors import InvalidRequest

MOST: Final = 100
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LONGEST: Final = 200


class Place(Struct, frozen=True, array_like=True):
    """A row's time, in microseconds since 1970; lists add what orders their rows of one time."""

    at_us: int

    @property
    def at(self) -> datetime:
        return _EPOCH + timedelta(microseconds=self.at_us)


T = TypeVar("T", bound=Place)


def microseconds(at: datetime) -> int:
    """A row's time as a place has it."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def write_cursor(place: Place) -> str:
    """The cursor of a place."""
    return base64.urlsafe_b64encode(msgspec.json.encode(place)).rstrip(b"=").decode()


def read_cursor(text: str, kind: type[T]) -> T:
    """The place that a cursor names; InvalidRequest for what is no cursor of this kind of list."""
    try:
        if len(text) > _LONGEST:
            raise ValueError
        padded = text.encode("ascii") + b"=" * (-len(text) % 4)
        place = msgspec.json.decode(base64.b64decode(padded, b"-_", validate=True), type=kind)
        _ = place.at  # a time that there is
    except (UnicodeEncodeError, binascii.Error, msgspec.MsgspecError, ValueError, OverflowError):
        raise _invalid_cursor() from None
    return place


def _invalid_cursor() -> InvalidRequest:
    return InvalidRequest("cursor must be a nextCursor of this list.", code="invalid_cursor")


def read_limit(text: str | None, *, default: int) -> int:
    """How many to give at once: 1 to 100."""
    if not text:
        return default
    if text.isascii() and text.isdigit() and len(text) <= 9 and 1 <= int(text) <= MOST:
        return int(text)
    raise InvalidRequest(f"limit must be 1 to {MOST}.", code="invalid_limit")
