"""The ASGI application: HTTP by Django, sockets by Channels, and background tasks."""

from __future__ import annotations

import asyncio
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from asgiref.typing import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.urls import get_resolver, path, re_path  # noqa: E402

from agents import offers  # noqa: E402
from agents.api.sockets import NoSuchSocket, RunConsumer  # noqa: E402
from agents.intake import stream_slots  # noqa: E402
from config import database  # noqa: E402
from config.audit import key_openings  # noqa: E402
from config.cache import keep_warm  # noqa: E402
from config.coordination import rate_limits, redis_client  # noqa: E402
from config.http.admission import Posts  # noqa: E402
from config.http.asgi_handlers import ApiHandler, HotHandler, Split, UploadHandler  # noqa: E402
from config.http.middleware import RequestId  # noqa: E402
from config.process import cancellation  # noqa: E402
from config.telemetry.http_spans import HttpSpans  # noqa: E402
from conversations.log.follow import hub, stop_hub  # noqa: E402
from conversations.metrics.otlp_metrics import send_own_for_ever  # noqa: E402
from conversations.metrics.refresh import refresh_for_ever  # noqa: E402
from conversations.runs.load_shedding import load  # noqa: E402
from conversations.runs.sweeper import sweep_for_ever  # noqa: E402
from conversations.upkeep.rounds import upkeep_for_ever  # noqa: E402

_urls = get_resolver().url_patterns  # imports every view now, so that the first request need not wait

_sockets = URLRouter(
    [
        path("ws/agent/runs/<str:run_id>", RunConsumer.as_asgi()),
        re_path(r"", NoSuchSocket.as_asgi()),
    ]
)


_BACKGROUND_TASKS = (
    sweep_for_ever,
    upkeep_for_ever,
    refresh_for_ever,
    send_own_for_ever,
    load.count_for_ever,
    keep_warm,
    key_openings.write_for_ever,
    offers.listen_for_ever,
    rate_limits.sync_for_ever,
    stream_slots.obey_for_ever,
    stream_slots.renew_for_ever,
)


class BackgroundTasks:
    """Starts the background tasks of a web process on the first event.

    Not every server sends `lifespan`, so the first request may be that event.
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
            database.set_serving_loop(loop)
            hub()
            self._chores = [loop.create_task(chore()) for chore in _BACKGROUND_TASKS]

    async def _live(self, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self._stop()
        await send({"type": "lifespan.shutdown.complete"})

    async def _stop(self) -> None:
        await cancellation.cancel_all(self._chores)
        await stop_hub()
        database.set_serving_loop(None)
        await redis_client.close()
        await database.close()


_http = Split(
    hot=HotHandler(Posts(load.refusal)),
    uploads=UploadHandler(),
    with_orm=ApiHandler(),
    pages=django_application,
)
_router = ProtocolTypeRouter({"http": _http, "websocket": _sockets})
turn_away = _http.turn_away
application = BackgroundTasks(RequestId(HttpSpans(_router)))
