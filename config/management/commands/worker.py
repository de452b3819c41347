"""`manage.py worker`: execute runs; any number may run."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config import database
from config.process import memory, schema, server
from config.process.broker import require_broker
from config.process.celery_threads import Consumer


class Command(BaseCommand):
    help = "Execute runs (one process, many runs at once; run as many processes as you need)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--capacity", type=int, help="runs at once (default: WORKER_CAPACITY)")

    def handle(self, *_: Any, capacity: int | None, **__: Any) -> None:
        require_broker("worker")
        if capacity is not None:
            if capacity < 1:
                raise CommandError("--capacity must be 1 or more.")
            settings.WORKER_CAPACITY = capacity
        server.run(_work)


async def _work(stop: asyncio.Event) -> None:
    from agents.worker.loop import serve_worker

    database.set_serving_loop(asyncio.get_running_loop())
    await schema.wait_for_migrations(stop)
    consumer = Consumer()
    memory.freeze_heap()
    consumer.start()
    try:
        await serve_worker(stop)
    finally:
        await asyncio.to_thread(consumer.stop)
        await database.close()
