"""`manage.py web`: serve HTTP and WebSockets; any number may run."""

from __future__ import annotations

import asyncio
import socket
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

import structlog
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from config.process import bootstrap, memory, server
from config.process.coordinated import require_coordination
from config.process.pooler_check import require_usable_pooler
from config.process.server import ServerName

log = structlog.get_logger(__name__)


class Command(BaseCommand):
    help = "Serve the API, the streams and the admin (one process; run as many as you need)."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        add_web_arguments(parser)

    def handle(self, *_: Any, host: str, port: int, server: ServerName, **__: Any) -> None:
        require_coordination("web")
        require_usable_pooler()
        run_web(listen(host, port, server), server)


def add_web_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--host", default=settings.HOST)
    parser.add_argument("--port", type=_port, default=settings.PORT)
    parser.add_argument(
        "--server",
        choices=server.SERVERS,
        default=server.get_server_name(),
        help="the ASGI server (default: ASGI_SERVER, else %(default)s)",
    )


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError(f"{text} is not a number from 1 to 65535")
    return int(text)


def listen(host: str, port: int, name: ServerName) -> socket.socket:
    """Return the listening socket; raise CommandError if port or server cannot be had."""
    server.require_server(name)
    try:
        return bootstrap.bind(host, port)
    except bootstrap.CannotStart as refusal:
        raise CommandError(str(refusal)) from None


def run_web(listener: socket.socket, name: ServerName) -> None:
    """Serve on this socket until SIGTERM or SIGINT."""

    async def main(stop: asyncio.Event) -> None:
        from config.asgi import application, turn_away

        host, port, *_ = listener.getsockname()
        async with server.lifespan(application):
            memory.freeze_heap()
            log.info("web ready", host=host, port=port, server=name)
            await server.serve(
                application, listener=listener, server=name, stop=stop, turn_away=turn_away
            )

    server.run(main)
