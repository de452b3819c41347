"""Leases are renewed again after an outage, and not while nobody takes what is renewed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from agents.worker import lease_keeper
from agents.worker.lease_keeper import LeaseKeeper
from conversations.runs import leases

WORKER = "keeper:1"


@pytest.fixture
def renewals(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], list[float]]:
    """Make each renewal of a keeper of ours a call of a function; return when they succeeded."""
    monkeypatch.setattr(lease_keeper, "_EVERY_S", 0.01)
    monkeypatch.setattr(lease_keeper, "_BLOCKED_S", 0.3)

    def replace(act: Callable[[], None]) -> list[float]:
        done, real = list[float](), leases.renew

        def renew(connection: Any, *, worker: str, lease_s: float) -> dict[leases.HeldRun, bool]:
            if worker != WORKER:  # the one of all tests
                return real(connection, worker=worker, lease_s=lease_s)
            act()
            done.append(time.monotonic())
            return {}

        monkeypatch.setattr(leases, "renew", renew)
        return done

    return replace


async def _keep(seconds: float, *, held: float = 0.0) -> None:
    keeper = LeaseKeeper(WORKER, list, lambda _: None)
    keeper.start()
    try:
        await asyncio.sleep(0.1)
        time.sleep(held)  # noqa: ASYNC251 - it holds the loop
        await asyncio.sleep(seconds)
    finally:
        await keeper.stop()


def test_after_a_long_outage_leases_are_renewed_again(
    renewals: Callable[[Callable[[], None]], list[float]],
) -> None:
    until = time.monotonic() + 1.0

    def be_away() -> None:
        if time.monotonic() < until:
            raise ConnectionError("the database is away")

    done = renewals(be_away)
    asyncio.run(_keep(1.5))
    assert len(done) > 10


def test_a_blocked_loop_keeps_its_runs_for_a_while_and_has_them_again_afterwards(
    renewals: Callable[[Callable[[], None]], list[float]],
) -> None:
    done, begun = renewals(lambda: None), time.monotonic()
    asyncio.run(_keep(0.5, held=1.0))
    offsets = [at - begun for at in done]
    assert max(later - earlier for earlier, later in pairwise(offsets)) > 0.5
    assert offsets[-1] > 1.3
