"""Cut a byte stream into the data of its server-sent events (WHATWG HTML §9.2.6), by hand and fast.

Only `data:` lines matter to us; comments, ids and event names are passed over. Lines may end in
LF, CRLF or CR, and may be split anywhere between two reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

LIMIT: Final = 8 * 1024 * 1024


class EventTooLarge(Exception):
    """One event is larger than any provider's has a reason to be."""


class Cutter:
    """Feed it bytes as they arrive; it gives each event's data as soon as the event is whole."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._rest = b""
        self._data: list[bytes] = []
        self._held = 0

    def feed(self, some: bytes) -> Iterator[bytes]:
        """The data of every event that `some` completes. EventTooLarge past the limit."""
        whole = self._rest + some
        if b"\r" in whole:
            held_back = whole.endswith(b"\r")  # its LF may be in the next read
            whole = (whole[:-1] if held_back else whole).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            lines = whole.split(b"\n")
            self._rest = lines.pop() + (b"\r" if held_back else b"")
        else:
            lines = whole.split(b"\n")
            self._rest = lines.pop()
        for line in lines:
            if not line:
                if self._data:
                    yield self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                    self._data, self._held = [], 0
            elif line.startswith(b"data:"):
                self._data.append(line[6:] if line.startswith(b"data: ") else line[5:])
                self._held += len(line)
        if self._held + len(self._rest) > self._limit:
            raise EventTooLarge
