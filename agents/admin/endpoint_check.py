"""The check of an endpoint: a request for its list of models, or if it has none the smallest request.

Staff read only sentences of ours and names of models, never a body, a header or the key. The check
follows no redirect, waits for seconds only, and reads little.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from agents.providers import http
from agents.providers.base import ChatMessage, ModelRequest, ProviderError
from agents.providers.registry import WIRES
from config.outgoing import proxy
from prompts import outgoing_connections
from prompts.addresses import REFUSED, is_refused_url
from prompts.endpoints import secrets
from prompts.endpoints.routing import Candidate
from prompts.models import Endpoint, ProviderDialect

EndpointReport = tuple[bool, str, tuple[str, ...]]
TIMEOUT_S: Final = 10.0
MAX_NAMES: Final = 50
_LARGEST: Final = 1024 * 1024
_NO_LIST: Final = (404, 405, 501)
_REDIRECT: Final = ", a redirect, which is not followed: enter where it leads."
_ADVICE: Final = {
    401: ": it refuses the key.",
    403: ": it refuses the key.",
    404: ": check the base URL (often it ends with /v1).",
    429: ": the key works, but its rate or credit is used up.",
}


def check_endpoint(endpoint: Endpoint) -> EndpointReport:
    """Return whether the endpoint works, a sentence about it for staff, and the models that it names."""
    if endpoint.dialect == ProviderDialect.DEMO:
        return True, "The demo answers offline; there is nothing to connect to.", ()
    key, refusal = _key_of(endpoint)
    if refusal:
        return False, refusal, ()
    first = endpoint.candidates.order_by("position").first()
    works, message, names = asyncio.run(_look(endpoint, key, first.model if first else ""))
    return works, _without(message, key), tuple(name for name in names if not key or key not in name)


def check_lists(endpoints: Sequence[Endpoint]) -> list[tuple[bool, str]]:
    """Return for each endpoint, asked for its list of models alone, whether it works, and a sentence.

    All are asked at once. A model is never asked, so it costs nothing: where there is no list, the key
    is not tried.
    """
    return asyncio.run(_check_lists([(endpoint, *_key_of(endpoint)) for endpoint in endpoints]))


async def _check_lists(known: list[tuple[Endpoint, str, str]]) -> list[tuple[bool, str]]:
    return await asyncio.gather(*(_check_list(*one) for one in known))


async def _check_list(endpoint: Endpoint, key: str, refusal: str) -> tuple[bool, str]:
    if refusal:
        return False, refusal
    try:
        async with asyncio.timeout(TIMEOUT_S):
            status, body = await _ask(endpoint, key)
    except Exception as error:
        return False, _without(_explained(error, endpoint.base_url), key)
    if status in _NO_LIST:
        return True, f"Reached, but it answers {status} for its list of models: the key was not tried."
    works, message, _ = _judged(status, body)
    return works, _without(message, key)


def _key_of(endpoint: Endpoint) -> tuple[str, str]:
    """Return the endpoint's key, and a sentence if it cannot be had."""
    try:
        sealed = secrets.get_sealed(endpoint.secret)
        key = secrets.open_secret(sealed, secrets.Purpose.MODEL_ENDPOINT.of(endpoint.pk))
    except secrets.SecretUnreadable:
        return "", "The stored key cannot be opened: enter it again."
    if endpoint.needs_key and not key:
        return "", "The endpoint has no key yet: enter one, or say that it needs none."
    return key, ""


async def _look(endpoint: Endpoint, key: str, model: str) -> EndpointReport:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            status, body = await _ask(endpoint, key)
            if status in _NO_LIST and model:
                return await _ask_model(endpoint, key, model)
    except Exception as error:
        return False, _explained(error, endpoint.base_url), ()
    return _judged(status, body)


async def _ask(endpoint: Endpoint, key: str) -> tuple[int, bytes]:
    wire = WIRES[endpoint.dialect]
    connector = aiohttp.TCPConnector(
        socket_factory=outgoing_connections.open_socket, force_close=True, **proxy.tls_options()
    )
    url = wire.models_url(endpoint.base_url)
    through = await outgoing_connections.request_options(url)
    headers = (wire.headers(key) if key else {}) | {"Accept": "application/json"}
    async with (
        aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as web,
        web.get(url, headers=headers, allow_redirects=False, **through) as response,
    ):
        body = bytearray()
        while len(body) < _LARGEST and (some := await response.content.readany()):
            body += some
        return response.status, bytes(body)


async def _ask_model(endpoint: Endpoint, key: str, model: str) -> EndpointReport:
    """Request a few tokens from a server that lists no models."""
    target = Candidate(
        endpoint.pk, endpoint.provider, endpoint.dialect, endpoint.base_url, model, key, None, None
    )
    request = ModelRequest(messages=(ChatMessage("user", "Say ok."),), max_tokens=16)
    try:
        async with aclosing(WIRES[endpoint.dialect](target, request)) as answer:
            async for _ in answer:
                break
    except ProviderError as error:
        return False, f"It lists no models, and asked for {model}: {error.message}", ()
    finally:
        await http.close()
    return True, f"It lists no models, but {model} answers.", ()


def _judged(status: int, body: bytes) -> EndpointReport:
    if 300 <= status < 400:
        return False, f"It answers {status}{_REDIRECT}", ()
    if status != 200:
        return False, f"It answers {status}{_ADVICE.get(status, '.')}", ()
    names = _names(body)
    if names is None:
        return False, "It answers, but with no list of models: check the base URL and the dialect.", ()
    return True, f"Connected: {len(names)} model{'' if len(names) == 1 else 's'}.", names[:MAX_NAMES]


def _names(body: bytes) -> tuple[str, ...] | None:
    """Return the names in `{"data": [{"id"}]}` or `{"models": [{"name"}]}`; None if it is neither."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    listed = (found.get("data") or found.get("models") or []) if isinstance(found, dict) else None
    if not isinstance(listed, list) or not (listed or "data" in found or "models" in found):
        return None
    names = (_name(item) for item in listed[:10_000] if isinstance(item, dict))
    return tuple(sorted(name for name in names if name))


def _name(item: dict[str, Any]) -> str:
    name = item.get("id") or item.get("name")
    return name if isinstance(name, str) and len(name) <= 200 and name.isprintable() else ""


def _explained(error: BaseException, base_url: str) -> str:
    host = urlsplit(base_url).netloc
    match error:
        case _ if outgoing_connections.was_refused(error) or is_refused_url(base_url):
            return REFUSED
        case TimeoutError():
            return f"No answer from {host} within {TIMEOUT_S:g} seconds."
        case aiohttp.ClientProxyConnectionError():
            return "Nothing answers at the address of OUTGOING_PROXY."
        case aiohttp.ClientHttpProxyError():
            return f"The proxy of OUTGOING_PROXY answers {error.status} when it is asked for {host}."
        case aiohttp.ClientConnectorDNSError():
            return f"The name {host} is not known: check the spelling, or the DNS of this machine."
        case aiohttp.ClientConnectorCertificateError():
            return f"The certificate of {host} is not trusted."
        case aiohttp.ClientConnectorSSLError() | aiohttp.ClientSSLError():
            return f"{host} does not speak TLS there: is it http:// rather than https://?"
        case aiohttp.ClientConnectorError() | OSError():
            return f"Nothing answers at {host}."
        case aiohttp.ClientError():
            return f"{host} does not speak HTTP as it should ({type(error).__name__})."
    return f"It cannot be asked ({type(error).__name__}): check the address."


def _without(text: str, key: str) -> str:
    return text.replace(key, "***") if len(key) >= 4 else text
