"""Workers and the web process killed, at random and at chosen moments (promises P1, P2, P3, P8, P9)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from random import Random

import pytest

from tests.fake_model import Answer, End, text
from tests.faults import scenes
from tests.faults.clients import Caller, Reader, mixed
from tests.faults.scenes import SETTLE_S, Books, numbered
from tests.faults.stack import FULL, LEASE_S, SEED, Stack
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
RUNS, CLIENTS = (1_000, 25) if FULL else (60, 12)
AT_EACH_STEP = 20 if FULL else 4


def test_every_accepted_run_ends_once_over_random_kills(stack: Stack, tally: Tally) -> None:
    asyncio.run(_storm(stack, tally, Random(SEED)))


async def _storm(stack: Stack, tally: Tally, random: Random) -> None:
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            order = iter(range(RUNS))
            async with _killing(stack, random) as killed:
                clients = [
                    _client(stack, caller, order, Random(random.random())) for _ in range(CLIENTS)
                ]
                readers = [reader for some in await asyncio.gather(*clients) for reader in some]
            await asyncio.to_thread(stack.mend)
            await books.settled([reader.run_id for reader in readers], within_s=SETTLE_S)
            differing = await scenes.compare(stack, caller.http, readers)
        found = books.examine(reader.run_id for reader in readers)
    ends = ", ".join(f"{number} {end}" for end, number in found.ends.items())
    kills = f"{killed['web']} web and {killed['worker']} worker kills"
    tally.score("P1 P2", "runs over random kill -9", RUNS, found.faults, note=f"{kills}; {ends}")
    connections = sum(reader.connections for reader in readers)
    tally.score(
        "P3", "their readers, mixed transports", RUNS, differing, note=f"{connections} connections"
    )
    assert killed["web"]
    assert killed["worker"] > 2


@asynccontextmanager
async def _killing(stack: Stack, random: Random) -> AsyncIterator[Counter[str]]:
    """Inside the block somebody dies twice a second or so, ready or not, and is started again."""
    killed: Counter[str] = Counter()

    async def kill_for_ever() -> None:
        while True:
            await asyncio.sleep(random.uniform(0.2, 1.0))
            victim = random.choice([stack.web, *stack.workers, *stack.workers])
            victim.kill()
            killed[victim.name.partition("-")[0]] += 1
            victim.launch()

    killer = asyncio.create_task(kill_for_ever())
    try:
        yield killed
    finally:
        killer.cancel()
        await asyncio.wait({killer})


async def _client(stack: Stack, caller: Caller, order: Iterator[int], random: Random) -> list[Reader]:
    """Start a run, read it to the end, start the next, as long as there are any to start."""
    readers = []
    for _ in order:
        accepted = await caller.start(numbered(random.randint(5, 300), random.randint(2, 10)))
        reader = Reader(caller.http, stack.port, accepted["run_id"], mixed(random))
        await reader.read(within_s=120)
        readers.append(reader)
    return readers


def test_a_killed_workers_runs_are_run_again_only_if_nothing_was_said(
    stack: Stack, tally: Tally
) -> None:
    asyncio.run(_kill_at_each_step(stack, tally))


async def _kill_at_each_step(stack: Stack, tally: Tally) -> None:
    """One kill of both workers meets runs at every step; nobody but web is left to settle them."""
    count = AT_EACH_STEP
    stack.scripted.script(*[Answer((End.HANG,))] * count, text("awake"), name="wakes")
    stack.scripted.script(Answer((End.HANG,)), name="never")
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            silent = await scenes.start_many(caller, count, "hello", "script-wakes")
            used_a_tool = await scenes.start_many(
                caller, count, "hello", "script-never", enable_exercise_search=True
            )
            spoke = await scenes.start_many(caller, count, numbered(3_000, 10))
            await books.all_say(silent, "stage.started")
            await books.all_say(used_a_tool, "tool.call.completed")
            await books.all_say(spoke, "message.delta")
            await _requests_arrived(stack, "script:wakes", count)
            killed_at = scenes.now()
            for worker in stack.workers:
                worker.kill()
            for worker in stack.workers:
                await asyncio.to_thread(worker.start)
            await books.settled([*silent, *used_a_tool, *spoke], within_s=SETTLE_S + 2)
        rows = books.rows([*silent, *used_a_tool, *spoke])
        times = scenes.seconds_since(killed_at, rows)
        found = books.examine([*silent, *used_a_tool, *spoke])
        steps = {"silent": silent, "tool": used_a_tool, "spoke": spoke}
        ends = {
            name: Counter((a.row.status, a.row.error_code, a.attempts) for a in map(found.of, ids))
            for name, ids in steps.items()
        }
    lost = ("failed", "worker_lost", 1)
    expected = {"silent": ("completed", "", 2), "tool": lost, "spoke": lost}
    wrong = Counter(
        {f"{name} ended {dict(how)}": 1 for name, how in ends.items() if {*how} != {expected[name]}}
    )
    tally.score(
        "P8", "worker killed before a word, after a tool, in the middle", 3 * count, found.faults + wrong
    )
    tally.score("P9", "kill -9 of workers → settled", 3 * count, times=times, limit_s=SETTLE_S)
    assert max(times) < LEASE_S + 4


async def _requests_arrived(stack: Stack, model: str, count: int) -> None:
    """The provider has the requests, and says nothing."""
    async with asyncio.timeout(10):
        while len(stack.scripted.requests_for(model)) < count:
            await asyncio.sleep(0.02)
