"""The HTTP of MCP connections: limited bodies, checked addresses, no redirects elsewhere.

Only OUTGOING_PROXY decides on a proxy; those of the environment are ignored. The module is imported
only with the SDK, whose HTTP client it uses.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

import httpcore2
import httpx2
from django.conf import settings

from config.http import json_limits
from config.outgoing import proxy
from config.outgoing.outgoing_settings import ProxyServer
from prompts import outgoing_connections

_CONNECT_S = 5.0
_READ_S = 900.0  # a call's own time-out ends it long before

LARGEST_BODY = 8 * 1024 * 1024
_EVENTS_A_SECOND = 1_000
_ENDS_OF_EVENTS = (b"\n\n", b"\r\n\r\n", b"\r\r")


class BodyTooLarge(httpx2.TransportError):
    """A response was too large, or compressed so that its size is unknown."""


def make_client(
    url: str,
    headers: dict[str, str],
    on_error_status: Callable[[int], None],
    *,
    timeout: httpx2.Timeout | None = None,
) -> httpx2.AsyncClient:
    """Return a client of the server at this URL that sends these headers.

    It calls `on_error_status` with each error status.
    """

    async def check_status(response: httpx2.Response) -> None:
        if response.status_code >= 400 and response.status_code != 405:
            on_error_status(response.status_code)

    return httpx2.AsyncClient(
        headers={**headers, "Accept-Encoding": "identity"},
        timeout=timeout or httpx2.Timeout(_CONNECT_S, read=_READ_S),
        transport=_Bounded(proxy.proxy_for(url)),
        event_hooks={"response": [check_status]},
        trust_env=False,
    )


class _Bounded(httpx2.AsyncHTTPTransport):
    """A transport that stops a body after so many bytes or values; the SDK limits an event stream."""

    def __init__(self, server: ProxyServer | None) -> None:
        context = proxy.tls_context()
        super().__init__(
            verify=True if context is None else context, trust_env=False, proxy=_as_proxy(server)
        )
        self._is_proxied = server is not None
        self._pool._network_backend = _Network()  # httpx2 has no option for it

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self._is_proxied:
            await _check_proxied(request)
        response = await super().handle_async_request(request)
        stream = response.stream
        packed = response.headers.get("content-encoding", "identity") != "identity"
        if packed or not isinstance(stream, httpx2.AsyncByteStream):
            await response.aclose()
            raise BodyTooLarge("a packed answer", request=request)
        is_events = "text/event-stream" in response.headers.get("content-type", "")
        response.stream = _Paced(stream) if is_events else _Counted(stream)
        return response


def _as_proxy(server: ProxyServer | None) -> httpx2.Proxy | None:
    if server is None:
        return None
    return httpx2.Proxy(server.url, auth=(server.user, server.password) if server.user else None)


async def _check_proxied(request: httpx2.Request) -> None:
    try:
        await outgoing_connections.check_proxied(request.url.host)
    except outgoing_connections.AddressRefused as error:
        raise httpx2.ConnectError(str(error), request=request) from error


class _Network(httpcore2.AnyIOBackend):
    """A network that opens connections only to allowed addresses, which were checked."""

    async def connect_tcp(self, host: str, *options: Any, **more: Any) -> httpcore2.AsyncNetworkStream:
        try:
            addresses = await outgoing_connections.resolve_allowed(host)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        for address in addresses[:-1]:
            with suppress(httpcore2.ConnectError, httpcore2.ConnectTimeout):
                return await super().connect_tcp(address, *options, **more)
        return await super().connect_tcp(addresses[-1], *options, **more)


class _Paced(httpx2.AsyncByteStream):
    """A stream that limits the rate of events, because the SDK starts a task for each."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            yield chunk
            if (events := sum(map(chunk.count, _ENDS_OF_EVENTS))) > 1:
                await asyncio.sleep(events / _EVENTS_A_SECOND)

    async def aclose(self) -> None:
        await self._stream.aclose()


class _Counted(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._left = LARGEST_BODY
        self._values = json_limits.JsonScanner()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._left -= len(chunk)
            self._values.add(chunk)
            if self._left < 0 or self._values.value_count > settings.VALUES_PER_BODY:
                raise httpx2.StreamError("the answer is too large")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
