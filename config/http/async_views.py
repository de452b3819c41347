"""Plain async Django views with our errors: for the paths that are hot or stream.

DRF has no async, so the run endpoints are plain views. `api` gives them methods, the caller and the
one error shape; nothing that goes wrong in a view reaches the client as anything else.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any, Concatenate, Final, ParamSpec

import msgspec
import structlog
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse

from config import errors
from config.auth import bearer
from config.auth.bearer import Caller
from config.auth.requirements import Access, effective_method
from config.coordination import rate_limits
from config.http import json_limits
from config.http.database_errors import REFUSALS, refusal_of
from config.http.floods import floods
from config.http.parsing import parsed

log = structlog.get_logger(__name__)

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, Caller, P], Coroutine[Any, Any, HttpResponseBase]]
JSON: Final = "application/json"
HELD_S: Final = 50.0  # shorter than what stands between client and server waits for a response's head
_LOOKED_UP: Final = "parley.caller"


def api(**needs: Access) -> Callable[[View[P]], Callable[..., Any]]:
    """Make a view of these methods: authenticate the caller, check what the method needs, run the view.

    Every error gets the shape of its address. `needs` stays readable at the view, for the test
    of every route.
    """

    def decorate(view: View[P]) -> Callable[..., Any]:
        @functools.wraps(view)
        async def answer(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            try:
                looked_up = getattr(request, "scope", {}).pop(_LOOKED_UP, None)
                caller = await admitted(request.META, looked_up)
                allow(request, *needs)
                await needs[effective_method(request.method)].check(caller)
                return await view(request, caller, *args, **kwargs)
            except errors.ParleyError as error:
                return error_response(error, request.path)
            except REFUSALS as error:
                return error_response(refusal_of(error), request.path)
            except Exception:  # the last line before the wire: the client gets a code, the log the rest
                log.exception("view failed")
                return error_response(errors.ParleyError(), request.path)

        answer.needs = needs  # type: ignore[attr-defined]
        return answer

    return decorate


def look_up_caller(scope: dict[str, Any]) -> None:
    """Ask the database who is calling while Django finds the view, which then need not wait so long.

    It asks once per request, whoever needs the answer first.
    """
    if _LOOKED_UP in scope:
        return
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(given) == 1:  # several are for the view to refuse
        header, begins = given[0].decode("latin-1"), scope.get("method") == "POST"
        coming = asyncio.ensure_future(bearer.authenticate(header, begins=begins))
        coming.add_done_callback(lambda done: done.cancelled() or done.exception())
        scope[_LOOKED_UP] = coming


async def caller_of(scope: dict[str, Any]) -> Caller:
    """Who is calling, by the head alone; raises Unauthorized, TooManyRequests or Unavailable."""
    look_up_caller(scope)
    try:
        return await _known(rate_limits.build_meta(scope), scope.get(_LOOKED_UP))
    except REFUSALS as error:
        raise refusal_of(error) from None


async def _known(meta: rate_limits.Meta, looked_up: Awaitable[Caller] | None) -> Caller:
    try:
        return await (looked_up or bearer.authenticate(meta.get("HTTP_AUTHORIZATION")))
    except errors.Unauthorized:
        rate_limits.admit_anonymous(meta)
        raise


async def admitted(meta: rate_limits.Meta, looked_up: Awaitable[Caller] | None = None) -> Caller:
    """Who is calling, if they may and not too often; raises Unauthorized or TooManyRequests."""
    caller = await _known(meta, looked_up)
    try:
        rate_limits.admit(caller.user_id, is_guest=caller.is_guest, meta=meta)
    except errors.TooManyRequests as refusal:
        floods.note(meta.get("HTTP_AUTHORIZATION"), retry_after=refusal.retry_after)
        raise
    return caller


def json_response(body: Any, status: int = 200, headers: dict[str, str] | None = None) -> HttpResponse:
    """A JSON response; `body` may be bytes that are JSON already."""
    content = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return HttpResponse(content, status=status, content_type=JSON, headers=headers)


def error_response(error: errors.ParleyError, path: str = "") -> HttpResponse:
    """An error in the shape of this address."""
    return json_response(errors.body(error, path), error.status, errors.headers(error))


class StreamedResponse(StreamingHttpResponse):
    """A body that comes in pieces of bytes, which `HotHandler` sends without Django's layers between."""

    def __init__(self, pieces: AsyncGenerator[bytes], **more: Any) -> None:
        super().__init__(pieces, **more)
        self.pieces = pieces


class LateResponse(StreamedResponse):
    """A JSON response whose status is known when its body is: `HotHandler` sends it once it is decided.

    `pieces` are blanks and, at last, the body; `judge` then gives the status and more headers. A body
    that takes longer than HELD_S is sent with 200, blanks first, whatever it will say.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes],
        judge: Callable[[], tuple[int, dict[str, str]]],
        **more: Any,
    ) -> None:
        super().__init__(self._rest(), content_type=JSON, **more)
        self._coming = pieces
        self._judge = judge
        self._first = b""

    async def decide(self) -> None:
        """Wait for the body, and set the status that it needs."""
        until = asyncio.get_running_loop().time() + HELD_S
        async for piece in self._coming:
            if not piece.isspace():
                self._first = piece
                self.status_code, headers = self._judge()
                for name, value in headers.items():
                    self[name] = value
                return
            if asyncio.get_running_loop().time() > until:
                return

    async def _rest(self) -> AsyncGenerator[bytes]:
        async with aclosing(self._coming):
            if self._first:
                yield self._first
            async for piece in self._coming:
                yield piece


async def json_body(request: HttpRequest) -> dict[str, Any]:
    """The request's body as a JSON object; InvalidRequest as for `json_object`."""
    return await parsed(request.body, json_object)


def json_object(raw: bytes) -> dict[str, Any]:
    """A body as a JSON object; InvalidRequest when it is none or holds what no row can hold.

    It takes its time with a large one: see `config.http.parsing`.
    """
    json_limits.check_value_count(raw)
    try:
        body = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise errors.InvalidRequest("The body is not valid JSON.", code="invalid_json") from None
    if not isinstance(body, dict):
        raise errors.InvalidRequest("The body must be a JSON object.", code="invalid_json")
    if raw.count(b"[") + raw.count(b"{") > json_limits.MAX_DEPTH:
        json_limits.check_depth(body)
    if b"\\u0000" in raw and _holds_nul(body):
        raise errors.InvalidRequest("The body holds a NUL character.", code="invalid_characters")
    return body


def _holds_nul(value: Any) -> bool:
    match value:
        case str():
            return "\x00" in value
        case dict():
            return any(_holds_nul(key) or _holds_nul(item) for key, item in value.items())
        case list():
            return any(map(_holds_nul, value))
    return False


def allow(request: HttpRequest, *methods: str) -> None:
    """Refuse other methods with 405; who may GET may look at the headers alone."""
    asked = "GET" if request.method == "HEAD" and "HEAD" not in methods else request.method
    if asked not in methods:
        raise MethodNotAllowed(f"This address takes {' and '.join(methods)}.", allowed=list(methods))


class MethodNotAllowed(errors.ParleyError):
    """This address does not take this method."""

    code = "method_not_allowed"
    status = 405
