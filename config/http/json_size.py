"""How many values JSON may hold: a Python object costs twenty times the two bytes of `[]`."""

from __future__ import annotations

import time
from typing import Final

from django.conf import settings

from config.errors import InvalidRequest

_PIECE: Final = 65_536
_MARKS: Final = (b",", b"[", b"{")


def check(raw: bytes) -> None:
    """InvalidRequest `too_many_values` when JSON has more than VALUES_PER_BODY values.

    Every value but the first follows a comma or a bracket that opens. Most bodies have few of these
    bytes at all; only of the others is it counted exactly which stand outside of strings.
    """
    limit = settings.VALUES_PER_BODY
    if len(raw) > limit and sum(map(raw.count, _MARKS)) > limit and count(raw) > limit:
        raise InvalidRequest(
            f"The body holds too many values: at most {limit:,} are taken.", code="too_many_values"
        )


def count(raw: bytes) -> int:
    """Count the commas and the brackets that open outside of strings: at least the values but one.

    A piece at a time, each without Python's loop over its bytes: linear, and no piece takes long.
    """
    counter = Counter()
    for at in range(0, len(raw), _PIECE):
        if at:  # let other threads run: an event loop would wait 5 ms per system call
            time.sleep(0)
        counter.add(raw[at : at + _PIECE])
    return counter.found


class Counter:
    """Counts as `count` does, of JSON that comes in pieces."""

    def __init__(self) -> None:
        self.found = 0
        self._in_string = False
        self._escape = b""

    def add(self, piece: bytes) -> None:
        """Go on with a piece, in time that grows with its length alone."""
        text = (self._escape + piece).replace(b"\\\\", b"").replace(b'\\"', b"")
        self._escape = b"\\" if text.endswith(b"\\") else b""
        parts = text.removesuffix(b"\\").split(b'"')
        outside = b"".join(parts[self._in_string :: 2])
        self.found += sum(map(outside.count, _MARKS))
        self._in_string ^= len(parts) % 2 == 0
