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

from config.errors import BodyTooSlow, ParleyError, PayloadTooLarge, Unavailable
from config.http import error_response

Application = Callable[[Any, Any, Any], Awaitable[None]]
BODY_LIMIT: Final = 262_144
PAGE_BODY_LIMIT: Final = 4 * 1024 * 1024
BODY_S: Final = 15.0
TOO_LARGE: Final = "RunAgentInput payload exceeds size limit"
HOT_PATHS: Final = ("/api/v1/agent/run", "/api/v1/messages/", "/api/v1/schemas/", "/health")


class HotHandler(ASGIHandler):
    """Answers requests whose views are coroutines that touch no ORM."""

    _posts = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            body = await _read_body(receive)
            if body is None:
                return
            with self._admitted(scope["method"]):
                set_script_prefix(get_script_prefix(scope))
                await self._until_gone(self._answer(scope, body, send), receive)
        except (PayloadTooLarge, BodyTooSlow, Unavailable) as error:
            await _send_error(error, send)

    @contextmanager
    def _admitted(self, method: str) -> Iterator[None]:
        """One more POST in progress; Unavailable when there are too many.

        It begins when the body is here: else a few hundred that send none would hold every place.
        """
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
        if scope["path"].startswith(HOT_PATHS):
            await self.hot(scope, receive, send)
            return
        bounded = _Bounded(receive)
        await self.other(scope, bounded, send)
        if bounded.size > PAGE_BODY_LIMIT:  # Django stopped reading and has said nothing
            await _send_error(PayloadTooLarge(), send)


async def _read_body(receive: Any) -> bytes | None:
    """The body, or None if the client went away. PayloadTooLarge as soon as it is over the limit."""
    try:
        async with asyncio.timeout(BODY_S):
            return await _read_whole(receive)
    except TimeoutError:
        raise BodyTooSlow from None


async def _read_whole(receive: Any) -> bytes | None:
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


class _Bounded:
    """`receive` for Django, which would write a body of any size to disk, whoever sends it.

    Past the limit it says that the client has gone: then Django closes its file and is silent.
    """

    def __init__(self, receive: Any) -> None:
        self.size = 0
        self._receive = receive

    async def __call__(self) -> Any:
        event = await self._receive()
        self.size += len(event.get("body", b""))
        return event if self.size <= PAGE_BODY_LIMIT else {"type": "http.disconnect"}


async def _send_error(error: ParleyError, send: Any) -> None:
    """Answer without Django; a client that sends nothing is also hung up on."""
    response = error_response(error)
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    if isinstance(error, BodyTooSlow):
        headers.append((b"connection", b"close"))
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.content})
