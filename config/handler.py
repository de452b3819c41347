"""Django's ASGI handler for the hot endpoints, without what they do not need.

For every request Django makes a thread (to run its synchronous signal receivers and to close the
response) and reads the whole body to a spool. The run endpoints are async to the bottom and use no
ORM, so they are answered without both, and a body is read no further than they accept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any, ClassVar, Final

from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.urls import set_script_prefix

from config.errors import BodyTooSlow, ParleyError, PayloadTooLarge, Unavailable
from config.http import error_response, look_up_caller
from config.posts import Posts

Application = Callable[[Any, Any, Any], Awaitable[None]]
BODY_LIMIT: Final = 262_144
PAGE_BODY_LIMIT: Final = 4 * 1024 * 1024
BODY_S: Final = 15.0
LEAVE_S: Final = 1.0
TOO_LARGE: Final = "RunAgentInput payload exceeds size limit"
HISTORY_LIMIT: Final = 32 * 1024 * 1024
LARGE_AT_ONCE: Final = 8
HOT_PATHS: Final = (
    "/api/v1/agent/run",
    "/api/v1/agent/ag-ui",
    "/api/v1/agent/capabilities",
    "/api/v1/agent/history",
    "/api/v1/agent/threads",
    "/api/v1/messages/",
    "/api/v1/metrics/",
    "/api/v1/schemas/",
    "/storage/v1/",
    "/health",
    "/ready",
    "/metrics",
    "/process",
    "/v1/responses",
    "/compatible-mode/",
    "/api/v1/agent/process",
)
UPLOAD_PATH: Final = "/api/v1/agent/attachments"
HISTORY_PATHS: Final = (
    "/api/v1/agent/ag-ui",
    "/process",
    "/v1/responses",
    "/compatible-mode/",
    "/api/v1/agent/process",
)


class HotHandler(ASGIHandler):
    """Answers requests whose views are coroutines that touch no ORM."""

    def __init__(self, posts: Posts | None = None) -> None:
        super().__init__()
        self._posts = posts or Posts()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        room = _Room(HISTORY_LIMIT if _brings_history(scope) else BODY_LIMIT)
        try:
            body = await _read_body(receive, room)
            if body is None:
                return
            with self._posts.admitted(scope["method"], scope["path"]) as leave:
                set_script_prefix(get_script_prefix(scope))
                answer = self._answer(scope, body, send, room, leave)
                del body  # the answer alone holds it, and lets go of it
                await self._until_gone(answer, receive)
        except (PayloadTooLarge, BodyTooSlow, Unavailable) as error:
            await _send_error(error, send)
        finally:
            room.leave()

    async def _answer(
        self, scope: Any, body: bytes, send: Any, room: _Room, leave: Callable[[], None]
    ) -> None:
        """A run's stream may last for minutes: by then nobody may hold on to a large body."""
        look_up_caller(scope)
        request, refusal = self.create_request(scope, BytesIO())
        response: Any = refusal
        if request is not None:
            request._body = body
            response = await self.run_get_response(request)
            request._body = body = b""
        room.leave()
        leave()
        await self.send_response(response, send)

    async def _until_gone(self, answer: Any, receive: Any) -> None:
        """Answer, but stop when the client goes away: nobody would read the rest."""
        answering, leaving = asyncio.ensure_future(answer), asyncio.ensure_future(receive())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            while not answering.done():  # what it waits for may swallow a cancellation
                answering.cancel()
                await asyncio.wait({answering}, timeout=LEAVE_S)
        if not answering.cancelled():
            answering.result()


class Split:
    """Hot paths to one application, uploads to another, everything else to the third."""

    def __init__(self, hot: Application, uploads: Application, other: Application) -> None:
        self.hot = hot
        self.uploads = uploads
        self.other = other

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["path"].startswith(HOT_PATHS):
            await self.hot(scope, receive, send)
            return
        if scope["path"] == UPLOAD_PATH:
            await self.uploads(scope, receive, send)
            return
        bounded = _Bounded(receive)
        await self.other(scope, bounded, send)
        if bounded.size > PAGE_BODY_LIMIT:  # Django stopped reading and has said nothing
            await _send_error(PayloadTooLarge(), send)


def _brings_history(scope: Any) -> bool:
    """Whether it is a client that may send its whole history each turn, and images with it."""
    if scope["path"].startswith(HISTORY_PATHS) or b"dialect=ag-ui" in scope["query_string"]:
        return True
    accepts = [value for name, value in scope["headers"] if name == b"accept"]
    return any(b"text/event-stream" in value for value in accepts)


class _Room:
    """How large a body may be, and one of the few places that the large ones share."""

    taken: ClassVar[int] = 0

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._large = False

    def grow(self, size: int) -> None:
        """PayloadTooLarge past the limit; Unavailable while too many large ones are being taken in."""
        if size > self._limit:
            raise PayloadTooLarge(TOO_LARGE)
        if size > BODY_LIMIT and not self._large:
            if _Room.taken >= LARGE_AT_ONCE:
                raise Unavailable("Too many requests at once.", code="overloaded", retry_after=1)
            self._large = True
            _Room.taken += 1

    def leave(self) -> None:
        if self._large:
            self._large = False
            _Room.taken -= 1


async def _read_body(receive: Any, room: _Room) -> bytes | None:
    """The body, or None if the client went away. PayloadTooLarge as soon as it is over the limit."""
    try:
        async with asyncio.timeout(BODY_S):
            return await _read_whole(receive, room)
    except TimeoutError:
        raise BodyTooSlow from None


async def _read_whole(receive: Any, room: _Room) -> bytes | None:
    body = bytearray()
    while True:
        event = await receive()
        if event["type"] == "http.disconnect":
            return None
        body += event.get("body", b"")
        room.grow(len(body))
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
