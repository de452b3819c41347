"""How many values JSON may hold: a Python object costs twenty times the two bytes of `[]`."""

from __future__ import annotations

from typing import Final

from django.conf import settings

from config.errors import InvalidRequest

_PIECE: Final = 262_144
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
    found, at, in_string = 0, 0, False
    while at < len(raw):
        piece = _piece(raw, at)
        at += len(piece)
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(parts[in_string::2])
        found += sum(map(outside.count, _MARKS))
        in_string ^= len(parts) % 2 == 0
    return found


def _piece(raw: bytes, at: int) -> bytes:
    """The bytes from a place on; no escape is cut in two."""
    piece = raw[at : at + _PIECE]
    backslashes = len(piece) - len(piece.rstrip(b"\\"))
    return raw[at : at + _PIECE + 1] if backslashes % 2 else piece
