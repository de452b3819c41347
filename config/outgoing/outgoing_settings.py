"""The settings of outgoing connections; each is checked at the start."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from config import env

_LIKE: Final = "Set it like OUTGOING_PROXY=http://proxy.example:3128, or leave it unset."


@dataclass(frozen=True)
class ProxyServer:
    """An HTTP proxy; `url` has no password in it."""

    url: str
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def signed_url(self) -> str:
        """Return the address with user and password, as HTTP clients take it."""
        if not self.user:
            return self.url
        login = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}"
        return self.url.replace("://", f"://{login}@", 1)


@dataclass(frozen=True)
class Exceptions:
    """What is reached without the proxy: hosts, domains with all below them, networks."""

    hosts: frozenset[str] = frozenset()
    domains: tuple[str, ...] = ()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()


def read_proxy() -> ProxyServer | None:
    """Return the proxy of OUTGOING_PROXY; None if it is unset."""
    raw = env.url("OUTGOING_PROXY", schemes=("http",))
    if not raw:
        return None
    try:
        parts = urlsplit(raw)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ImproperlyConfigured(f"OUTGOING_PROXY is no valid address. {_LIKE}") from None
    if not host or not port:
        raise ImproperlyConfigured(f"OUTGOING_PROXY must name a host and a port. {_LIKE}")
    if parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"OUTGOING_PROXY must end with the port. {_LIKE}")
    shown = f"[{host}]" if ":" in host else host
    return ProxyServer(
        f"http://{shown}:{port}", unquote(parts.username or ""), unquote(parts.password or "")
    )


def read_exceptions() -> Exceptions:
    """Return what OUTGOING_NO_PROXY lists: `host`, `.domain`, an address or a network."""
    hosts: set[str] = set()
    domains: list[str] = []
    networks: list[IPv4Network | IPv6Network] = []
    for word in env.words("OUTGOING_NO_PROXY"):
        name = word.lower().removeprefix("*")
        try:
            networks.append(ip_network(name.strip("[]"), strict=False))
        except ValueError:
            _check_name(word, name.removeprefix("."))
            if name.startswith("."):
                domains.append(name)
            else:
                hosts.add(name)
    return Exceptions(frozenset(hosts), tuple(domains), tuple(networks))


def _check_name(word: str, name: str) -> None:
    if not name or any(not (one.isalnum() or one in "-._") for one in name):
        raise ImproperlyConfigured(
            f"OUTGOING_NO_PROXY must list hosts, domains that begin with a dot, addresses or networks, "
            f"not {word!r}. Set it like OUTGOING_NO_PROXY=models.internal,.corp.example,10.0.0.0/8, "
            "or leave it unset."
        )


def read_ca_file() -> str:
    """Return the path of OUTGOING_CA_FILE, which has certificates that can be read; "" if unset."""
    path = env.text("OUTGOING_CA_FILE")
    if not path:
        return ""
    fix = "Name a file with certificates in PEM form, or leave it unset."
    try:
        text = Path(path).read_text(encoding="ascii", errors="replace")
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ImproperlyConfigured(f"OUTGOING_CA_FILE cannot be read ({reason}). {fix}") from None
    if "-----BEGIN CERTIFICATE-----" not in text:
        raise ImproperlyConfigured(f"OUTGOING_CA_FILE has no certificate in it. {fix}")
    try:
        ssl.create_default_context().load_verify_locations(cadata=_certificates(text))
    except (ssl.SSLError, ValueError):
        raise ImproperlyConfigured(
            f"OUTGOING_CA_FILE has a certificate that cannot be read. {fix}"
        ) from None
    return path


def _certificates(text: str) -> str:
    """Return the certificates of a PEM file alone, without comments and other blocks."""
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    found = [one.partition(end)[0] for one in text.split(begin)[1:]]
    return "".join(f"{begin}{one}{end}\n" for one in found)
