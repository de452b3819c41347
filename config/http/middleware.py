"""Middleware of ours: the pages' beside Django's own, the API's one, and the request id for both."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from secrets import token_hex
from typing import Any, Final

import structlog
from asgiref.sync import sync_to_async
from asgiref.typing import (
    ASGI3Application,
    ASGIReceiveCallable,
    ASGISendCallable,
    ASGISendEvent,
    Scope,
)
from corsheaders.middleware import CorsMiddleware
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest, HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.utils.cache import patch_vary_headers
from django.utils.deprecation import MiddlewareMixin
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

from config.audit.recording import acting_in

_REQUEST_ID: Final = re.compile(rb"[\x21-\x7e]{1,128}")


def find_request_id(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, bool]:
    """Return the id of a request: the caller's, or a new one; and whether that replaces the caller's."""
    given = next((value for name, value in headers if name == b"x-request-id"), b"")
    if _REQUEST_ID.fullmatch(given):
        return given.decode(), False
    return token_hex(16), bool(given)


class RequestId:
    """Give every request an id: the caller's `X-Request-Id` if it is a sane one, or a new one.

    The id is bound to the log context and sent back; an id that is not 1 to 128 visible ASCII
    characters is replaced rather than refused, since it serves only to find things again. The answer
    then carries `X-Request-Id-Replaced: true`.
    """

    def __init__(self, app: ASGI3Application) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        request_id, replaced = find_request_id(scope["headers"])
        said = [(b"x-request-id", request_id.encode())]
        if replaced:
            said.append((b"x-request-id-replaced", b"true"))
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)

        async def send_with_id(event: ASGISendEvent) -> None:
            if event["type"] in ("http.response.start", "websocket.accept"):
                event["headers"] = [*event.get("headers", ()), *said]
            await send(event)

        await self.app(scope, receive, send_with_id)


class ApiHeaders(CorsMiddleware):
    """The API's only middleware: cross-origin headers, and none may keep an answer or guess its type.

    The API authenticates by bearer token: it needs no session and no CSRF, nor a thread for them. Only
    browsers name an origin, or ask first with OPTIONS; others need only know that the answer varies.
    """

    get_response: Callable[[HttpRequest], Any]

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        if "HTTP_ORIGIN" not in request.META and request.method != "OPTIONS":
            plain = _with_api_policy(request, await self.get_response(request))
            patch_vary_headers(plain, ("origin",))
            return plain
        response: HttpResponseBase | None = self.check_preflight(request)
        if response is None:
            response = _with_api_policy(request, await self.get_response(request))
        self.add_response_headers(request, response)
        return response


class Security(SecurityMiddleware):
    """HTTPS redirects and their headers; no NUL in a query, which no PostgreSQL text can hold."""

    def process_request(self, request: HttpRequest) -> Any:
        if any("\x00" in part for pair in request.GET.items() for part in pair):
            return HttpResponseBadRequest("The address holds a NUL character.")
        return super().process_request(request)


class _Around(MiddlewareMixin):
    """A middleware of ours: it runs on either side, and hops to no thread.

    The view runs inside `surround`, and `finish` completes its response.
    """

    get_response: Callable[[HttpRequest], Any]

    def __call__(self, request: HttpRequest) -> Any:
        if self.async_mode:
            return self.__acall__(request)
        with self.surround(request):
            return self.finish(request, self.get_response(request))

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        with self.surround(request):
            return self.finish(request, await self.get_response(request))

    def surround(self, request: HttpRequest) -> AbstractContextManager[None]:
        return nullcontext()

    def finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        return response


class Acting(_Around):
    """What a page changes is recorded as done by the account that is signed in."""

    def surround(self, request: HttpRequest) -> AbstractContextManager[None]:
        return acting_in(request)


class AdminPolicy(_Around):
    """Admin's pages load our own files only, with no script inside a page and in no foreign frame.

    `unsafe-eval` is Alpine's, with which unfold draws its menus: it runs what stands in a template's
    attributes and nothing that was typed. A page that says its own policy keeps it.
    """

    def finish(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        if request.path.startswith("/admin/"):
            response.headers.setdefault("Content-Security-Policy", _ADMIN_POLICY)
            response.headers.setdefault("Referrer-Policy", "same-origin")
        return response


_FILES: Final = "'self' data: blob:" + ("" if settings.ATTACHMENT_STORAGE == "local" else " https:")
_ADMIN_POLICY: Final = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    f"img-src {_FILES}; font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
_DOCS_POLICY: Final = _ADMIN_POLICY.replace(" 'unsafe-eval'", "")


def _with_api_policy(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers.setdefault("X-Content-Type-Options", "nosniff")
    if request.path == "/api/docs/":
        response.headers.setdefault("Content-Security-Policy", _DOCS_POLICY)
        response.headers.setdefault("X-Frame-Options", settings.X_FRAME_OPTIONS)
    return response


class StaticFiles(WhiteNoiseMiddleware, MiddlewareMixin):  # type: ignore[misc]
    """WhiteNoise, made to run under ASGI without a thread hop for what is not a static file."""

    get_response: Callable[[HttpRequest], Any]

    def __init__(self, get_response: Callable[[HttpRequest], Any]) -> None:
        super().__init__(get_response)
        MiddlewareMixin.__init__(self, get_response)

    def __call__(self, request: HttpRequest) -> Any:
        return self.__acall__(request) if self.async_mode else super().__call__(request)

    async def __acall__(self, request: HttpRequest) -> HttpResponseBase:
        found = self.files.get(request.path_info)
        if found is None:
            response: HttpResponseBase = await self.get_response(request)
            return response
        return await sync_to_async(self._serve_whole)(found, request)

    def _serve_whole(self, found: StaticFile, request: HttpRequest) -> HttpResponse:
        """Open, read and close on a thread: ASGI cannot stream from a blocking file.

        A client that leaves before the thread begins leaves no file open.
        """
        file = self.serve(found, request)
        try:
            content = b"".join(file.streaming_content)
        finally:
            file.close()
        return HttpResponse(content, status=file.status_code, headers=dict(file.items()))
