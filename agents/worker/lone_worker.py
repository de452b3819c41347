"""The worker of a bare `celery worker`: it starts with the first wake-up, and drains when Celery stops.

Celery's tasks only wake it. So a run is executed on one event loop beside hundreds of others here too,
whichever pool Celery has; each child of the pool `prefork` that gets a wake-up has a worker.
"""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Final

import uvloop
from django.conf import settings

from agents.worker import loop
from config import database
from config.process import schema

_STOP_S: Final = 5.0
_starting: Final = threading.Lock()
_alone: LoneWorker | None = None


class LoneWorker:
    """A worker on an operating-system thread of its own."""

    def __init__(self) -> None:
        self._running: asyncio.AbstractEventLoop | None = None
        self._stop = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="parley-worker")

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        """Start it, and give it a moment to take its first wake-up."""
        self._thread.start()
        self._ready.wait(10)

    def stop(self) -> None:
        """Drain it, and return when its runs have ended or been given back."""
        if self._running is not None:
            with suppress(RuntimeError):  # its loop is closed
                self._running.call_soon_threadsafe(self._stop.set)
            self._thread.join(settings.DRAIN_S + _STOP_S)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._running = asyncio.get_running_loop()
        self._running.call_later(0.05, self._ready.set)
        try:
            await schema.wait_for_migrations(self._stop)
            await loop.serve_worker(self._stop)
        finally:
            await database.close()


def ensure_worker() -> None:
    """Start a worker on an OS thread of its own if this process has none (a bare `celery worker`)."""
    global _alone
    with _starting:
        if not loop.is_serving() and (_alone is None or not _alone.is_alive):
            _alone = LoneWorker()
            _alone.start()


def stop_lone_worker() -> None:
    """Drain the worker that `ensure_worker` has started in this process, if there is one."""
    with _starting:
        if _alone is not None:
            _alone.stop()
