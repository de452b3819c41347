"""Django's ASGI handler for the hot endpoints, without what they do not need.

For every request Django makes a thread (to run its synchronous signal receivers and to close the
response) and reads the whole body to a spool. The run endpoints are async to the bottom and use no
ORM, so they are answered without both, and a body is read no further than they accept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from typing import Any, Final

from django.conf import settings
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.urls import set_script_prefix

from config.errors import PayloadTooLarge, Unavailable
from config.http import error_response

Application = Callable[[Any, Any, Any], Awaitable[None]]
BODY_LIMIT: Final = 262_144
TOO_LARGE: Final = "RunAgentInput payload exceeds size limit"
HOT_PATHS: Final = ("/api/v1/agent/run", "/api/v1/messages/", "/api/v1/schemas/", "/health")


class HotHandler(ASGIHandler):
    """Answers requests whose views are coroutines that touch no ORM."""

    _posts = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            with self._admitted(scope["method"]):
                body = await _read_body(receive)
                if body is not None:
                    set_script_prefix(get_script_prefix(scope))
                    await self._until_gone(self._answer(scope, body, send), receive)
        except (PayloadTooLarge, Unavailable) as error:
            await self.send_response(error_response(error), send)

    @contextmanager
    def _admitted(self, method: str) -> Iterator[None]:
        """One more POST in progress; Unavailable, before anything is read, when there are too many."""
        if method != "POST":
            yield
            return
        if self._posts >= settings.POSTS_AT_ONCE:
            raise Unavailable("Too many requests at once.", code="overloaded", retry_after=1)
        self._posts += 1
        try:
            yield
        finally:
            self._posts -= 1

    async def _answer(self, scope: Any, body: bytes, send: Any) -> None:
        request, refusal = self.create_request(scope, BytesIO(body))
        response: Any = refusal if request is None else await self.run_get_response(request)
        await self.send_response(response, send)

    async def _until_gone(self, answer: Any, receive: Any) -> None:
        """Answer, but stop when the client goes away: nobody would read the rest."""
        answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(receive())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not answering.done():
                answering.cancel()
        await asyncio.gather(answering, return_exceptions=True)
        if not answering.cancelled():
            answering.result()


class Split:
    """Hot paths to one application, everything else to the other."""

    def __init__(self, hot: Application, other: Application) -> None:
        self.hot = hot
        self.other = other

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        app = self.hot if scope["path"].startswith(HOT_PATHS) else self.other
        await app(scope, receive, send)


async def _read_body(receive: Any) -> bytes | None:
    """The body, or None if the client went away. PayloadTooLarge as soon as it is over the limit."""
    body = bytearray()
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        body += event.get("body", b"")
        if len(body) > BODY_LIMIT:
            raise PayloadTooLarge(TOO_LARGE)
        if not event.get("more_body", False):
            return bytes(body)
