"""What a call of a model costs: by staff's own price of the candidate, else by the published one.

A price that nobody knows is None and never 0. Money is a Decimal, to the tenth of a nano-dollar.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final, Protocol

from prompts import published_prices
from prompts.published_prices import Counted

_MILLION: Final = Decimal(1_000_000)
_SMALLEST: Final = Decimal("1e-10")  # as the run's column holds it


@dataclass(frozen=True, slots=True)
class OwnPrice:
    """US dollars for a million tokens; None: the cache is read or written at the price of input."""

    input: Decimal
    output: Decimal
    cached_input: Decimal | None = None
    cache_write: Decimal | None = None

    def of(self, counted: Counted) -> Decimal:
        read = self.input if self.cached_input is None else self.cached_input
        write = self.input if self.cache_write is None else self.cache_write
        fresh = counted.input - counted.cached - counted.cache_write
        return (
            fresh * self.input
            + counted.cached * read
            + counted.cache_write * write
            + counted.output * self.output
        ) / _MILLION


class Priced(Protocol):
    """Who was asked: what `routing.Candidate` has."""

    @property
    def provider(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def price(self) -> OwnPrice | None: ...


async def ready(asked: Priced) -> None:
    """Make `cost` answer for this candidate; the published prices are read at the first need of them."""
    if asked.price is None:
        await published_prices.load()


def cost(
    asked: Priced, *, input_tokens: int, output_tokens: int, cached_tokens: int, cache_write_tokens: int
) -> Decimal | None:
    """US dollars for one call; None where no price is known or nothing was counted.

    Input includes what was read from and written to the cache; a provider that says otherwise is cut.
    """
    if not (input_tokens or output_tokens):
        return None
    cached = min(cached_tokens, input_tokens)
    written = min(cache_write_tokens, input_tokens - cached)
    counted = Counted(input_tokens, output_tokens, cached, written)
    if asked.price is not None:
        found: Decimal | None = asked.price.of(counted)
    else:
        found = published_prices.cost(asked.provider, asked.base_url, asked.model, counted)
    return None if found is None else found.quantize(_SMALLEST)
