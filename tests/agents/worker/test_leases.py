"""A worker that lives keeps its runs; those that it holds and does not execute are settled (P1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from agents import offers
from agents.worker.execution import Execution
from config import database
from conversations.models import Run
from conversations.runs import leases
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel
from tests.support.fakes.mcp_host import wait_until
from tests.support.long_runs import slowly, sweep_elsewhere


async def nobody_offers(_: UUID) -> None:
    """No worker has room: the run waits until one claims it."""


def _statuses(run_id: str) -> tuple[str, int, int]:
    run = Run.objects.get(pk=UUID(run_id))
    return run.status, run.attempt, run.losses


def test_a_row_that_is_locked_for_longer_than_a_lease_costs_no_run_its_lease(
    make_client: Callable[..., Client],
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
    settings: Any,
) -> None:
    settings.LEASE_S = 2.0
    one, other = make_client(), make_client()
    provider.script(slowly(80), name="slowly-locked")
    model = scripted("script:slowly-locked").name
    locked, free = (
        each.start("count", model=model, enable_exercise_search=False) for each in (one, other)
    )
    for client, accepted in ((one, locked), (other, free)):
        client.watch(accepted["run_id"], stop_after=3)
    with database.connect() as connection, connection.transaction():
        connection.execute("SELECT FROM conversations_run WHERE id = %s FOR UPDATE", [locked["run_id"]])
        asyncio.run(sweep_elsewhere(7.0))
    for client, accepted in ((one, locked), (other, free)):
        assert client.watch(accepted["run_id"])[-1].event == "completed"
        assert _statuses(accepted["run_id"]) == ("completed", 1, 0)


def test_a_claim_whose_answer_is_lost_goes_back_to_the_queue_and_is_no_loss(
    client: Client, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.LEASE_S = 2.0
    claim, lost = leases.claim, list[UUID]()

    async def lose_first(**options: Any) -> list[tuple[leases.ClaimedRun, str]]:
        claimed = await claim(**options)
        if not lost and any(run.owner_id == client.user.pk for run, _ in claimed):
            lost.extend(run.run_id for run, _ in claimed)
            raise ConnectionError("the answer is lost")
        return claimed

    monkeypatch.setattr(offers, "find_assignment", nobody_offers)
    monkeypatch.setattr(leases, "claim", lose_first)
    accepted = client.start("hello", model="demo", enable_exercise_search=False)
    wait_until(lambda: lost)
    assert client.watch(accepted["run_id"])[-1].event == "completed"
    assert UUID(accepted["run_id"]) in lost
    assert _statuses(accepted["run_id"]) == ("completed", 2, 0)


def test_an_execution_that_broke_is_a_lost_worker_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempt, broken = Execution._attempt, list[UUID]()

    async def break_first(self: Execution) -> Any:
        if not broken and self.claim.user_id == client.user.pk:
            broken.append(self.claim.run_id)
            raise RuntimeError("a mistake in the worker")
        return await attempt(self)

    monkeypatch.setattr(Execution, "_attempt", break_first)
    accepted = client.start("hello", model="demo", enable_exercise_search=False)
    assert client.watch(accepted["run_id"])[-1].event == "completed"
    assert broken == [UUID(accepted["run_id"])]
    assert _statuses(accepted["run_id"]) == ("completed", 2, 1)


def test_a_request_that_a_worker_cannot_read_costs_only_its_run_the_attempt(
    make_client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, unreadable = leases.claim, list[UUID]()

    async def claim_two_and_spoil_one(**options: Any) -> list[tuple[leases.ClaimedRun, str]]:
        claimed = await claim(**options)
        if unreadable or not any(run.owner_id in owners for run, _ in claimed):
            return claimed
        while sum(run.owner_id in owners for run, _ in claimed) < 2:
            await asyncio.sleep(0.05)
            claimed += await claim(**options)
        spoilt = next(run for run, _ in claimed if run.owner_id in owners)
        unreadable.append(spoilt.run_id)
        return [
            (run._replace(request='{"dialect": 1}') if run is spoilt else run, started)
            for run, started in claimed
        ]

    monkeypatch.setattr(offers, "find_assignment", nobody_offers)
    monkeypatch.setattr(leases, "claim", claim_two_and_spoil_one)
    clients = make_client(), make_client()
    owners = {client.user.pk for client in clients}
    started = [one.start("hello", model="demo", enable_exercise_search=False) for one in clients]
    ids = [UUID(accepted["run_id"]) for accepted in started]
    for client, run_id in zip(clients, ids, strict=True):
        assert client.watch(run_id.hex)[-1].event == "completed"
        losses = int(run_id in unreadable)
        assert _statuses(run_id.hex) == ("completed", 1 + losses, losses)
    assert len(unreadable) == 1
