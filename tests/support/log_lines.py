"""The lines that a server logs."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from structlog.testing import capture_logs
from structlog.typing import EventDict

from config.logs import Stderr


@contextmanager
def every_line() -> Iterator[io.StringIO]:
    """What goes to standard error, down to DEBUG, rendered as it is there."""
    root, written = logging.getLogger(), io.StringIO()
    ours = next(handler for handler in root.handlers if isinstance(handler, Stderr))
    copy, level = Stderr(written), root.level
    copy.setFormatter(ours.formatter)
    root.addHandler(copy)
    root.setLevel(logging.DEBUG)
    try:
        yield written
    finally:
        root.setLevel(level)
        root.removeHandler(copy)


@contextmanager
def lines_about(*beginnings: str) -> Iterator[list[EventDict]]:
    """The lines logged in the block, known after it, whose event begins so.

    The server's own threads log beside them, of what has nothing to do with the test.
    """
    found: list[EventDict] = []
    with capture_logs() as lines:
        yield found
    found += [line for line in lines if str(line["event"]).startswith(beginnings)]
