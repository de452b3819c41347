"""One HTTP client a loop for all providers, and what their refusals mean."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakKeyDictionary

import httpx
from django.conf import settings

from agents.providers.base import ProviderError

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
_REFUSALS: Final[dict[int, tuple[str, str]]] = {
    400: ("provider_bad_request", "The model provider refused the request as malformed."),
    401: ("provider_auth_error", "The model provider refused the endpoint's key."),
    402: ("provider_quota_exceeded", "The model provider's account has no credit left."),
    403: ("provider_auth_error", "The model provider refused the endpoint's key."),
    404: ("provider_model_not_found", "The model provider does not know this model or address."),
    413: ("provider_bad_request", "The model provider refused the request as too large."),
    429: ("provider_rate_limited", "The model provider is limiting our rate."),
}


def client() -> httpx.AsyncClient:
    """The running loop's client; connections are kept and not limited in number."""
    loop = asyncio.get_running_loop()
    found = _clients.get(loop)
    if found is None:
        found = _clients[loop] = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=200),
            timeout=httpx.Timeout(None, connect=settings.PROVIDER_CONNECT_S, write=30),
            follow_redirects=False,
            trust_env=False,
        )
    return found


async def close() -> None:
    """Close the running loop's client."""
    found = _clients.pop(asyncio.get_running_loop(), None)
    if found is not None:
        await found.aclose()


@asynccontextmanager
async def posting(url: str, *, headers: dict[str, str], body: bytes) -> AsyncIterator[httpx.Response]:
    """A streaming POST that was answered with 200; ProviderError for everything else."""
    response = await _send(url, {"Content-Type": "application/json"} | headers, body)
    try:
        if response.status_code != 200:
            raise _refusal(response)
        yield response
    finally:
        await response.aclose()


async def _send(url: str, headers: dict[str, str], body: bytes) -> httpx.Response:
    try:
        request = client().build_request("POST", url, content=body, headers=headers)
        async with asyncio.timeout(settings.PROVIDER_CONNECT_S + settings.PROVIDER_FIRST_TOKEN_S):
            return await client().send(request, stream=True)
    except (TimeoutError, httpx.TimeoutException):
        raise ProviderError(
            "provider_timeout", "The model provider did not answer.", retryable=True
        ) from None
    except (httpx.HTTPError, httpx.InvalidURL, UnicodeEncodeError):
        raise ProviderError(
            "provider_unreachable", "The model provider cannot be reached.", retryable=True
        ) from None


def _refusal(response: httpx.Response) -> ProviderError:
    status = response.status_code
    if status >= 500:
        return ProviderError(
            "provider_unavailable", f"The model provider answered {status}.", retryable=True
        )
    code, message = _REFUSALS.get(
        status, ("provider_error", f"The model provider answered {status}, which is no stream.")
    )
    return ProviderError(code, message, retryable=status == 429, retry_after_s=_retry_after(response))


def _retry_after(response: httpx.Response) -> float | None:
    value = response.headers.get("retry-after", "")
    return float(value) if value.isascii() and value.isdigit() else None


def invalid_response() -> ProviderError:
    return ProviderError("provider_invalid_response", "The model provider sent something unreadable.")
