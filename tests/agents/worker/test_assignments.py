"""A run that is accepted while a worker has room is claimed for it at once, whatever gets lost (P1)."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents import offers
from agents.offers import Assignment
from agents.worker import assignments
from agents.worker.loop import Worker
from config.database import run_sync
from conversations.identifiers import uuid7
from conversations.models import EventBatch, Run
from conversations.runs import acceptance, leases
from conversations.runs.leases import ClaimedRun
from prompts.allowances import budgets, quotas
from prompts.wordings.active import ActivePrompts, read_recorded_message
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text
from tests.support.fakes.mcp_host import wait_until

QUESTION: dict[str, Any] = {"model": "demo", "enable_exercise_search": False}


@pytest.fixture(autouse=True)
def nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other tests leave budgets and quotas, and a run that counts waits in the queue."""

    async def none(*_: object) -> bool:
        return False

    monkeypatch.setattr(budgets, "any_exist", none)
    monkeypatch.setattr(quotas, "is_limited", none)


@pytest.fixture
def by_notification(server: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker of the session's server is taken for one of another process, which has offered room."""
    monkeypatch.setattr(offers, "_local", None)
    monkeypatch.setattr(offers, "_LAPSES_S", 60.0)  # however busy the machine
    wait_until(lambda: offers._offers.take() is not None)


@pytest.fixture
def claimed(monkeypatch: pytest.MonkeyPatch) -> list[UUID]:
    """The runs that a worker has looked for and found."""
    claim, found = leases.claim, list[UUID]()

    async def noted(**options: Any) -> list[tuple[leases.ClaimedRun, str]]:
        rows = await claim(**options)
        found.extend(run.run_id for run, _ in rows)
        return rows

    monkeypatch.setattr(leases, "claim", noted)
    return found


def _finished(client: Client, accepted: dict[str, Any]) -> tuple[str, int, int, str]:
    assert client.watch(accepted["run_id"])[-1].event == "completed"
    run = Run.objects.get(pk=UUID(accepted["run_id"]))
    return run.status, run.attempt, run.losses, run.worker


def _first_batch(accepted: dict[str, Any]) -> tuple[int, list[str]]:
    batch = EventBatch.objects.get(run_id=UUID(accepted["run_id"]), first_seq=1)
    events: Any = batch.events
    return batch.last_seq, [fact["type"] for _, fact in events]


def test_one_statement_accepts_and_claims(client: Client, claimed: list[UUID]) -> None:
    accepted = client.start("hello", **QUESTION)
    assert _first_batch(accepted) == (2, ["run.queued", "run.started"])
    assert _finished(client, accepted)[:3] == ("completed", 1, 0)
    assert UUID(accepted["run_id"]) not in claimed


@pytest.mark.usefixtures("by_notification")
@pytest.mark.parametrize("longest", [10, offers._LONGEST])
def test_a_notification_brings_the_run_or_tells_of_it(
    client: Client, claimed: list[UUID], longest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offers, "_LONGEST", longest)
    accepted = [client.start("hello", **QUESTION) for _ in range(5)]
    for one in accepted:
        assert _finished(client, one)[:3] == ("completed", 1, 0)
    assert [one for one in accepted if UUID(one["run_id"]) in claimed] == []


def test_a_run_that_does_not_arrive_is_found_by_its_worker(
    client: Client, claimed: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = list[UUID]()
    monkeypatch.setattr(Assignment, "deliver", lambda _, row, __: lost.append(row["run_id"]))
    accepted = client.start("hello", **QUESTION)
    assert _finished(client, accepted)[:3] == ("completed", 1, 0)
    assert UUID(accepted["run_id"]) in lost
    assert UUID(accepted["run_id"]) not in claimed


@pytest.mark.usefixtures("by_notification")
def test_a_run_that_arrives_twice_is_executed_once(
    client: Client,
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deliver, model = Assignment.deliver, scripted("script:twice").name
    provider.script(text("Once."), name="twice")

    def late(self: Assignment, row: Any, written: Any) -> None:
        deliver(self, row, written)
        asyncio.get_running_loop().call_later(0.3, deliver, self, row, written)

    monkeypatch.setattr(Assignment, "deliver", late)
    accepted = client.start("hello", model=model, enable_exercise_search=False)
    assert _finished(client, accepted)[:3] == ("completed", 1, 0)
    client.outlast_claims()
    time.sleep(0.5)
    assert len(provider.requests_for("script:twice")) == 1


def test_the_wording_is_the_one_that_was_active_when_it_was_accepted(
    client: Client,
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though the worker knows another one."""

    async def others() -> ActivePrompts:
        return ActivePrompts("Something else.", ())

    monkeypatch.setattr(assignments, "get_effective_prompts", others)
    provider.script(text("Yes."), name="worded")
    accepted = client.start("hello", model=scripted("script:worded").name, enable_exercise_search=False)
    assert _finished(client, accepted)[0] == "completed"
    versions: Any = Run.objects.get(pk=UUID(accepted["run_id"])).prompt_versions
    (asked,) = provider.requests_for("script:worded")
    system = asked.body["messages"][0]
    assert versions
    assert (system["role"], system["content"]) == ("system", read_recorded_message(versions))


def test_who_stops_gives_back_what_is_assigned_meanwhile(client: Client, provider: FakeModel) -> None:
    """And another worker, that of the server, takes it from the queue."""
    request = Run.objects.get(pk=UUID(client.start("hello", **QUESTION)["run_id"])).request
    thread_id, run_id = uuid4(), uuid7()
    message = {"id": uuid7(), "owner_id": client.user.pk, "thread_id": thread_id, "run_id": run_id}
    row = {
        "run_id": run_id,
        "owner_id": client.user.pk,
        "thread_id": thread_id,
        "title": "",
        "count": 1,
        "client_run_id": None,
        "digest": "d",
        "request_id": "r",
        "dialect": "text",
        "stored": True,
        "model": "global:demo",
        "request": json.dumps(request),
        "queue_limit_s": 60.0,
        "deadline_s": 60,
        "messages": [
            message | {"seq": 1, "role": "user", "content": "hello", "client_id": None, "metadata": {}}
        ],
    }

    async def stop_with_one() -> None:
        worker = Worker(8)
        worker._is_stopping = True
        assignment = Assignment(worker.name, ())
        written = await acceptance.insert_in_new_thread(row | assignment.columns)
        held = (1, 1, 1, written.last_seq, written.deadline_at_ms, 60.0)
        run = ClaimedRun(run_id, thread_id, client.user.pk, *held, request="{}")
        worker._start_assigned(run, "")
        await asyncio.sleep(0)
        while await leases.fetch_held(worker.name):  # noqa: ASYNC110 - the database tells nobody
            await asyncio.sleep(0.01)

    run_sync(stop_with_one())
    status, attempt, losses, _ = _finished(client, {"run_id": run_id.hex})
    assert (status, attempt, losses) == ("completed", 2, 0)
