"""Celery inside Parley's processes: a thread that receives wake-ups, and a thread or process for beat.

Correctness needs neither: the worker also polls for queued runs, so an outage of the broker costs only
latency (DESIGN §2). Both threads resume by themselves when the broker is back.
"""

from __future__ import annotations

import logging
import socket
import threading
from pathlib import Path
from typing import Final

import structlog
from celery.beat import Service
from celery.worker import WorkController, state
from django.conf import settings
from django.core.management.base import CommandError

from config.celery import app
from config.process import installation

log = structlog.get_logger(__name__)

_RETRY_S: Final = 1.0
_STOP_S: Final = 3.0


def require_broker(command: str) -> None:
    """Raise CommandError if there is no broker that connects several processes."""
    if settings.EMBEDDED:
        raise CommandError(
            f"`{command}` is one process of several, which meet over a broker: set REDIS_URL (or "
            f"CELERY_BROKER_URL), or start everything in one process with `{installation.UP}`."
        )


def _prepare_app() -> None:
    """Register all tasks before threads start: two threads that both register would collide."""
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
        for _ in range(2 if settings.EMBEDDED else 0):
            app.send_task("celery.accumulate")  # each message ends one of its two-second polls early
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


class Beat:
    """The scheduler of periodic tasks; `folder` stores their last times."""

    def __init__(self, folder: Path) -> None:
        _prepare_app()
        folder.mkdir(parents=True, exist_ok=True)
        self._service = Service(  # type: ignore[call-arg]
            app, max_interval=1, schedule_filename=str(folder / "beat"), remote_control=False
        )
        self._thread = threading.Thread(target=self.run, name="beat", daemon=True)

    def start(self) -> None:
        """Run on a separate operating-system thread."""
        self._thread.start()

    def run(self) -> None:
        """Run here until another thread calls `stop`."""
        self._service.start(embedded_process=False)

    def stop(self) -> None:
        self._service.stop(wait=False)
        if self._thread.is_alive():
            self._thread.join(timeout=_STOP_S)
