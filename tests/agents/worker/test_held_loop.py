"""A run that holds the worker's loop is named, and the runs beside it stay where they are (P1, P9)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings
from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from agents.worker import execution, loop
from config import sql
from config.process import cancellation, watchdog
from conversations import events
from conversations.metrics import exposition
from conversations.models import Run
from tests.support.client import Client, ScriptedModel, reply
from tests.support.fakes.fake_model import FakeModel
from tests.support.fakes.mcp_host import wait_until
from tests.support.long_runs import slowly, sweep_elsewhere


class Blocks:
    """A runner that holds the loop in the middle of its answer."""

    def __init__(self, block: Callable[[], None]) -> None:
        self._block = block

    async def run(self, _context: Any, _host: Any) -> AsyncIterator[events.Fact]:
        yield events.MessageDelta("m1", "before ")
        self._block()
        yield events.MessageDelta("m1", "after")


@pytest.fixture
def blocking(
    scripted: Callable[..., ScriptedModel], monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[[], None]], str]:
    """Make models whose runner calls a function on the loop."""
    usual = execution.runner_for
    made: dict[str, Blocks] = {}

    def make(block: Callable[[], None]) -> str:
        name = scripted("unused").name
        made[name] = Blocks(block)
        return name

    monkeypatch.setattr(execution, "runner_for", lambda route: made.get(route.name) or usual(route))
    return make


def test_a_run_that_holds_the_loop_is_named_in_a_line_and_a_metric(
    client: Client,
    make_client: Callable[..., Client],
    blocking: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    froze: list[tuple[UUID | None, float]] = []
    monkeypatch.setattr(loop._current, "froze", lambda *hold: froze.append(hold))
    before = watchdog.totals.times
    with capture_logs() as lines:
        accepted = client.start("hello", model=blocking(lambda: time.sleep(0.6)))
        assert client.watch(accepted["run_id"])[-1].event == "completed"
        wait_until(lambda: froze)
    mine = UUID(accepted["run_id"])
    assert mine in {run_id for run_id, _ in froze}
    found = [line for line in lines if line.get("run_id") == mine.hex and line["event"] == "loop held"]
    assert found[0]["frame"].startswith("agents.worker.execution:Execution._produce:")
    assert found[0]["innermost"].startswith(f"{__name__}:")
    assert found[0]["coroutine"] == "Execution.run"
    assert found[0]["seconds"] > 0.5
    monkeypatch.setattr(exposition, "CACHED_S", 0.0)
    told = make_client(is_staff=True).http.get("/metrics").text
    families = text_string_to_metric_families(told)
    values = {one.name: one.value for family in families for one in family.samples}
    assert values["parley_loop_held_seconds_count"] > before
    assert values["parley_loop_held_seconds_sum"] >= found[0]["seconds"] - 0.001
    assert values["parley_loop_held_longest_seconds"] >= found[0]["seconds"] - 0.001


def _busy(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def _crowded(seconds: float) -> None:
    """Keep every connection of the loop's pool busy for so long, and a queue before it."""
    for _ in range(settings.DATABASE_POOL_SIZE * int(seconds)):
        cancellation.run_detached(sql.every("SELECT pg_sleep(1)"))


@pytest.mark.parametrize("block", [time.sleep, _busy, _crowded])
def test_a_worker_that_is_busy_for_longer_than_a_lease_keeps_its_runs(
    make_client: Callable[..., Client],
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
    blocking: Callable[..., str],
    settings: Any,
    block: Callable[[float], None],
) -> None:
    settings.LEASE_S = 2.0
    begun = threading.Event()

    def hold() -> None:
        begun.set()
        block(6.0)

    one, other = make_client(), make_client()
    provider.script(slowly(70), name=f"slowly-{block.__name__}")
    slow = scripted(f"script:slowly-{block.__name__}").name
    modest = other.start("count", model=slow, enable_exercise_search=False)
    other.watch(modest["run_id"], stop_after=3)
    with ThreadPoolExecutor(1) as pool:
        posted = pool.submit(one.start, "hello", model=blocking(hold), enable_exercise_search=False)
        assert begun.wait(10)
        asyncio.run(sweep_elsewhere(6.0))
        held = posted.result(30)
    for client, accepted in ((one, held), (other, modest)):
        assert client.watch(accepted["run_id"])[-1].event == "completed"
        run = Run.objects.get(pk=UUID(accepted["run_id"]))
        assert (run.status, run.fence, run.attempt) == ("completed", 1, 1)
    assert reply(one.watch(held["run_id"])) == "before after"
