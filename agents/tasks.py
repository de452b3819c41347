"""Celery carries wake-ups: "there is a run to look at" (DESIGN §2).

`wake_workers` is called after the commit that accepted a run. It never waits and never fails: a
thread sends the message, and if the broker is away the workers find the run by themselves.
"""

from __future__ import annotations

import queue
import threading
import time
from typing import Final
from uuid import UUID

import structlog

from agents import worker
from config import database, ring
from config.celery import app
from conversations.metrics.keeping import keep_once
from conversations.upkeep import upkeep

logger = structlog.get_logger(__name__)

_PAUSE_S: Final = 0.1


@app.task(name="agents.execute_run")
def execute_run(run_id: str) -> None:
    """Wake this process's worker. Which run it then takes is decided by the runs' rows."""
    if not worker.wake_here():
        worker.ensure_worker()
        worker.wake_here()


@app.task(name="agents.upkeep")
def keep_up() -> None:
    """A round of upkeep, on a thread of its own because wake-ups come through this one."""
    threading.Thread(target=_keep_up, daemon=True, name="upkeep").start()


def _keep_up() -> None:
    try:
        database.run_sync(upkeep())
        database.run_sync(keep_once())
    except Exception as error:  # the next minute brings the next round
        logger.warning("upkeep failed", error=type(error).__name__)


def wake_workers(run_id: UUID) -> None:
    """Have some worker look for runs: the one in this process, or those that ring and broker reach.

    The ring is quick and reaches every worker; the broker's message is for when the ring is lost. It
    costs a hundred times as much, so it follows a moment later, and one stands for all runs until then.
    """
    if not worker.wake_here():
        ring.ring(worker.GROUP, {"wake": True})
        _publisher.publish(run_id.hex)


class _Publisher:
    """Sends wake-ups on a thread of its own, because the broker's client blocks."""

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
            time.sleep(_PAUSE_S)
            while not self._waiting.empty():
                latest = self._waiting.get()
            self._send(latest)

    def _send(self, run_id: str) -> None:
        try:
            execute_run.apply_async((run_id,), retry=False, ignore_result=True)
        except Exception as error:  # kombu's errors differ by transport; workers look by themselves
            logger.warning("wake-up not sent", run_id=run_id, error=type(error).__name__)


_publisher: Final = _Publisher()
