"""Cut a byte stream into the data of its server-sent events (WHATWG HTML §9.2.6), by hand and fast.

Only `data:` lines matter to us; comments, ids and event names are passed over. Lines may end in
LF, CRLF or CR, and may be split anywhere between two reads.
"""

from __future__ import annotations

import re
from typing import Final

LIMIT: Final = 8 * 1024 * 1024
_MARK: Final = "\ufeff".encode()  # a byte order mark may stand at the very beginning
_ONE_LINE: Final = re.compile(rb"\ndata: ?(.*)\n(?=\n)")  # all the data of an event, as most have it


class EventTooLarge(Exception):
    """One event is larger than any provider's has a reason to be."""


class Cutter:
    """Feed it bytes as they arrive; it gives each event's data as soon as the event is whole."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._rest = b""
        self._begun = False

    def feed(self, some: bytes) -> list[bytes]:
        """The data of every event that `some` completes. EventTooLarge past the limit."""
        whole = self._rest + some
        if not self._begun:
            if len(whole) < len(_MARK):
                self._rest = whole
                return []
            whole, self._begun = whole.removeprefix(_MARK), True
        held_back = b""
        if b"\r" in whole:
            held_back = b"\r" if whole.endswith(b"\r") else b""  # its LF may be in the next read
            whole = whole.removesuffix(held_back).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        end = whole.rfind(b"\n\n") + 2
        events, rest = (b"\n" + whole[:end], whole[end:]) if end > 1 else (b"", whole)
        self._rest = rest + held_back
        if len(self._rest) > self._limit:
            raise EventTooLarge
        found: list[bytes] = _ONE_LINE.findall(events)
        if len(found) == events.count(b"\ndata:"):
            return found
        return [b"\n".join(data) for event in events.split(b"\n\n") if (data := _data(event))]


def _data(event: bytes) -> list[bytes]:
    """The lines of data of an event, however they are written."""
    lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
    return [line.removeprefix(b" ") for line in lines]
