"""Limits on JSON from outside: how deeply it may be nested, and how many values it may hold.

The kept parts of a body are walked by recursion many times; and a Python object costs twenty times the
two bytes of `[]`.
"""

from __future__ import annotations

import time
from typing import Any, Final

from django.conf import settings

from config.errors import InvalidRequest

MAX_DEPTH: Final = 100
_PIECE: Final = 65_536
_BEGINNINGS: Final = b",[{"  # every value but the first follows one of these


def check_depth(value: Any) -> None:
    """Raise InvalidRequest for a value with more than MAX_DEPTH levels of objects and lists."""
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        lists = [item.values() if isinstance(item, dict) else item for item in level if _is_nest(item)]
        if not lists:
            return
        level = [inner for items in lists for inner in items]
    raise InvalidRequest(
        f"The body is nested too deeply: at most {MAX_DEPTH} levels are taken.", code="invalid_json"
    )


def _is_nest(value: Any) -> bool:
    return isinstance(value, dict | list)


def check_value_count(raw: bytes) -> None:
    """Raise InvalidRequest `too_many_values` for JSON with more than VALUES_PER_BODY values.

    Most bodies have few commas and brackets at all; only for the others those outside of strings are
    counted exactly.
    """
    limit = settings.VALUES_PER_BODY
    if len(raw) > limit and sum(map(raw.count, _BEGINNINGS)) > limit and count_values(raw) > limit:
        raise InvalidRequest(
            f"The body holds too many values: at most {limit:,} are taken.", code="too_many_values"
        )


def count_values(raw: bytes) -> int:
    """Return at least the number of the values but one."""
    scanner = JsonScanner()
    scanner.add(raw)
    return scanner.value_count


class JsonScanner:
    """A scan of JSON text that comes in pieces, without the contents of its strings.

    `value_count` is the number of commas and opening brackets so far, `depth` that of open brackets.
    """

    def __init__(self) -> None:
        self.value_count = 0
        self.depth = 0
        self.in_string = False
        self._escape = b""

    def add(self, text: bytes) -> None:
        """Scan the next part, in time proportional to its length and without Python's loop over it."""
        for start in range(0, len(text), _PIECE):
            if start:  # let other threads run: an event loop would wait 5 ms per system call
                time.sleep(0)
            self._add_piece(text[start : start + _PIECE])

    def _add_piece(self, piece: bytes) -> None:
        text = (self._escape + piece).replace(b"\\\\", b"").replace(b'\\"', b"")
        self._escape = b"\\" if text.endswith(b"\\") else b""
        parts = text.removesuffix(b"\\").split(b'"')
        outside = b"".join(parts[self.in_string :: 2])
        self.in_string ^= len(parts) % 2 == 0
        opened = sum(map(outside.count, b"[{"))
        self.value_count += opened + outside.count(b",")
        self.depth += opened - sum(map(outside.count, b"]}"))
