"""Which addresses staff may enter, and which are never asked whoever entered them.

Loopback and private addresses are fine: models run on this machine and beside it. Link-local ones are
not: what answers there is a cloud's metadata service, which hands out the keys of this machine.
"""

from __future__ import annotations

import re
import socket
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit

from django.core.exceptions import ValidationError

REFUSED: Final = (
    "This is a link-local, multicast or unspecified address, or a cloud's metadata service: "
    "nothing is asked there."
)
_UNFIT: Final = re.compile(r"[\s\x00-\x20\x7f\\]")
_HOLD_IPV4: Final = (ip_network("::ffff:0:0/96"), ip_network("64:ff9b::/96"))  # mapped; NAT64
_METADATA: Final = frozenset(  # outside the link-local networks: of AWS, Google, Alibaba, Oracle
    map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192"))
)


def http_address(address: str) -> None:
    """Refuse what is no plain http(s) address; names without a dot, such as `ollama`, are fine.

    A password in the address would be stored and shown unsealed, so user names are refused, and
    the message never repeats what was typed.
    """
    parts = _split(address)
    if parts is None or parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValidationError("Enter an address that starts with http:// or https://.")
    if "@" in parts.netloc:
        raise ValidationError("Leave user name and password out of the address; keys have a field.")
    if parts.query or parts.fragment:
        raise ValidationError("Enter the address without ? and #.")
    if is_refused_host(parts.hostname):
        raise ValidationError(REFUSED)


def is_refused_url(url: str) -> bool:
    """Whether the host in the URL is a refused address; see `is_refused_host`."""
    parts = _split(url)
    return parts is not None and is_refused_host(parts.hostname or "")


def is_refused_host(host: str) -> bool:
    """Whether the host is an IP address, in whatever spelling, that is never asked.

    False for a name: where it leads is known when something connects there.
    """
    address = _as_address(host)
    return address is not None and (
        address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA
    )


def _as_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that resolvers take the host for, which is more than `ip_address` takes."""
    if ":" in host:
        host = host.partition("%")[0]
    else:
        host = unquote(host)
        with suppress(UnicodeError):
            host = host.encode("idna").decode()  # digits and dots of other scripts
        host = host.removesuffix(".")
    with suppress(ValueError):
        return _unwrapped(ip_address(host))
    with suppress(OSError, ValueError):
        return IPv4Address(socket.inet_aton(host))  # 2852039166, 0xA9FEA9FE, 169.254.43518
    return None


def _unwrapped(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address in an IPv6 one that stands for it, else the address itself."""
    if any(address in network for network in _HOLD_IPV4):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _split(address: str) -> SplitResult | None:
    if _UNFIT.search(address):
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises when it is no number
    except ValueError:
        return None
    return parts
