"""`manage.py beat`: see that periodic work is done; run one.

With a broker it is Celery's beat, which `config.process.command_line` runs without this class, and so
without Django's apps. Without a broker it does the work itself: each round has a lock, so it does not
matter that web and worker processes do it too.
"""

from __future__ import annotations

import asyncio
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand

from config import database
from config.process import cancellation, server
from config.process.coordinated import require_coordination

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Schedule the periodic work, or do it where there is no broker (run one)."
    requires_system_checks = ()

    def handle(self, *_: Any, **__: Any) -> None:
        if settings.CELERY_BROKER_URL:
            from config.process.celery_beat import run_beat

            run_beat()
            return
        require_coordination("beat")
        server.run(_keep_up)


async def _keep_up(stop: asyncio.Event) -> None:
    from conversations.metrics.refresh import refresh_for_ever
    from conversations.upkeep.rounds import upkeep_for_ever

    chores = [asyncio.create_task(upkeep_for_ever()), asyncio.create_task(refresh_for_ever())]
    log.info("beat ready")
    try:
        await stop.wait()
    finally:
        await cancellation.cancel_all(chores)
        await database.close()
