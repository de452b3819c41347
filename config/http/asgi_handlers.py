"""Django's ASGI handlers for the API, without what its endpoints do not need.

For every request Django makes a thread (to run its synchronous signal receivers and to close the
response) and reads the whole body to a spool. Most endpoints are async to the bottom and use no ORM,
so they are answered without both, and a body is read no further than they accept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.exception import convert_exception_to_response
from django.urls import set_script_prefix

from config import errors
from config.errors import BodyTooSlow, ParleyError
from config.http import paths, streamed_body
from config.http.admission import Posts
from config.http.async_views import LateResponse, StreamedResponse, error_response, look_up_caller
from config.http.body_limits import BODY_LIMIT, HISTORY_LIMIT, Body, PageBody
from config.http.floods import floods
from config.http.hot_request import HotRequest
from config.http.middleware import ApiHeaders, find_request_id

Application = Callable[[Any, Any, Any], Awaitable[None]]
LEAVE_S: Final = 1.0
HISTORY_DIALECTS: Final = (b"dialect=ag-ui", b"dialect=agent-api", b"dialect=responses")


class ApiHandler(ASGIHandler):
    """Django's handler with the one middleware of the API in the place of the pages' list."""

    def load_middleware(self, is_async: bool = False) -> None:
        nothing: list[Any] = []
        self._view_middleware = self._exception_middleware = nothing
        self._template_response_middleware = nothing
        view: Any = convert_exception_to_response(self._get_response_async)  # type: ignore[attr-defined]
        self._middleware_chain = convert_exception_to_response(ApiHeaders(view))


class HotHandler(ApiHandler):
    """Answers requests whose views are coroutines that touch no ORM, and that `reverse` no address.

    So Django need not be told below which prefix the addresses are.
    """

    request_class = HotRequest

    def __init__(self, posts: Posts | None = None) -> None:
        super().__init__()
        self.posts = posts or Posts()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        body = Body(scope, receive, limit=HISTORY_LIMIT if _brings_history(scope) else BODY_LIMIT)
        try:
            content = await body.read()
            if content is None:
                return
            with self.posts.admitted(scope["method"], scope["path"]) as place:
                await place.turn()
                answer = self._answer(scope, content, send, body, place.leave)
                del content  # the answer alone holds it, and lets go of it
                await self._until_gone(answer, receive)
        except ParleyError as error:
            await _send_error(error, scope, send, body)
        finally:
            body.leave()

    async def _answer(
        self, scope: Any, content: bytes, send: Any, body: Body, leave: Callable[[], None]
    ) -> None:
        """A run's stream may last for minutes: by then nobody may hold on to the request or its body."""
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
        if isinstance(response, StreamedResponse):
            await send(_start_of(response))
            pieces = response.pieces
            del request, response
            await _send_pieces(pieces, send)
        else:
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


class UploadHandler(ApiHandler):
    """Answers requests whose views are coroutines that read the body themselves."""

    request_class = streamed_body.UploadRequest

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        set_script_prefix(get_script_prefix(scope))
        body = streamed_body.StreamedBody(scope, receive)
        request, refusal = self.create_request(scope, BytesIO())
        if isinstance(request, streamed_body.UploadRequest):
            request.incoming = body
        response: Any = refusal if request is None else await self.run_get_response(request)
        if body.ended or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.send_response(response, send)
            return
        response.headers["Connection"] = "close"
        response.headers["Content-Length"] = str(len(response.content))
        await self.send_response(response, streamed_body.Lingering(body, send))


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """Each request to the application for its address; see `config.http.paths`."""

    hot: HotHandler
    uploads: Application
    with_orm: Application
    pages: Application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        application = self._choose(scope["path"])
        if application in (self.pages, self.with_orm):
            await _with_limits(application, scope, receive, send)
        else:
            await application(scope, receive, send)

    def turn_away(self, scope: Any) -> tuple[int, dict[str, str], bytes] | None:
        """Return status, headers and body for a request that `hot` would refuse; None for any other.

        For a server that asks as soon as it has read a request, before it makes a task for it.
        """
        path = scope["path"]
        if self._choose(path) is not self.hot:
            return None
        refusal: ParleyError | None = None
        if path in paths.STARTS or path.startswith(paths.OF_A_RUN):
            refusal = floods.refusal(scope["headers"])
        if refusal is None and scope["method"] == "POST":
            refusal = self.hot.posts.refusal(path)
        if refusal is None:
            return None
        request_id, replaced = find_request_id(scope["headers"])
        headers, content = errors.render(refusal, path, request_id)
        return refusal.status, headers | ({"x-request-id-replaced": "true"} if replaced else {}), content

    def _choose(self, path: str) -> Application:
        if not path.startswith(paths.API):
            return self.pages
        if path == paths.UPLOAD:
            return self.uploads
        if path.startswith(paths.WITH_ORM):
            return self.with_orm
        return self.hot


async def _with_limits(application: Application, scope: Any, receive: Any, send: Any) -> None:
    """Let Django's own handler answer, which would read a body of any size."""
    body = PageBody(receive)
    await application(scope, body, send)
    if body.refusal is not None:
        await _send_error(body.refusal, scope, send, body)


def _brings_history(scope: Any) -> bool:
    """Whether it is a client that may send its whole history each turn, and images with it."""
    if scope["path"].startswith(paths.HISTORIES):
        return True
    return any(dialect in scope["query_string"] for dialect in HISTORY_DIALECTS)


def _start_of(response: StreamedResponse) -> dict[str, Any]:
    headers = [(name.encode("ascii"), value.encode("latin-1")) for name, value in response.items()]
    return {"type": "http.response.start", "status": response.status_code, "headers": headers}


async def _send_pieces(pieces: AsyncGenerator[bytes], send: Any) -> None:
    async with aclosing(pieces):
        async for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
    await send({"type": "http.response.body"})


async def _send_error(error: ParleyError, scope: Any, send: Any, body: streamed_body.Incoming) -> None:
    """Answer without Django; a client that has not sent its whole body is also hung up on."""
    response = error_response(error, scope["path"])
    headers = [(name.lower().encode(), value.encode()) for name, value in response.items()]
    if not body.ended:
        headers.append((b"connection", b"close"))
    headers.append((b"content-length", str(len(response.content)).encode()))
    start = {"type": "http.response.start", "status": response.status_code, "headers": headers}
    if not isinstance(error, BodyTooSlow):
        send = streamed_body.Lingering(body, send)
    await send(start)
    await send({"type": "http.response.body", "body": response.content})
