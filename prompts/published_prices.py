"""The providers' published prices, as the library `genai-prices` ships them; it never asks the network.

Its data is large (a fraction of a second to import), so it is read at the first need and off the loop.
Who serves an endpoint is told by its address, else by its provider's name: a server of one's own
that is called neither has no published price.
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


class Counted(NamedTuple):
    """Tokens of one call; the input includes what was read from and written to the cache."""

    input: int
    output: int
    cached: int
    cache_write: int


async def load() -> None:
    """Read the prices, once a process."""
    if not _snapshot.cache_info().currsize:
        await asyncio.to_thread(_snapshot)


def cost(provider: str, base_url: str, model: str, counted: Counted) -> Decimal | None:
    """US dollars for one call at today's published price; None where there is none."""
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
    """The published price in words, for staff; "" where there is none."""
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
        whom = {"provider_api_url": None, "provider_id": None} | known
        if not any(whom.values()):
            continue
        try:
            return _snapshot().find_provider_model(name, None, **whom)
        except LookupError:
            continue
    return None


@cache
def _snapshot() -> DataSnapshot:
    from genai_prices.data_snapshot import get_snapshot

    return get_snapshot()
