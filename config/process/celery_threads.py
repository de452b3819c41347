"""Celery inside a worker, where there is a broker: a thread that receives wake-ups.

Correctness does not need it: the worker also polls for queued runs, so an outage of the broker costs
only latency (DESIGN §2). The thread resumes by itself when the broker is back.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from typing import Final

import structlog
from celery.worker import WorkController, state

from config.celery import app

log = structlog.get_logger(__name__)

_RETRY_S: Final = 1.0
_STOP_S: Final = 3.0


def _prepare_app() -> None:
    """Register all tasks before the thread starts: beat's registers them too, and they would collide."""
    os.environ.setdefault(
        "CELERY_SKIP_CHECKS", "1"
    )  # of Django: they are for people, and read all of it
    app.loader.import_default_modules()
    app.finalize(auto=True)
    app.conf.broker_connection_max_retries = None  # for ever


class Consumer:
    """Celery's consumer on a separate operating-system thread, where tasks run one after the other."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="celery", daemon=True)

    def start(self) -> None:
        _prepare_app()
        for chatty in ("celery.worker.strategy", "celery.app.trace", "kombu.connection"):
            logging.getLogger(chatty).setLevel(logging.ERROR)  # else two lines per run
        self._thread.start()

    def stop(self) -> None:
        """Stop receiving; a running task is finished first."""
        self._stopping.set()
        state.should_stop = 0  # type: ignore[assignment]
        self._thread.join(timeout=_STOP_S)

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._consume()
            except Exception:
                log.exception("the Celery consumer stopped; it starts again")
            self._stopping.wait(_RETRY_S)

    def _consume(self) -> None:
        WorkController(
            app=app,
            hostname=f"parley@{socket.gethostname()}",
            pool="solo",
            concurrency=1,
            without_mingle=True,
            without_gossip=True,
            without_heartbeat=True,
        ).start()
