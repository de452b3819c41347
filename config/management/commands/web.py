"""`manage.py web`: serve HTTP and WebSockets; any number may run."""

from __future__ import annotations

import asyncio
from argparse import ArgumentParser
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.process import bootstrap, memory
from config.process.coordinated import require_coordination
from config.process.pooler_check import require_usable_pooler
from config.process.server import (
    SERVERS,
    ServerName,
    get_server_name,
    lifespan,
    require_server,
    run,
    serve,
)

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Serve the API, the streams and the admin (one process; run as many as you need)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default=settings.HOST)
        parser.add_argument("--port", type=int, default=settings.PORT)
        parser.add_argument(
            "--server",
            choices=SERVERS,
            default=get_server_name(),
            help="the ASGI server (default: ASGI_SERVER, else %(default)s)",
        )

    def handle(self, *_: Any, host: str, port: int, server: ServerName, **__: Any) -> None:
        require_coordination("web")
        require_usable_pooler()
        require_server(server)
        try:
            listener = bootstrap.bind(host, port)
        except bootstrap.CannotStart as refusal:
            raise CommandError(str(refusal)) from None

        async def main(stop: asyncio.Event) -> None:
            from config.asgi import application

            async with lifespan(application):
                memory.freeze_heap()
                log.info("web ready", host=host, port=port, server=server)
                await serve(application, listener=listener, server=server, stop=stop)

        run(main)
