"""The Celery tasks: a wake-up from another process, and the periodic chores."""

from __future__ import annotations

import sys
import threading

import structlog
from celery import signals
from django.core.management.base import CommandError

from agents import wakeup
from agents.worker.lone_worker import ensure_worker, stop_lone_worker
from config import database
from config.celery import app
from config.process.coordinated import require_coordination
from config.process.pooler_check import require_usable_pooler
from conversations.metrics.refresh import refresh_if_due
from conversations.upkeep.rounds import run_upkeep_round

logger = structlog.get_logger(__name__)


@app.task(name=wakeup.EXECUTE_RUN)
def execute_run(run_id: str) -> None:
    """Wake this process's worker. The rows of the runs decide which run it then takes."""
    if not wakeup.wake_here():
        ensure_worker()
        wakeup.wake_here()


@signals.celeryd_init.connect(weak=False)
def _check(**_: object) -> None:
    """End a bare `celery worker` for what would end `manage.py worker`."""
    try:
        require_coordination("celery worker")
        require_usable_pooler()
    except CommandError as refusal:
        sys.exit(str(refusal))


@signals.worker_process_shutdown.connect(weak=False)  # a child of the pool `prefork`
@signals.worker_shutdown.connect(weak=False)
def _drain(**_: object) -> None:
    stop_lone_worker()


@app.task(name="agents.upkeep")
def keep_up() -> None:
    """Do a round of upkeep on an OS thread of its own, because wake-ups come through this one."""
    threading.Thread(target=_keep_up, daemon=True, name="upkeep").start()


def _keep_up() -> None:
    try:
        database.run_sync(run_upkeep_round())
        database.run_sync(refresh_if_due())
    except Exception as error:  # the next minute brings the next round
        database.log_failure(logger, "upkeep failed", error)
