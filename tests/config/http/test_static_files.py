"""Static files under ASGI: read on a thread, and closed whatever the client does."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.http import HttpRequest
from django.test import RequestFactory

from config.http.middleware import StaticFiles

PATH = "/static/chat/chat.css"


async def _no_page(request: HttpRequest) -> Any:
    raise AssertionError(f"{request.path} is no static file")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The files that WhiteNoise opens."""
    found: list[Any] = []

    def remember(*arguments: Any) -> Any:
        found.append(open(*arguments))  # noqa: SIM115 - what is served must close it
        return found[-1]

    monkeypatch.setattr("whitenoise.responders.open", remember, raising=False)
    return found


def test_a_file_is_served_whole_and_closed(rf: RequestFactory, opened: list[Any]) -> None:
    async def serve() -> Any:
        return await StaticFiles(_no_page)(rf.get(PATH))

    response = asyncio.run(serve())
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/css")
    assert len(response.content) == int(response.headers["Content-Length"])
    assert [file.closed for file in opened] == [True]


def test_a_client_that_leaves_before_the_file_is_read_leaves_no_file_open(
    rf: RequestFactory, opened: list[Any]
) -> None:
    async def leave_early() -> None:
        middleware, busy = StaticFiles(_no_page), threading.Event()
        async with ThreadSensitiveContext():
            holding = asyncio.ensure_future(sync_to_async(busy.wait)(10))
            serving = asyncio.ensure_future(middleware(rf.get(PATH)))
            await asyncio.sleep(0.05)  # it waits for the thread of its request
            serving.cancel()
            await asyncio.wait({serving})
            busy.set()
            await holding
        assert serving.cancelled()

    asyncio.run(leave_early())
    assert [file.closed for file in opened] == [True] * len(opened)
