"""`manage.py web`: answer HTTP and WebSockets; any number of these may run."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config import memory, serve, start
from config.wakeups import require_broker

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Serve the API, the streams and the admin (one process; run as many as you need)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT)
        parser.add_argument(
            "--server",
            choices=serve.SERVERS,
            default=serve.chosen_server(),
            help="the ASGI server (default: ASGI_SERVER, else %(default)s)",
        )

    def handle(self, *_: Any, host: str, port: int, server: serve.ServerName, **__: Any) -> None:
        require_broker("web")
        try:
            listener = start.bind(host, port)
        except start.CannotStart as refusal:
            raise CommandError(str(refusal)) from None

        async def main(stop: asyncio.Event) -> None:
            from config.asgi import application

            async with serve.lifespan(application):
                memory.settle()
                log.info("web ready", host=host, port=port, server=server)
                await serve.serve(application, listener=listener, server=server, stop=stop)

        serve.run(main)
