"""Faults that are planted on purpose, as views: what the gate has to report (`test_gate.py`)."""

from __future__ import annotations

import asyncio
import time

from django.http import HttpRequest, HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt

from config import urls
from tests.hostile.prepare import KEY

_kept: list[bytes] = []


def _work(seconds: float) -> None:
    """Use so much of a processor."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


@csrf_exempt
async def hold(request: HttpRequest) -> HttpResponse:
    """Hold the event loop, as a slow parser does."""
    _work(0.6)
    return HttpResponse("{}")


@csrf_exempt
async def keep(request: HttpRequest) -> HttpResponse:
    """Keep memory, as a cache without a limit does."""
    _kept.append(b"x" * 64 * 1024 * 1024)
    return HttpResponse("{}")


@csrf_exempt
async def labour(request: HttpRequest) -> HttpResponse:
    """Work for long beside the loop, which answers others meanwhile."""
    await asyncio.to_thread(_work, 1.5)
    return HttpResponse("{}")


@csrf_exempt
async def leak(request: HttpRequest) -> HttpResponse:
    """Say the key."""
    return HttpResponse(f'{{"key": "{KEY}"}}')


urlpatterns = [
    path("planted/hold", hold),
    path("planted/keep", keep),
    path("planted/labour", labour),
    path("planted/leak", leak),
    *urls.urlpatterns,
]
handler400, handler403 = urls.handler400, urls.handler403
handler404, handler500 = urls.handler404, urls.handler500
