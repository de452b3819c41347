"""`manage.py worker`: execute runs; any number may run."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config import database
from config.process import memory, schema, server
from config.process.celery_parts import receive_wake_ups
from config.process.coordinated import require_coordination
from config.process.pooler_check import require_usable_pooler


class Command(BaseCommand):
    help = "Execute runs (one process, many runs at once; run as many processes as you need)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_worker_arguments(parser)

    def handle(self, *_: Any, capacity: int | None, **__: Any) -> None:
        require_coordination("worker")
        require_usable_pooler()
        set_capacity(capacity)
        run_worker()


def add_worker_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--capacity", type=int, help="runs at once (default: WORKER_CAPACITY)")


def set_capacity(capacity: int | None) -> None:
    """Put the option, if it is given, over the setting."""
    if capacity is None:
        return
    if capacity < 1:
        raise CommandError("--capacity must be 1 or more.")
    settings.WORKER_CAPACITY = capacity


def run_worker() -> None:
    """Execute runs until SIGTERM or SIGINT."""
    server.run(_work)


async def _work(stop: asyncio.Event) -> None:
    from agents.worker.loop import serve_worker

    database.set_serving_loop(asyncio.get_running_loop())
    await schema.wait_for_migrations(stop)
    try:
        async with receive_wake_ups():
            memory.freeze_heap()
            await serve_worker(stop)
    finally:
        await database.close()
