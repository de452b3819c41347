"""Celery's beat, where there is a broker: the scheduler of periodic tasks, as a thread or a process.

Correctness does not need it: workers do these chores by themselves, and a bare `celery worker` has its
rounds from here. It goes on by itself when the broker is back.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Final

from celery.beat import Service
from django.conf import settings
from django.utils.log import configure_logging

from config.celery import app

_STOP_S: Final = 3.0


def run_beat() -> None:
    """Run beat as this process, without Django's apps: it needs no table, and half the memory."""
    configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    Beat(settings.VAR_DIR).run()


class Beat:
    """The scheduler of periodic tasks; `folder` stores their last times."""

    def __init__(self, folder: Path) -> None:
        app.finalize(auto=True)
        app.conf.broker_connection_max_retries = None  # for ever
        folder.mkdir(parents=True, exist_ok=True)
        self._service = Service(  # type: ignore[call-arg]
            app, max_interval=1, schedule_filename=str(folder / "beat"), remote_control=False
        )
        self._thread = threading.Thread(target=self.run, name="beat", daemon=True)

    def start(self) -> None:
        """Run on a separate operating-system thread."""
        self._thread.start()

    def run(self) -> None:
        """Run here until another thread calls `stop`. The tasks are sent by name and not imported."""
        self._service.start(embedded_process=False)

    def stop(self) -> None:
        self._service.stop(wait=False)
        if self._thread.is_alive():
            self._thread.join(timeout=_STOP_S)
