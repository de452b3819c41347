"""Validation of addresses: what staff may enter, and what Parley never connects to.

Loopback and private addresses are allowed because models run there. Link-local addresses are refused:
the metadata service of a cloud answers there and hands out the keys of this machine.
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
    "This is a link-local, multicast or unspecified address, or a cloud's metadata service. "
    "Parley does not connect to it."
)
_UNFIT: Final = re.compile(r"[\s\x00-\x20\x7f\\]")
_HOLD_IPV4: Final = (ip_network("::ffff:0:0/96"), ip_network("64:ff9b::/96"))  # mapped; NAT64
_METADATA: Final = frozenset(  # outside the link-local networks: of AWS, Google, Alibaba, Oracle
    map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "192.0.0.192"))
)


def http_address(address: str) -> None:
    """Raise `ValidationError` unless this is a plain http(s) address; host names need no dot.

    User names are refused because a password in the address would be stored and shown in plain text.
    The message never quotes the input.
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


def same_origin(one: str, other: str) -> bool:
    """Whether two URLs lead to the same server: a stored secret goes to no other."""
    return _origin(one) == _origin(other)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


def is_refused_url(url: str) -> bool:
    """Return whether the host of the URL is a refused address; see `is_refused_host`."""
    parts = _split(url)
    return parts is not None and is_refused_host(parts.hostname or "")


def is_refused_host(host: str) -> bool:
    """Return whether the host is a refused IP address, in any spelling.

    Return False for a name: its address is checked on connection.
    """
    address = parse_address(host)
    return address is not None and (
        address.is_link_local or address.is_multicast or address.is_unspecified or address in _METADATA
    )


def is_public(address: IPv4Address | IPv6Address) -> bool:
    """Return whether the address is on the public internet; 6to4 and Teredo addresses are not."""
    if isinstance(address, IPv6Address) and (address.sixtofour or address.teredo):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def parse_address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that resolvers read from the host; they accept more than `ip_address`."""
    if ":" in host:
        host = host.partition("%")[0]
    else:
        host = unquote(host)
        with suppress(UnicodeError):
            host = host.encode("idna").decode()  # digits and dots of other scripts
        host = host.removesuffix(".")
    with suppress(ValueError):
        return _unwrap_ipv4(ip_address(host))
    with suppress(OSError, ValueError):
        return IPv4Address(socket.inet_aton(host))  # 2852039166, 0xA9FEA9FE, 169.254.43518
    return None


def _unwrap_ipv4(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """Return the IPv4 address that an IPv6 address embeds, or else the address itself."""
    if any(address in network for network in _HOLD_IPV4):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _split(address: str) -> SplitResult | None:
    if _UNFIT.search(address):
        return None
    try:
        parts = urlsplit(address)
        _ = parts.port  # raises ValueError if it is no number
    except ValueError:
        return None
    return parts
