"""A run goes to the worker that offers the most room, as long as its offer is fresh."""

from __future__ import annotations

from collections import Counter
from typing import Any
from uuid import UUID

import msgspec
import pytest
from django.utils.crypto import salted_hmac

from agents import offers as module
from agents.offers import EVERY_S, Offers
from conversations.runs.leases import AssignedRun, ClaimedRun

RUN = ClaimedRun(UUID(int=1), UUID(int=2), UUID(int=3), 1, 1, 1, 2, 1_000, 60.0, "{}")
ASSIGNED = AssignedRun(RUN, [4])


@pytest.fixture
def now() -> list[float]:
    """The time of the clock."""
    return [100.0]


@pytest.fixture
def offers(now: list[float]) -> Offers:
    """Nobody has offered anything yet."""
    return Offers(lambda: now[0])


def test_room_is_used_up_evenly_and_then_the_run_waits(offers: Offers) -> None:
    offers.hear(_offer("host:1:a", 3))
    offers.hear(_offer("host:2:b", 2))
    assert Counter(offers.take() for _ in range(7)) == {"host:1:a": 3, "host:2:b": 2, None: 2}


def test_the_latest_offer_counts_and_none_takes_it_back(offers: Offers) -> None:
    offers.hear(_offer("host:1:a", 3))
    offers.hear(_offer("host:1:a", 1))
    assert [offers.take(), offers.take()] == ["host:1:a", None]
    offers.hear(_offer("host:1:a", 3))
    offers.hear(_offer("host:1:a", 0))
    assert offers.take() is None


def test_an_offer_lapses(offers: Offers, now: list[float]) -> None:
    offers.hear(_offer("host:1:a", 3))
    now[0] += EVERY_S
    assert offers.take() == "host:1:a"
    now[0] += 2 * EVERY_S
    assert offers.take() is None


@pytest.mark.parametrize(
    "message",
    [
        {"missed": True},
        {"offer": msgspec.msgpack.encode(("host:1:a", 3))},
        {"offer": msgspec.msgpack.encode(("host:1:a", 3)), "by": "0" * 64},
    ],
)
def test_what_none_of_us_has_offered_is_passed_over(offers: Offers, message: dict[str, object]) -> None:
    offers.hear(message)
    assert offers.take() is None


def test_runs_are_believed_from_us_alone_and_else_read_from_the_database() -> None:
    said = msgspec.msgpack.encode([ASSIGNED])
    to_read = [UUID(int=9).hex]
    message = {"runs": said, "by": module._sign(said), "to_read": to_read}
    assert module.read_runs(message) == ([ASSIGNED], {UUID(int=9)})
    other = AssignedRun(RUN._replace(owner_id=UUID(int=8)), [4])
    forged = message | {"runs": msgspec.msgpack.encode([other])}
    assert module.read_runs(forged) == ([], {RUN.run_id, UUID(int=9)})
    assert module.read_runs({"missed": True}) == ([], set())


def test_another_database_at_the_same_redis_is_not_heard(offers: Offers) -> None:
    ours = _offer("host:1:a", 3)
    theirs = salted_hmac("agents.offers another", ours["offer"], algorithm="sha256").hexdigest()
    offers.hear(ours | {"by": theirs})
    assert offers.take() is None


def _offer(worker: str, room: int) -> dict[str, Any]:
    said = msgspec.msgpack.encode((worker, room))
    return {"offer": said, "by": module._sign(said)}
