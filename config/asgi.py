"""The ASGI application: HTTP through Django, sockets through Channels, and the web's own chores."""

from __future__ import annotations

import asyncio
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from asgiref.typing import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import path, re_path  # noqa: E402

from agents import guards  # noqa: E402
from agents.consumers import NoSuchSocket, RunConsumer  # noqa: E402
from agents.load import load  # noqa: E402
from agents.sweeper import sweep_for_ever  # noqa: E402
from config import cancelling, database, limits, shared  # noqa: E402
from config.audit import openings  # noqa: E402
from config.handler import HotHandler, Split  # noqa: E402
from config.middleware import RequestId  # noqa: E402
from config.posts import Posts  # noqa: E402
from config.uploads import UploadHandler  # noqa: E402
from conversations.follow import hub, stop_hub  # noqa: E402
from conversations.metrics.keeping import keep_for_ever  # noqa: E402
from conversations.upkeep import upkeep_for_ever  # noqa: E402
from prompts.remembered import keep_warm  # noqa: E402

_sockets = URLRouter(
    [
        path("ws/agent/runs/<str:run_id>", RunConsumer.as_asgi()),
        re_path(r"", NoSuchSocket.as_asgi()),
    ]
)


_CHORES = (
    sweep_for_ever,
    upkeep_for_ever,
    keep_for_ever,
    load.count_for_ever,
    keep_warm,
    openings.write_for_ever,
    limits.tell_for_ever,
    guards.obey_for_ever,
    guards.renew_for_ever,
)


class Chores:
    """Starts what a web process does beside answering, on the first event of any kind.

    Servers differ in whether they send `lifespan`, so the first request will do as well.
    """

    def __init__(self, app: ASGI3Application) -> None:
        self.app = app
        self._chores: list[asyncio.Task[None]] = []

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        self._start()
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self.app(scope, receive, send)

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        if not self._chores or self._chores[0].get_loop() is not loop:
            database.serve_on(loop)
            hub()
            self._chores = [loop.create_task(chore()) for chore in _CHORES]

    async def _live(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _stop(self) -> None:
        await cancelling.end(self._chores)
        await stop_hub()
        database.serve_on(None)
        await shared.close()
        await database.close()


_http = Split(HotHandler(Posts(load.refusal)), UploadHandler(), django_application)
application = Chores(RequestId(ProtocolTypeRouter({"http": _http, "websocket": _sockets})))
