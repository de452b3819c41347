"""A run goes to the worker that offers the most room, as long as its offer is fresh."""

from __future__ import annotations

from collections import Counter

import pytest

from agents.offers import EVERY_S, Offers


@pytest.fixture
def now() -> list[float]:
    """The time of the clock."""
    return [100.0]


@pytest.fixture
def offers(now: list[float]) -> Offers:
    """Nobody has offered anything yet."""
    return Offers(lambda: now[0])


def test_room_is_used_up_evenly_and_then_the_run_waits(offers: Offers) -> None:
    offers.hear({"worker": "host:1:a", "room": 3})
    offers.hear({"worker": "host:2:b", "room": 2})
    assert Counter(offers.take() for _ in range(7)) == {"host:1:a": 3, "host:2:b": 2, None: 2}


def test_the_latest_offer_counts_and_none_takes_it_back(offers: Offers) -> None:
    offers.hear({"worker": "host:1:a", "room": 3})
    offers.hear({"worker": "host:1:a", "room": 1})
    assert [offers.take(), offers.take()] == ["host:1:a", None]
    offers.hear({"worker": "host:1:a", "room": 3})
    offers.hear({"worker": "host:1:a", "room": 0})
    assert offers.take() is None


def test_an_offer_lapses(offers: Offers, now: list[float]) -> None:
    offers.hear({"worker": "host:1:a", "room": 3})
    now[0] += EVERY_S
    assert offers.take() == "host:1:a"
    now[0] += 2 * EVERY_S
    assert offers.take() is None


@pytest.mark.parametrize(
    "message", [{"missed": True}, {"worker": "host:1:a"}, {"worker": 1, "room": 2}, {"room": 2}]
)
def test_what_is_no_offer_is_passed_over(offers: Offers, message: dict[str, object]) -> None:
    offers.hear(message)
    assert offers.take() is None
