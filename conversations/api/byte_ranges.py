"""The one byte range of a request (RFC 9110 §14.1.2): `a-b`, `a-` or the last `-n`."""

from __future__ import annotations

import re
from typing import Final

_ONE: Final = re.compile(r"bytes=\s*([0-9]{0,18})-([0-9]{0,18})\s*", re.IGNORECASE | re.ASCII)


class Unsatisfiable(Exception):
    """The requested range and the file have no byte in common."""


def parse_range(header: str, size: int) -> tuple[int, int] | None:
    """Return the begin and the end (excluded) of the range; None for none, several or an invalid one.

    Such requests are answered with the whole file, as the RFC allows.
    """
    match = _ONE.fullmatch(header)
    if not match or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    if first and last and int(last) < int(first):
        return None
    start, end = (int(first), int(last or size)) if first else (max(0, size - int(last)), size)
    if start >= size or (not first and not int(last)):
        raise Unsatisfiable
    return start, min(end + 1, size) if first else size
