"""Leases are renewed again after an outage, and not while nobody takes what is renewed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from agents.worker import lease_keeper
from agents.worker.lease_keeper import LeaseKeeper
from conversations.runs import leases

WORKER = "keeper:1"
BLOCKED_S = 1.0


class Renewals:
    """The successful renewals of a keeper of ours, each of them a call of `act`."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act
        self._renew = leases.renew
        self.made = 0

    def __call__(self, connection: Any, *, worker: str, lease_s: float) -> dict[leases.HeldRun, bool]:
        if worker != WORKER:  # the one of all tests
            return self._renew(connection, worker=worker, lease_s=lease_s)
        self._act()
        self.made += 1
        return {}


@pytest.fixture
def renewals(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], Renewals]:
    """Make each renewal of a keeper of ours a call of a function."""
    monkeypatch.setattr(lease_keeper, "_EVERY_S", 0.01)
    monkeypatch.setattr(lease_keeper, "_BLOCKED_S", BLOCKED_S)

    def replace(act: Callable[[], None]) -> Renewals:
        made = Renewals(act)
        monkeypatch.setattr(leases, "renew", made)
        return made

    return replace


async def _keep(renewals: Renewals, hold: Callable[[LeaseKeeper], None] = lambda _: None) -> None:
    """Keep leases until ten have been renewed after `hold`, which holds the loop."""
    keeper = LeaseKeeper(WORKER, list, lambda _: None)
    keeper.start()
    try:
        hold(keeper)
        before = renewals.made
        async with asyncio.timeout(60):
            while renewals.made < before + 10:  # noqa: ASYNC110 - its thread tells nobody
                await asyncio.sleep(0.01)
    finally:
        await keeper.stop()


def test_after_a_long_outage_leases_are_renewed_again(
    renewals: Callable[[Callable[[], None]], Renewals],
) -> None:
    until = time.monotonic() + 1.5 * BLOCKED_S

    def be_away() -> None:
        if time.monotonic() < until:
            raise ConnectionError("the database is away")

    asyncio.run(_keep(renewals(be_away)))
    assert time.monotonic() > until


def test_a_blocked_loop_keeps_its_runs_for_a_while_and_has_them_again_afterwards(
    renewals: Callable[[Callable[[], None]], Renewals],
) -> None:
    counted = renewals(lambda: None)

    def hold(keeper: LeaseKeeper) -> None:
        until = time.monotonic() + 60
        while not keeper._is_blocked():
            assert time.monotonic() < until
            time.sleep(0.01)
        kept = counted.made
        assert kept > 1
        time.sleep(0.5)
        assert counted.made <= kept + 1  # one may have been under way

    asyncio.run(_keep(counted, hold))
