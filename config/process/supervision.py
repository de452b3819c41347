"""Supervision of the embedded PostgreSQL: it is restarted when it dies."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import structlog

from config.process.embedded_postgres import DatabaseUnavailable, Server

logger = structlog.get_logger(__name__)

_LOOK_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0


@contextmanager
def supervise(server: Server | None) -> Iterator[None]:
    """Keep the server running until the block ends; do nothing without a server."""
    if server is None:
        yield
        return
    leaving = threading.Event()
    watcher = threading.Thread(target=_watch, args=(server, leaving), name="parley-postgres")
    watcher.start()
    try:
        yield
    finally:
        leaving.set()
        watcher.join()  # else it might restart the server during shutdown


def _watch(server: Server, leaving: threading.Event) -> None:
    """Check the server; the interval doubles after each restart and shrinks while the server runs."""
    pause = _LOOK_S
    while not leaving.wait(pause):
        if server.runs():
            pause = max(_LOOK_S, pause / 2)
            continue
        pause = min(2 * pause, _LONGEST_PAUSE_S)
        _start(server, leaving, pause)


def _start(server: Server, leaving: threading.Event, pause: float) -> None:
    logger.warning("embedded database died, starting it again")
    try:
        server.resume(leaving)
    except (DatabaseUnavailable, OSError) as error:
        if not leaving.is_set():
            logger.error("embedded database did not start", error=str(error), next_try_s=pause)
    else:
        logger.warning("embedded database runs again")
