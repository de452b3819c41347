"""Connections to addresses that staff typed; to a refused one (`prompts.addresses`) none is opened.

The check is made of the address that a socket is about to connect to. So neither a spelling nor a name
that resolves to something else the second time leads past it, and kept connections cost nothing.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, Final

from aiohappyeyeballs import AddrInfoType, start_connection

from prompts.addresses import REFUSED, is_refused_host

_NEXT_ADDRESS_S: Final = 0.25  # RFC 8305: how long one address is tried alone


class AddressRefused(OSError):
    """The address is one that is never asked."""


def open_socket(found: AddrInfoType) -> socket.socket:
    """A socket for an address that was found, not connected yet. AddressRefused.

    For `aiohttp.TCPConnector(socket_factory=…)`.
    """
    family, kind, protocol, _, address = found
    if is_refused_host(str(address[0])):
        raise AddressRefused(REFUSED)
    return socket.socket(family, kind, protocol)


async def allowed(host: str) -> list[str]:
    """The host's addresses that may be asked, at least one. OSError; AddressRefused if there is none."""
    found: Any = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    addresses = [str(address[0]) for *_, address in found]
    fit = [address for address in addresses if not is_refused_host(address)]
    if not fit:
        raise AddressRefused(REFUSED)
    return fit


async def connect(host: str, port: int) -> socket.socket:
    """A socket that is connected to the first of the host's addresses that answers. OSError."""
    found: Any = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return await start_connection(
        found, happy_eyeballs_delay=_NEXT_ADDRESS_S, socket_factory=open_socket
    )


def was_refused(error: BaseException | None) -> bool:
    """Whether the error is, or was caused by, a refused address."""
    while error is not None and not isinstance(error, AddressRefused):
        error = error.__cause__ or error.__context__
    return error is not None
