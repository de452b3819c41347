"""One HTTP client per event loop for all providers, with its time limits.

aiohttp and not httpx: its C parser costs a third of the CPU for a body that arrives in small pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Final
from weakref import WeakKeyDictionary

import aiohttp
from django.conf import settings

from agents.providers.base import ProviderError
from agents.providers.refusals import interrupted_error, refusal_error
from config.outgoing import proxy
from config.process import coarse_timers
from prompts import outgoing_connections
from prompts.addresses import is_refused_url

Rest = Callable[[], Awaitable[None]]
rest_between_reads: Final[ContextVar[Rest | None]] = ContextVar("rest between reads", default=None)
"""What a body that is not short waits for between reads, where its reader has no use for each piece.

While many streams are read, a piece that wakes its reader alone costs several times what it costs with
others that have come by then.
"""
_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()
_LARGEST_REFUSAL: Final = 64 * 1024
_MOMENT_S: Final = 2.0
_ENDING_S: Final = 0.1
_PIECE: Final = 32 * 1024
_SHORT: Final = 4  # reads; a body of fewer never waits


def shared_session() -> aiohttp.ClientSession:
    """Return the running loop's session; connections are kept and not limited in number."""
    loop = asyncio.get_running_loop()
    found = _clients.get(loop)
    if found is None:
        found = _clients[loop] = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                keepalive_timeout=30,
                socket_factory=outgoing_connections.open_socket,
                **proxy.tls_options(),
            ),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=settings.PROVIDER_CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"Accept-Encoding": "identity", "User-Agent": "parley"},
            read_bufsize=1 << 18,
        )
    return found


async def close() -> None:
    """Close the running loop's session."""
    found = _clients.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.close()


async def post(url: str, *, headers: dict[str, str], body: bytes) -> aiohttp.ClientResponse:
    """Return the response to a POST if its status is 200, to be closed; else raise ProviderError.

    Closing it before the body has ended closes the connection, which makes the provider stop.
    """
    response = await _send(url, {"Content-Type": "application/json"} | headers, body)
    if response.status == 200:
        return response
    try:
        raise refusal_error(response.status, response.headers, await _explanation(response))
    finally:
        response.close()


async def _explanation(response: aiohttp.ClientResponse) -> bytes:
    """Return as much of a refusal's body as arrives in a moment, at most 64 KiB."""
    data = bytearray()
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with asyncio.timeout(_MOMENT_S):
            while len(data) < _LARGEST_REFUSAL and (some := await response.content.readany()):
                data += some
    return bytes(data[:_LARGEST_REFUSAL])


async def _send(url: str, headers: dict[str, str], body: bytes) -> aiohttp.ClientResponse:
    try:
        "".join(headers.values()).encode("ascii")
        async with asyncio.timeout(settings.PROVIDER_CONNECT_S + settings.PROVIDER_FIRST_TOKEN_S):
            return await shared_session().post(
                url,
                data=body,
                headers=headers,
                allow_redirects=False,
                **await outgoing_connections.request_options(url),
            )
    except TimeoutError:
        raise ProviderError(
            "provider_timeout", "The model provider did not answer.", retryable=True
        ) from None
    except (
        aiohttp.ClientError,
        OSError,
        ValueError,
    ) as error:  # ValueError: an invalid address or key
        raise _unreachable(error, url) from None


def _unreachable(error: Exception, url: str) -> ProviderError:
    is_refused = is_refused_url(url)  # aiohttp itself refuses unusual spellings
    if is_refused or outgoing_connections.was_refused(error):
        return ProviderError(
            "provider_address_refused", "The model provider's address is one that is never asked."
        )
    return ProviderError("provider_unreachable", "The model provider cannot be reached.", retryable=True)


async def read(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
    """Yield the body as it arrives, with a limit on the first and on every later silence.

    Data that arrived at once is yielded in pieces, between which the loop turns: it may hold ten
    thousand events. A body that is not short waits between reads as `rest_between_reads` says.

    Raise ProviderError `provider_timeout` after too long a silence, `provider_stream_interrupted` if the
    connection breaks before the body's end.
    """
    patience, rest, reads = _Patience(response), rest_between_reads.get(), 0
    try:
        while some := await response.content.readany():
            patience.pause()
            for at in range(0, len(some), _PIECE):
                if at:
                    await asyncio.sleep(0)
                yield some[at : at + _PIECE]
            patience.resume()
            reads += 1
            if rest is not None and reads >= _SHORT:
                await rest()
    except (aiohttp.ClientError, OSError):
        if patience.ended:
            raise ProviderError(
                "provider_timeout", "The model provider fell silent.", retryable=True
            ) from None
        raise interrupted_error() from None
    finally:
        patience.stop()


async def let_end(response: aiohttp.ClientResponse) -> None:
    """Give a body that has no more to say a moment to end, so that its connection can be used again.

    It does not rest: the run ends after it.
    """
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with asyncio.timeout(_ENDING_S):
            while await response.content.readany():
                pass


class _Patience:
    """A watch over a stream, which closes its response when it is silent too long."""

    __slots__ = ("_heard", "_loop", "_response", "_since", "ended")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.ended = False
        self._response = response
        self._loop = asyncio.get_running_loop()
        self._heard = False
        self._since: float | None = self._loop.time()
        coarse_timers.watch(self)

    def pause(self) -> None:
        """Stop counting, because data has come; from now on the limit of later silences applies."""
        self._since = None
        self._heard = True

    def resume(self) -> None:
        self._since = self._loop.time()

    def stop(self) -> None:
        coarse_timers.unwatch(self)

    def look(self, now: float) -> None:
        limit = settings.PROVIDER_IDLE_S if self._heard else settings.PROVIDER_FIRST_TOKEN_S
        if self._since is not None and now >= self._since + limit:
            self.ended = True
            self._response.close()
