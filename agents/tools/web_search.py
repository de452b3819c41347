"""The web search tool, `web_search.exa` (specs/text-run.md §3): one POST to Exa, cached for 300 s.

No part of Exa's refusals or of the key reaches a client, a log or a row: a failure has a code and a
sentence of Parley.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import aiohttp
import msgspec
import psycopg
import structlog
from django.conf import settings
from django.core.cache import cache
from msgspec import Struct

from agents.providers import http
from agents.providers.redaction import without_key
from agents.tools.arguments import SEARCH_SCHEMA, TopK, read_arguments
from agents.tools.base import Tool, ToolFailure
from agents.tools.exa_results import NoResults, parse_results
from prompts import outgoing_connections
from prompts.endpoints.secrets import SecretUnreadable
from prompts.endpoints.web_search_key import open_key

log = structlog.get_logger(__name__)
T = TypeVar("T")

NAME: Final = "web_search.exa"
TIMEOUT_S: Final = 10.0
CACHE_S: Final = 300
LONGEST_QUERY: Final = 2_000
_LARGEST_BODY: Final = 8 * 1024 * 1024
_LARGEST_REFUSAL: Final = 64 * 1024
_PATIENCE_WITH_CACHE_S: Final = 0.5
_ABOUT_THE_KEY: Final = re.compile(rb"api[\s_-]*key", re.IGNORECASE)
_FAILURES: Final = {
    "query_required": "A query is required.",
    "missing_api_key": "EXA api key is required",
    "network_error": "The web search cannot be reached.",
    "upstream_auth_error": "The web search refused its key.",
    "upstream_quota_exceeded": "The web search's account has no credit left.",
    "upstream_rate_limited": "The web search is limiting our rate.",
    "upstream_error": "The web search failed.",
    "upstream_invalid_json": "The web search sent something unreadable.",
}
_REFUSALS: Final = {
    401: "upstream_auth_error",
    402: "upstream_quota_exceeded",
    429: "upstream_rate_limited",
}


class _Arguments(Struct, frozen=True, forbid_unknown_fields=True):
    query: str = ""
    top_k: TopK = 5


class _Request(Struct, frozen=True):
    """A request to Exa; with `kept`, Exa fetches no page for it."""

    query: str
    top_k: int
    kept: bool


async def search_web(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return `{provider, total, results}` for `{query, top_k}`.

    Raise ToolFailure with `invalid_arguments` or a code of `_FAILURES`.
    """
    return await _search_with_cache(_parse(arguments, kept=False))


async def search_stored_pages(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the same from pages that Exa has stored: none is fetched for the search."""
    return await _search_with_cache(_parse(arguments, kept=True))


async def _search_with_cache(request: _Request) -> dict[str, Any]:
    key = await _key()
    cache_key = _cache_key(request)
    found = await _ask_cache(cache.aget(cache_key))
    if not isinstance(found, dict):
        found = {"provider": "exa"} | await _search(request, key)
        await _ask_cache(cache.aset(cache_key, found, CACHE_S))
    return found


def _parse(arguments: dict[str, Any], *, kept: bool) -> _Request:
    parsed = read_arguments(arguments, _Arguments)
    query = " ".join(parsed.query[:LONGEST_QUERY].split())
    if not query:
        raise _failure("query_required")
    return _Request(query, parsed.top_k, kept)


async def has_key() -> bool:
    """Return whether there is a key for the search."""
    try:
        return bool(await _key())
    except ToolFailure:
        return False


async def _key() -> str:
    try:
        key = await open_key()
    except SecretUnreadable:
        log.error("web search key unreadable", fix="enter it again, or add its sealing key")
        key = ""
    except (psycopg.Error, OSError):
        raise _failure("upstream_error") from None
    if not key or not (key.isascii() and key.isprintable()):
        raise _failure("missing_api_key")
    return key


async def _search(request: _Request, key: str) -> dict[str, Any]:
    try:
        async with asyncio.timeout(TIMEOUT_S):
            status, body = await _post(request, key)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):  # ValueError: no address
        raise _failure("network_error") from None
    if status != 200:
        code = _refusal(status, body)
        log.warning("web search refused", status=status, code=code)
        raise _failure(code)
    if len(body) > _LARGEST_BODY:
        raise _failure("upstream_error")
    try:
        found = await asyncio.to_thread(parse_results, without_key(body, key), top_k=request.top_k)
    except NoResults:
        raise _failure("upstream_invalid_json") from None
    return {"total": len(found), "results": found}


async def _post(request: _Request, key: str) -> tuple[int, bytes]:
    """Return status and body; follow no redirect, which would send the key elsewhere."""
    contents: dict[str, Any] = {"text": True} | ({"maxAgeHours": -1} if request.kept else {})
    options = {"numResults": request.top_k, "type": "auto", "contents": contents}
    url = f"{settings.EXA_BASE_URL.rstrip('/')}/search"
    async with http.shared_session().post(
        url,
        data=msgspec.json.encode({"query": request.query} | options),
        headers={"x-api-key": key, "Content-Type": "application/json"},
        allow_redirects=False,
        **await outgoing_connections.request_options(url),
    ) as response:
        longest = _LARGEST_BODY if response.status == 200 else _LARGEST_REFUSAL
        body = bytearray()
        while len(body) <= longest and (some := await response.content.readany()):
            body += some
        if len(body) > longest:
            response.close()
        return response.status, bytes(body)


def _refusal(status: int, body: bytes) -> str:
    if status == 400 and _ABOUT_THE_KEY.search(body):
        return "upstream_auth_error"
    return _REFUSALS.get(status, "upstream_error")


def _failure(code: str) -> ToolFailure:
    return ToolFailure(code, _FAILURES[code])


def _cache_key(request: _Request) -> str:
    """Return the cache key: top_k and a hash of the lower-cased query, which any cache accepts."""
    digest = hashlib.sha256(request.query.lower().encode("utf-8", "replace")).hexdigest()
    return f"{NAME}:{'kept:' if request.kept else ''}{request.top_k}:{digest}"


async def _ask_cache(step: Coroutine[Any, Any, T]) -> T | None:
    """Return the cache's answer; None also if the cache is not available or slow."""
    try:
        async with asyncio.timeout(_PATIENCE_WITH_CACHE_S):
            return await step
    except Exception as error:  # each cache backend has its own errors
        log.warning("web search goes on without the cache", error=type(error).__name__)
        return None


TOOL: Final = Tool(
    name=NAME,
    description="Searches the web. Returns titles, addresses, dates and short excerpts of the pages "
    "that fit best.",
    parameters=SEARCH_SCHEMA,
    call=search_web,
    idempotent=True,
    timeout_s=TIMEOUT_S + 2,
)
