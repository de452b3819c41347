"""Django's ASGI handler for the hot endpoints, without what they do not need.

For every request Django makes a thread (to run its synchronous signal receivers and to close the
response) and reads the whole body to a spool. The run endpoints are async to the bottom and use no
ORM, so they are answered without both, and a body is read no further than they accept.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from io import BytesIO
from typing import Any, Final

from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.urls import set_script_prefix

from config.bodies import BODY_LIMIT, HISTORY_LIMIT, Body, Incoming, PageBody
from config.errors import BodyTooSlow, ParleyError
from config.http import LateResponse, error_response, look_up_caller
from config.posts import Posts

Application = Callable[[Any, Any, Any], Awaitable[None]]
LEAVE_S: Final = 1.0
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
    "/v1/chat/completions",
    "/v1/models",
    "/compatible-mode/",
    "/api/v1/agent/process",
)
UPLOAD_PATH: Final = "/api/v1/agent/attachments"
HISTORY_PATHS: Final = (
    "/api/v1/agent/ag-ui",
    "/process",
    "/v1/responses",
    "/v1/chat/completions",
    "/compatible-mode/",
    "/api/v1/agent/process",
)
HISTORY_DIALECTS: Final = (b"dialect=ag-ui", b"dialect=agent-api", b"dialect=responses")


class HotHandler(ASGIHandler):
    """Answers requests whose views are coroutines that touch no ORM."""

    def __init__(self, posts: Posts | None = None) -> None:
        super().__init__()
        self._posts = posts or Posts()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = Body(scope, receive, limit=HISTORY_LIMIT if _brings_history(scope) else BODY_LIMIT)
        try:
            content = await body.read()
            if content is None:
                return
            with self._posts.admitted(scope["method"], scope["path"]) as leave:
                set_script_prefix(get_script_prefix(scope))
                answer = self._answer(scope, content, send, body, leave)
                del content  # the answer alone holds it, and lets go of it
                await self._until_gone(answer, receive)
        except ParleyError as error:
            await _send_error(error, scope, send, body)
        finally:
            body.leave()

    async def _answer(
        self, scope: Any, content: bytes, send: Any, body: Body, leave: Callable[[], None]
    ) -> None:
        """A run's stream may last for minutes: by then nobody may hold on to a large body."""
        look_up_caller(scope)
        request, refusal = self.create_request(scope, BytesIO())
        response: Any = refusal
        if request is not None:
            request._body = content
            response = await self.run_get_response(request)
            request._body = content = b""
        body.leave()
        leave()
        if isinstance(response, LateResponse):
            await response.decide()
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
        body = PageBody(receive)
        await self.other(scope, body, send)
        if body.refusal is not None:
            await _send_error(body.refusal, scope, send, body)


def _brings_history(scope: Any) -> bool:
    """Whether it is a client that may send its whole history each turn, and images with it."""
    if scope["path"].startswith(HISTORY_PATHS):
        return True
    return any(dialect in scope["query_string"] for dialect in HISTORY_DIALECTS)


async def _send_error(error: ParleyError, scope: Any, send: Any, body: Incoming) -> None:
    """Answer without Django; a client that has not sent its whole body is also hung up on."""
    response = error_response(error, scope["path"])
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    if not body.ended:
        headers.append((b"connection", b"close"))
    headers.append((b"content-length", str(len(response.content)).encode()))
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": response.content, "more_body": True})
    if not isinstance(error, BodyTooSlow):
        await body.discard()
    await send({"type": "http.response.body", "body": b"", "more_body": False})
