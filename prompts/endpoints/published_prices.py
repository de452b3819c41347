"""Published prices of providers, from the library `genai-prices`; no network access.

The data takes a fraction of a second to import, so it is loaded on first use, in a thread. The
provider is recognised by the endpoint's address, or else by its provider name; a private server
that matches neither has no published price.
"""

from __future__ import annotations

import asyncio
from decimal import Decimal
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

import structlog

if TYPE_CHECKING:
    from genai_prices.data_snapshot import DataSnapshot
    from genai_prices.types import ModelInfo, Provider

log = structlog.get_logger(__name__)


class TokenCounts(NamedTuple):
    """The tokens of one call; the input includes cached and cache-write tokens."""

    input: int
    output: int
    cached: int
    cache_write: int


async def load() -> None:
    """Load the prices, once per process."""
    if not _snapshot.cache_info().currsize:
        await asyncio.to_thread(_snapshot)


def compute_cost(provider: str, base_url: str, model: str, counted: TokenCounts) -> Decimal | None:
    """Return the cost of one call in US dollars at today's published price, or None."""
    found = _find(provider, base_url, model)
    if found is None:
        return None
    from genai_prices.types import Usage

    served_by, priced = found
    try:
        usage = Usage(
            input_tokens=counted.input,
            output_tokens=counted.output,
            cache_read_tokens=counted.cached,
            cache_write_tokens=counted.cache_write,
        )
        return priced.calc_price(usage, served_by).total_price
    except (ValueError, LookupError, ArithmeticError):
        log.warning("published price not usable", provider=served_by.id, model=model)
        return None


def quote(provider: str, base_url: str, model: str) -> str:
    """Return the published price as text for staff, or ""."""
    found = _find(provider, base_url, model)
    if found is None:
        return ""
    from datetime import UTC, datetime

    served_by, priced = found
    return f"{priced.get_prices(datetime.now(UTC))} ({served_by.name}, {priced.id})"


@lru_cache(maxsize=1024)
def _find(provider: str, base_url: str, model: str) -> tuple[Provider, ModelInfo] | None:
    name = model.removeprefix("models/")
    for known in ({"provider_api_url": base_url}, {"provider_id": provider}):
        query = {"provider_api_url": None, "provider_id": None} | known
        if not any(query.values()):
            continue
        try:
            return _snapshot().find_provider_model(name, None, **query)
        except LookupError:
            continue
    return None


@cache
def _snapshot() -> DataSnapshot:
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot()
