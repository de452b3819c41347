"""The cost of a model call, by the candidate's own price or else by the published one.

An unknown price is None, never 0. Amounts are Decimals with ten decimal places.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from prompts.endpoints import published_prices
from prompts.endpoints.published_prices import TokenCounts
from prompts.endpoints.routing import Candidate

_SMALLEST: Final = Decimal("1e-10")  # the precision of the run's column


async def prepare(candidate: Candidate) -> None:
    """Load what `compute_cost` needs for this model: the published prices, unless it has its own."""
    if candidate.price is None:
        await published_prices.load()


def compute_cost(
    candidate: Candidate,
    *,
    input_tokens: int,
    output_tokens: int,
    cached_tokens: int,
    cache_write_tokens: int,
) -> Decimal | None:
    """Return the cost of one call in US dollars; None if no price is known or no token was counted.

    Input includes cached and cache-write tokens; larger numbers of those are reduced to it.
    """
    if not (input_tokens or output_tokens):
        return None
    cached = min(cached_tokens, input_tokens)
    written = min(cache_write_tokens, input_tokens - cached)
    counted = TokenCounts(input_tokens, output_tokens, cached, written)
    if candidate.price is not None:
        cost: Decimal | None = candidate.price.compute_cost(counted)
    else:
        served = candidate.provider, candidate.base_url, candidate.model
        cost = published_prices.compute_cost(*served, counted)
    return None if cost is None else cost.quantize(_SMALLEST)
