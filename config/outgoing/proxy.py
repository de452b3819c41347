"""Through which proxy a URL is reached, if through any, and how its certificate is checked.

Only these settings decide: the environment's own HTTPS_PROXY and NO_PROXY are for other programs, and
may name a proxy that does not know a model in this network. This machine is never reached by a proxy.
"""

from __future__ import annotations

import ssl
from functools import cache
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

from config.outgoing.outgoing_settings import Exceptions, ProxyServer


def proxy_for(url: str) -> ProxyServer | None:
    """Return the proxy for this URL; None if it is reached directly."""
    server: ProxyServer | None = settings.OUTGOING_PROXY
    if server is None or _is_direct(urlsplit(url).hostname or "", settings.OUTGOING_NO_PROXY):
        return None
    return server


def _is_direct(host: str, exceptions: Exceptions) -> bool:
    host = host.lower().rstrip(".")
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        below = f".{host}".endswith(exceptions.domains) if exceptions.domains else False
        return host in exceptions.hosts or below or host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or any(address in network for network in exceptions.networks)


def aiohttp_options(url: str) -> dict[str, Any]:
    """Return the arguments of an aiohttp request for this URL's proxy; none if it has none."""
    server = proxy_for(url)
    return {"proxy": server.signed_url} if server is not None else {}


def tls_options() -> dict[str, Any]:
    """Return the arguments of an aiohttp connector; none unless OUTGOING_CA_FILE is set."""
    context = tls_context()
    return {"ssl": context} if context is not None else {}


def tls_context() -> ssl.SSLContext | None:
    """Return a context that trusts OUTGOING_CA_FILE too; None for what a library does by itself."""
    return _context(settings.OUTGOING_CA_FILE) if settings.OUTGOING_CA_FILE else None


@cache
def _context(path: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.load_verify_locations(path)
    return context
