"""The wake-up of workers as a message: "there is a run to look at" (DESIGN §2).

`wake_workers` is called after the commit that accepted a run. It never waits and never fails: an
operating-system thread sends the message, and if the broker is away the workers find the run by
themselves. The code that accepts a run does not import the code that executes it: a worker registers
itself here, and Celery's task is sent by name.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID
from weakref import WeakKeyDictionary, WeakSet

import structlog
from django.conf import settings

from config.coordination import notifications

logger = structlog.get_logger(__name__)

WORKERS: Final = "worker"
"""The group of notifications that all workers listen to."""
EXECUTE_RUN: Final = "agents.execute_run"
"""The name of the Celery task that wakes a worker."""
_MOMENT_S: Final = 0.002
_SOON_S: Final = 0.1
_PAUSE_S: Final = 0.9

_wake: Callable[[], None] | None = None


def register_worker(wake: Callable[[], None] | None) -> None:
    """Register the function that every wake-up in this process calls; None when its worker ends."""
    global _wake
    _wake = wake


def wake_here() -> bool:
    """Wake the worker of this process; return False if it has none."""
    found = _wake
    if found is not None:
        found()
    return found is not None


def wake_workers(run_id: UUID) -> None:
    """Wake a worker: the one in this process, or those that a notification reaches.

    The notification is fast and reaches every worker that runs; the message of a broker, where one is
    configured, starts one in a bare `celery worker`, which looks by itself from then on. It costs a
    hundred times as much, so it follows a moment later, one for all runs until then, and the next one a
    second later.
    """
    if not wake_here():
        _bell.ring()
        start_workers(run_id)


def start_workers(run_id: UUID) -> None:
    """Send the broker's message alone, for a run that a worker has already."""
    if settings.CELERY_BROKER_URL and _wake is None:
        _publisher.publish(run_id.hex)


class _Bell:
    """Notifies the workers at once, and of what comes in the moment after that together."""

    def __init__(self) -> None:
        self._rung: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
        self._coming: WeakSet[asyncio.AbstractEventLoop] = WeakSet()

    def ring(self) -> None:
        """Notify soon; call it on the event loop."""
        loop = asyncio.get_running_loop()
        if loop in self._coming:
            return
        due = self._rung.get(loop, 0.0) + _MOMENT_S
        if due > loop.time():
            self._coming.add(loop)
            loop.call_at(due, self._notify, loop)
        else:
            self._notify(loop)

    def _notify(self, loop: asyncio.AbstractEventLoop) -> None:
        self._coming.discard(loop)
        self._rung[loop] = loop.time()
        notifications.notify(WORKERS, {"wake": True})


_bell: Final = _Bell()


class _Publisher:
    """A sender of wake-ups with its own operating-system thread, because the broker's client blocks."""

    def __init__(self) -> None:
        self._waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def publish(self, run_id: str) -> None:
        self._waiting.put(run_id)
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._send_for_ever, daemon=True, name="wake-ups")
                self._thread.start()

    def _send_for_ever(self) -> None:
        while True:
            latest = self._waiting.get()
            time.sleep(_SOON_S)
            while not self._waiting.empty():
                latest = self._waiting.get()
            self._send(latest)
            time.sleep(_PAUSE_S)

    def _send(self, run_id: str) -> None:
        try:
            from config.celery import app

            app.send_task(EXECUTE_RUN, (run_id,), retry=False, ignore_result=True)
        except Exception as error:  # kombu's errors differ by transport; workers look by themselves
            logger.warning("wake-up not sent", run_id=run_id, error=type(error).__name__)


_publisher: Final = _Publisher()
