"""The cost of a model call, by the candidate's own price or else by the published one.

An unknown price is None, never 0. Amounts are Decimals with ten decimal places.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol

from prompts.endpoints import published_prices
from prompts.endpoints.published_prices import TokenCounts

_MILLION: Final = Decimal(1_000_000)
_SMALLEST: Final = Decimal("1e-10")  # the precision of the run's column


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """US dollars per million tokens; None: cached tokens cost as much as other input."""

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None

    def compute_cost(self, counted: TokenCounts) -> Decimal:
        read = self.input if self.cached_input is None else self.cached_input
        write = self.input if self.cache_write is None else self.cache_write
        fresh = counted.input - counted.cached - counted.cache_write
        return (
            fresh * self.input
            + counted.cached * read
            + counted.cache_write * write
            + counted.output * self.output
        ) / _MILLION


class PricedModel(Protocol):
    """A model with its price, such as `routing.Candidate`."""

    @property
    def provider(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def price(self) -> OwnPrice | None: ...


async def prepare(model: PricedModel) -> None:
    """Load what `compute_cost` needs for this model: the published prices, unless it has its own."""
    if model.price is None:
        await published_prices.load()


def compute_cost(
    model: PricedModel,
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
    if model.price is not None:
        cost: Decimal | None = model.price.compute_cost(counted)
    else:
        cost = published_prices.compute_cost(model.provider, model.base_url, model.model, counted)
    return None if cost is None else cost.quantize(_SMALLEST)
