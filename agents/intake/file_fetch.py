"""The fetching of files that a client names by URL, within limits of bytes, time and addresses.

The address of each connection is checked (`outgoing_connections.Gate`), so neither a redirect nor a
name that resolves to something else the second time leads into our network. The bytes of a file
determine its type.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from django.conf import settings
from yarl import URL

from config.errors import InvalidRequest
from config.http.streamed_body import FILE_LIMIT, too_large
from config.outgoing import proxy
from prompts import outgoing_connections

MOST_REDIRECTS: Final = 3
_REDIRECTS: Final = frozenset((301, 302, 303, 307, 308))
_NAMES: Final = ThreadPoolExecutor(32, "names")
_PIECE: Final = 64 * 1024
_HEADERS: Final = {"User-Agent": "parley", "Accept": "*/*", "Accept-Encoding": "identity"}


class Description(NamedTuple):
    """The name and type of a file, as its source declares them."""

    name: str = ""
    mime_type: str = ""
    charset: str = ""


@asynccontextmanager
async def open_remote(
    url: str, *, until: float
) -> AsyncGenerator[tuple[Description, AsyncIterator[bytes]]]:
    """Yield the description and the bytes of the file at a URL.

    They must be read before `until` (of the loop's time). Raise InvalidRequest `url_refused` for an
    address that is never connected to, `file_unreachable` for a host that does not send the whole file
    in time.
    """
    gate = outgoing_connections.Gate(settings.FETCH_NETWORKS, plain=_checked(url) == "http")
    try:
        async with asyncio.timeout_at(until), _session(gate) as session, _session() as proxied:
            response, url = await _followed(_Fetcher(gate, session, proxied), url)
            try:
                yield _describe(response, url), _pieces(response)
            finally:
                response.close()
    except TimeoutError:
        raise file_unreachable("did not give it in time") from None
    except (aiohttp.ClientError, OSError) as error:
        if outgoing_connections.was_refused(error):
            raise url_refused() from None
        raise file_unreachable("cannot be reached") from None


def _describe(response: aiohttp.ClientResponse, url: str) -> Description:
    """Return the file's name, which is the last part of its path, and its declared type."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return Description(name, response.content_type, response.charset or "")


async def _pieces(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Yield the bytes; raise PayloadTooLarge for more than a file may have."""
    if (response.content_length or 0) > FILE_LIMIT:
        raise too_large()
    size = 0
    async for some in response.content.iter_chunked(_PIECE):
        size += len(some)
        if size > FILE_LIMIT:
            raise too_large()
        yield some


def _session(gate: outgoing_connections.Gate | None = None) -> aiohttp.ClientSession:
    """Return a new session: one user's open connections never serve another user.

    Without a gate it connects to the proxy.
    """
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            socket_factory=gate.open_socket if gate else outgoing_connections.open_socket,
            resolver=_Names(),
            force_close=True,
            use_dns_cache=False,
            **proxy.tls_options(),
        ),
        timeout=aiohttp.ClientTimeout(total=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers=_HEADERS,
        auto_decompress=False,
    )


class _Names(AbstractResolver):
    """A resolver with its own operating-system threads: a silent name server holds up nothing else."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        ask = partial(socket.getaddrinfo, host, port, family=family, type=socket.SOCK_STREAM)
        found = await asyncio.get_running_loop().run_in_executor(_NAMES, ask)
        return [
            ResolveResult(
                hostname=host,
                host=str(address[0]),
                port=port,
                family=kind,
                proto=protocol,
                flags=socket.AI_NUMERICHOST,
            )
            for kind, _, protocol, _, address in found
        ]

    async def close(self) -> None:
        pass


@dataclass(frozen=True)
class _Fetcher:
    """Gets URLs of one file, each directly or by the outgoing proxy, within one gate."""

    gate: outgoing_connections.Gate
    direct: aiohttp.ClientSession
    proxied: aiohttp.ClientSession

    async def get(self, url: str) -> aiohttp.ClientResponse:
        through = proxy.aiohttp_options(url)
        if not through:
            return await self.direct.get(url, allow_redirects=False)
        parts = _parsed(url)
        host = parts.raw_host or ""
        pinned = parts.with_host(await self._admitted(host))
        return await self.proxied.get(
            pinned,
            allow_redirects=False,
            headers={"Host": parts.host_port_subcomponent or host},
            server_hostname=host,
            **through,
        )

    async def _admitted(self, host: str) -> str:
        """Return an address of the host, which the gate admits: the proxy may know another one."""
        found = await _Names().resolve(host, family=socket.AF_UNSPEC)
        for one in found:
            self.gate.admit(one["host"])
        return str(found[0]["host"])


def _parsed(url: str) -> URL:
    try:
        return URL(url)
    except ValueError:
        raise aiohttp.InvalidURL(url) from None


async def _followed(fetcher: _Fetcher, url: str) -> tuple[aiohttp.ClientResponse, str]:
    """Return the response with the file, after a few redirects at most, and where that was.

    The caller closes it.
    """
    for _ in range(MOST_REDIRECTS + 1):
        try:
            response = await fetcher.get(url)
        except (aiohttp.InvalidURL, UnicodeError):  # no valid address
            raise url_refused() from None
        if response.status not in _REDIRECTS:
            return _whole(response), url
        response.close()
        url = _next(url, response.headers.get("Location", ""))
    raise file_unreachable("leads on and on")


def _whole(response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    packed = response.headers.get("Content-Encoding", "identity").lower() != "identity"
    if response.status == 200 and not packed:
        return response
    response.close()
    raise file_unreachable("does not give it")


def _next(url: str, location: str) -> str:
    """Return the target of a redirect; raise InvalidRequest for one from https to http."""
    found = urljoin(url, location)
    if _checked(found) == "http" and _checked(url) == "https":
        raise url_refused()
    return found


def _checked(url: str) -> str:
    """Return the scheme of an address; raise InvalidRequest `url_refused` if it is never fetched."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is no number
    except ValueError:
        raise url_refused() from None
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise url_refused()
    return parts.scheme


def url_refused() -> InvalidRequest:
    return InvalidRequest(
        "This address is not fetched: use a public https one, or list its network in FETCH_NETWORKS.",
        code="url_refused",
    )


def file_unreachable(what: str) -> InvalidRequest:
    return InvalidRequest(f"The host of the file {what}.", code="file_unreachable")
