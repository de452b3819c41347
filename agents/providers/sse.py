"""Cut a byte stream into the data of its server-sent events (WHATWG HTML §9.2.6), by hand and fast.

Only `data:` lines matter to us; comments, ids and event names are skipped. Lines may end in LF, CRLF
or CR, and may be split anywhere between two reads.
"""

from __future__ import annotations

import re
from typing import Final

from agents.providers.refusals import invalid_response_error

LIMIT: Final = 8 * 1024 * 1024
_MARK: Final = "\ufeff".encode()  # a byte order mark may be at the very beginning
_ONE_LINE: Final = re.compile(rb"\ndata: ?(.*)\n(?=\n)")  # all the data of an event, as in most streams


class EventSplitter:
    """A splitter of bytes as they arrive; it returns each event's data as soon as the event is whole."""

    def __init__(self, *, limit: int = LIMIT) -> None:
        self._limit = limit
        self._rest = bytearray()  # the beginning of an event, with no blank line in it
        self._undecided = b""  # bytes that the next read decides: half a mark, or a CR
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of every event that `chunk` completes; raise ProviderError past the limit."""
        searched = max(0, len(self._rest) - 1)  # only new bytes can end an event, however long it is
        self._rest += self._decided(self._undecided + chunk)
        blank = self._rest.rfind(b"\n\n", searched)
        end = blank + 2 if blank >= 0 else 0
        events = b"\n" + self._rest[:end]
        del self._rest[:end]
        if len(self._rest) + len(self._undecided) > self._limit:
            raise invalid_response_error()
        found: list[bytes] = _ONE_LINE.findall(events)
        if len(found) == events.count(b"\ndata:"):
            return found
        return [b"\n".join(data) for event in events.split(b"\n\n") if (data := _data(event))]

    def _decided(self, some: bytes) -> bytes:
        """Return the bytes without the mark, each line end an LF, and keep undecided bytes for later."""
        self._undecided = b""
        if not self._begun:
            if len(some) < len(_MARK):
                self._undecided = some
                return b""
            some, self._begun = some.removeprefix(_MARK), True
        if b"\r" in some:
            self._undecided = b"\r" if some.endswith(b"\r") else b""  # its LF may be in the next read
            some = some.removesuffix(self._undecided).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return some


def _data(event: bytes) -> list[bytes]:
    """Return the data lines of an event, in whatever form they are written."""
    lines = [line[5:] for line in event.split(b"\n") if line.startswith(b"data:")]
    return [line.removeprefix(b" ") for line in lines]
