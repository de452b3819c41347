"""Outgoing connections; refused addresses (`prompts.addresses`) are never connected to.

The check applies to the address that a socket is about to connect to, so neither an unusual spelling
nor a DNS name that changes its address can bypass it, and reused connections cost nothing. Addresses
from clients go through a `Gate`, which is closed to this machine and the networks around it.

Behind OUTGOING_PROXY the socket is the proxy's, so the host of the URL is checked before it is asked for
(`check_proxied`), and a client's host is asked for by the address that the gate has admitted.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from ipaddress import IPv4Network, IPv6Network
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from aiohappyeyeballs import AddrInfoType, start_connection

from config.outgoing import proxy
from prompts.addresses import REFUSED, is_public, is_refused_host, parse_address

_NEXT_ADDRESS_S: Final = 0.25  # RFC 8305: how long one address is tried alone
_MOMENT_S: Final = 1.0
_KNOWN_S: Final = 300.0
_MOST_KNOWN: Final = 10_000
_NAMES: Final = ThreadPoolExecutor(4, "proxied-names")
_proxied: Final[dict[str, tuple[float, bool]]] = {}  # host → until when, and whether it is refused


class AddressRefused(OSError):
    """The address is refused."""


def open_socket(found: AddrInfoType) -> socket.socket:
    """Return an unconnected socket for a resolved address; raise `AddressRefused`.

    For `aiohttp.TCPConnector(socket_factory=…)`.
    """
    family, kind, protocol, _, address = found
    if is_refused_host(str(address[0])):
        raise AddressRefused(REFUSED)
    return socket.socket(family, kind, protocol)


class Gate:
    """Allow connections for a client to the public internet, or to networks that staff list.

    The first connection decides between the two, so neither a redirect nor a name with addresses of
    both leads from one into the other. `plain` connections, without TLS, reach only listed networks.
    """

    def __init__(self, listed: Sequence[IPv4Network | IPv6Network], *, plain: bool) -> None:
        self._listed = listed
        self._plain = plain
        self._side: Literal["open", "listed"] | None = None

    def open_socket(self, found: AddrInfoType) -> socket.socket:
        """Return an unconnected socket for a resolved address; raise `AddressRefused`."""
        self.admit(str(found[4][0]))
        return open_socket(found)

    def admit(self, host: str) -> None:
        """Raise `AddressRefused` for an address to which no connection is allowed."""
        side = self._side_of(host)
        if side is None or self._side not in (None, side) or is_refused_host(host):
            raise AddressRefused(REFUSED)
        self._side = side

    def _side_of(self, host: str) -> Literal["open", "listed"] | None:
        address = parse_address(host)
        if address is None:
            return None
        if any(address in network for network in self._listed):
            return "listed"
        return "open" if is_public(address) and not self._plain else None


async def resolve_allowed(host: str) -> list[str]:
    """Return the host's allowed addresses; raise `OSError`, or `AddressRefused` if there are none."""
    found: Any = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    fit = [address for address in addresses if not is_refused_host(address)]
    if not fit:
        raise AddressRefused(REFUSED)
    return fit


async def connect(host: str, port: int) -> socket.socket:
    """Return a socket connected to the first address of the host that accepts; raise `OSError`."""
    found: Any = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return await start_connection(
        found, happy_eyeballs_delay=_NEXT_ADDRESS_S, socket_factory=open_socket
    )


async def request_options(url: str) -> dict[str, Any]:
    """Return the arguments of an aiohttp request for the URL's proxy; raise `AddressRefused`.

    Without a proxy there are none, and the address is checked when a socket is opened.
    """
    options = proxy.aiohttp_options(url)
    if options:
        await check_proxied(urlsplit(url).hostname or "")
    return options


async def check_proxied(host: str) -> None:
    """Raise `AddressRefused` for a host that a proxy would be asked for in vain.

    The proxy resolves names by itself, and perhaps names that are unknown here. So a name is refused if
    this machine knows one of its addresses and refuses that; what this machine does not know within a
    moment, the proxy decides.
    """
    if is_refused_host(host):
        raise AddressRefused(REFUSED)
    if parse_address(host) is not None:
        return
    now, known = time.monotonic(), _proxied.get(host)
    if known is None or known[0] < now:
        known = (now + _KNOWN_S, await _is_refused_name(host))
        if len(_proxied) >= _MOST_KNOWN:
            _proxied.clear()
        _proxied[host] = known
    if known[1]:
        raise AddressRefused(REFUSED)


async def _is_refused_name(host: str) -> bool:
    ask = partial(socket.getaddrinfo, host, None, type=socket.SOCK_STREAM)
    try:
        async with asyncio.timeout(_MOMENT_S):
            found = await asyncio.get_running_loop().run_in_executor(_NAMES, ask)
    except (OSError, UnicodeError):  # TimeoutError is an OSError
        return False
    return any(is_refused_host(str(address[0])) for *_, address in found)


def was_refused(error: BaseException | None) -> bool:
    """Return whether the error is, or was caused by, a refused address."""
    while error is not None and not isinstance(error, AddressRefused):
        error = error.__cause__ or error.__context__
    return error is not None
