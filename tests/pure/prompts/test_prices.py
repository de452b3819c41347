"""What a call costs: staff's own price first, then the published one, and null where nobody knows."""

from __future__ import annotations

import asyncio
import socket
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import usage
from conversations.events import ModelCompleted, Usage
from prompts.endpoints import prices, published_prices
from prompts.endpoints.routing import Candidate, OwnPrice

OPENAI = "https://api.openai.com/v1"
HOME = "http://10.0.0.7:8000/v1"
OWN = OwnPrice(Decimal(2), Decimal(10), Decimal("0.5"), Decimal("2.5"))


def candidate(
    model: str, base_url: str = OPENAI, provider: str = "mine", price: OwnPrice | None = None
) -> Candidate:
    return Candidate(1, provider, "openai.chat_completions", base_url, model, "", None, None, price)


def cost(asked: Candidate, *counted: int) -> Decimal | None:
    """What input, output, cached and cache-write tokens cost."""
    given, said, cached, written = (*counted, 0, 0)[:4]
    asyncio.run(prices.prepare(asked))
    return prices.compute_cost(
        asked,
        input_tokens=given,
        output_tokens=said,
        cached_tokens=cached,
        cache_write_tokens=written,
    )


@pytest.mark.parametrize(
    ("counted", "expected"),
    [
        ((1_000_000, 1_000_000), "12"),
        ((1, 0), "0.000002"),
        ((10, 1, 4, 4), "0.0000260"),  # 2 fresh, 4 read, 4 written, 1 said
        ((5, 0, 9, 9), "0.0000025"),  # a provider that has read more than it was given
        ((0, 3), "0.00003"),
    ],
)
def test_an_own_price_counts_what_was_read_from_and_written_to_the_cache_apart(
    counted: tuple[int, ...], expected: str
) -> None:
    assert cost(candidate("gpt-4o", price=OWN), *counted) == Decimal(expected)


def test_an_own_price_without_cache_prices_takes_that_of_input() -> None:
    plain = OwnPrice(Decimal(3), Decimal(4))
    assert cost(candidate("x", price=plain), 1000, 0, 300, 300) == Decimal("0.003")


def test_a_price_of_zero_is_known_and_nothing_counted_is_not() -> None:
    free = candidate("x", HOME, price=OwnPrice(Decimal(0), Decimal(0)))
    assert cost(free, 5, 5) == 0
    assert cost(free, 0, 0) is None


def test_the_published_price_is_found_by_address_or_by_the_providers_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_network(*_: Any) -> None:
        raise AssertionError("prices are never asked of the network")

    monkeypatch.setattr(socket.socket, "connect", no_network)
    gpt_4o = Decimal("0.00125") + Decimal("0.000625") + Decimal("0.01")  # 2.50, 1.25 cached, 10
    assert cost(candidate("gpt-4o"), 1000, 1000, 500) == gpt_4o
    assert cost(candidate("gpt-4o", HOME, "OpenAI"), 1000, 1000, 500) == gpt_4o
    anthropic = candidate("claude-3-5-haiku-20241022", "https://api.anthropic.com", "a")
    assert cost(anthropic, 1000, 0, 0, 1000) == Decimal("0.001")
    gemini = candidate("models/gemini-2.5-flash", "https://generativelanguage.googleapis.com", "g")
    assert cost(gemini, 1_000_000, 0) == Decimal("0.3")


def test_a_long_prompt_is_priced_by_its_tier() -> None:
    asked = candidate("gemini-2.5-pro", "https://generativelanguage.googleapis.com")
    assert cost(asked, 100_000, 0) == Decimal("0.125")
    assert cost(asked, 300_000, 0) == Decimal("0.75")


@pytest.mark.parametrize(
    "asked",
    [
        candidate("gpt-4o", HOME, "vllm"),
        candidate("llama3:8b", "http://127.0.0.1:11434/v1", "ollama"),
        candidate("no-such-model"),
        candidate("", "", ""),
        candidate("x" * 5000),
    ],
)
def test_a_price_that_nobody_knows_is_null_and_not_zero(asked: Candidate) -> None:
    assert cost(asked, 1000, 1000) is None
    assert published_prices.quote(asked.provider, asked.base_url, asked.model) == ""


def test_staff_are_told_the_published_price() -> None:
    told = published_prices.quote("openai", OPENAI, "gpt-4o")
    assert "2.5" in told
    assert "OpenAI" in told


COUNTS = st.integers(0, 2**31 - 1)
COSTS = st.none() | st.decimals(0, 10_000, places=10)
USAGES = st.builds(Usage, COUNTS, COUNTS, COUNTS, COUNTS, COUNTS, COSTS, COUNTS)


@given(st.lists(USAGES, max_size=4), st.integers(0, 4))
def test_usage_adds_up_however_it_is_grouped_and_fits_its_columns(some: list[Usage], place: int) -> None:
    calls = [ModelCompleted("p", "m", 1, one) for one in some]
    whole = usage.sum_usage(calls)
    assert whole == usage.sum_usage(calls[:place]).plus(usage.sum_usage(calls[place:]))
    assert max(whole.input_tokens, whole.unpriced_tokens) <= 2**31 - 1
    known = [one.cost_usd for one in some if one.cost_usd is not None]
    assert whole.cost_usd == (sum(known, Decimal()) if known else None)


def test_amounts_are_shown_plainly() -> None:
    shown = [usage.usd(Decimal(text)) for text in ("1E-10", "12.5000000000", "0E-10", "100")]
    assert shown == ["0.0000000001", "12.5", "0", "100"]
    assert usage.usd(None) is None
