"""`manage.py serve`: the web and worker processes of one host, which share a port and memory."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from functools import partial
from importlib import import_module
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand

from config.management.commands.web import add_web_arguments, listen, run_web
from config.management.commands.worker import add_worker_arguments, run_worker, set_capacity
from config.process.coordinated import require_coordination
from config.process.pooler_check import require_usable_pooler
from config.process.prefork import Part, keep_running
from config.process.server import ServerName

_LOADED: Final = ("config.asgi", "agents.worker.loop", "config.process.server_protocols")
_LOADED_WITH_BROKER: Final = ("celery.worker.consumer", "celery.concurrency.solo")


def _positive(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise ArgumentTypeError(f"{text} is not a number from 1 to 64")
    return int(text)


class Command(BaseCommand):
    help = "Run this host's web and worker processes; replace those that die."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_web_arguments(parser)
        add_worker_arguments(parser)
        parser.add_argument("--web", type=_positive, default=1, help="web processes (1), of one port")
        parser.add_argument("--workers", type=_positive, default=1, help="worker processes (1)")

    def handle(
        self,
        *_: Any,
        host: str,
        port: int,
        server: ServerName,
        capacity: int | None,
        workers: int,
        **options: Any,
    ) -> None:
        require_coordination("serve")
        require_usable_pooler()
        set_capacity(capacity)
        listener = listen(host, port, server)
        _load()
        serving = partial(run_web, listener, server)
        parts = [Part(f"web-{number}", serving) for number in range(1, options["web"] + 1)]
        parts += [Part(f"worker-{number}", run_worker) for number in range(1, workers + 1)]
        keep_running(parts)


def _load() -> None:
    """Import what each process would import on its own."""
    for name in _LOADED:
        import_module(name)
    if settings.CELERY_BROKER_URL:
        for name in _LOADED_WITH_BROKER:
            import_module(name)
        from config.celery import app as celery

        celery.loader.import_default_modules()
        celery.finalize(auto=True)
