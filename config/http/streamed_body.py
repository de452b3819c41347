"""Requests whose body is read by the view, as it arrives, after the caller is known.

Django would spool the whole body to disk before anybody asks who sends it. Here the view iterates
over `incoming(request)`, and one that stops early answers at once: the rest is thrown away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Final

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest

from config.errors import BodyTooSlow, InvalidRequest, PayloadTooLarge

FILE_LIMIT: Final = 10 * 2**20
_BODY_LIMIT: Final = FILE_LIMIT + 2**16  # the file, and what multipart puts round it
SILENCE_S: Final = 15.0
WHOLE_S: Final = 300.0
_LINGER_S: Final = 2.0


class Incoming:
    """A body that is still being sent until it has `ended`."""

    def __init__(self, receive: Any) -> None:
        self.ended = False
        self._receive = receive

    async def discard(self) -> None:
        """Read on for a moment: a connection closed over unread bytes loses the answer too."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while not self.ended:
                    event = await self._receive()
                    self.ended = not event.get("more_body", False)


class StreamedBody(Incoming):
    """The body of a request as it arrives; read once."""

    def __init__(self, scope: Any, receive: Any) -> None:
        super().__init__(receive)
        headers = dict(scope["headers"])
        self._announced = int(headers.get(b"content-length") or 0)  # the server has checked its form
        self._waits_for_leave = b"expect" in headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """The pieces. BodyTooSlow when they come too slowly, PayloadTooLarge when there are too
        many (before any is read, if the head says so), InvalidRequest when they stop."""
        if self._announced > _BODY_LIMIT:
            raise too_large()
        size, until = 0, asyncio.get_running_loop().time() + WHOLE_S
        while not self.ended:
            piece = await self._next(until)
            size += len(piece)
            if size > _BODY_LIMIT:
                raise too_large()
            if piece:
                yield piece

    async def _next(self, until: float) -> bytes:
        loop = asyncio.get_running_loop()
        self._waits_for_leave = False
        try:
            async with asyncio.timeout_at(min(until, loop.time() + SILENCE_S)):
                event = await self._receive()
        except TimeoutError:
            raise BodyTooSlow from None
        if event["type"] == "http.disconnect":
            self.ended = True
            raise InvalidRequest("The body ended early.", code="incomplete_body")
        self.ended = not event.get("more_body", False)
        return bytes(event.get("body", b""))

    async def discard(self) -> None:
        if not self._waits_for_leave:  # to send its body, and gets none
            await super().discard()


def too_large() -> PayloadTooLarge:
    return PayloadTooLarge("A file may have 10 MiB at most.")


class UploadRequest(ASGIRequest):
    """A request with an empty `body` and the real one in `incoming`."""

    incoming: StreamedBody


def incoming(request: HttpRequest) -> StreamedBody:
    """The body of a request that came through `UploadHandler`."""
    assert isinstance(request, UploadRequest)
    return request.incoming


class Lingering:
    """`send` that lets the client finish speaking before the answer ends and the connection closes."""

    def __init__(self, body: Incoming, send: Any) -> None:
        self._body = body
        self._send = send

    async def __call__(self, event: Any) -> None:
        if event["type"] != "http.response.body" or event.get("more_body", False):
            await self._send(event)
            return
        await self._send(event | {"more_body": True})
        await self._body.discard()
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
