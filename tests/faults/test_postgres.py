"""PostgreSQL restarted, killed, and its connections cut, in the middle of runs (P1, P2, P3)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random

import pytest

from tests.faults import scenes
from tests.faults.clients import BROKEN, Caller, Reader, mixed
from tests.faults.scenes import Books, numbered
from tests.faults.stack import FULL, SEED, SLACK, Postgres, Stack, only_in_full
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
RUNS = 50 if FULL else 12
BACK_S = 5.0 * SLACK
PRODUCTION_LEASE_S = "10"
ENDINGS: dict[str, Callable[[Postgres], None]] = {"stopped": Postgres.stop, "killed": Postgres.kill}


@pytest.fixture
def stack(running_stack: Stack) -> Iterator[Stack]:
    """The stack with leases as they are in production: an outage must not look like a lost worker."""
    parts = (running_stack.web, *running_stack.workers)
    for part in parts:
        part.kill()
        part.launch(LEASE_S=PRODUCTION_LEASE_S)
    running_stack.mend()
    yield running_stack
    for part in parts:
        part.kill()


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_a_restart_of_the_database_is_waited_out(stack: Stack, tally: Tally, how: str) -> None:
    asyncio.run(_restart(stack, tally, how, away_s=0.5))


@only_in_full
def test_after_a_long_outage_everything_is_settled_soon(stack: Stack, tally: Tally) -> None:
    asyncio.run(_restart(stack, tally, "stopped", away_s=20))


async def _restart(stack: Stack, tally: Tally, how: str, *, away_s: float) -> None:
    random = Random(SEED)
    faults: Counter[str] = Counter()
    async with scenes.client(stack) as caller:
        run_ids = await scenes.start_many(caller, RUNS, numbered(200, 10))
        reading = asyncio.gather(*(_read(stack, caller, run, random) for run in run_ids * 2))
        with Books(stack) as books:
            await books.all_say(run_ids, "message.delta")
        await asyncio.to_thread(ENDINGS[how], stack.postgres)
        refused = asyncio.gather(*(_refused(caller) for _ in range(RUNS)))
        waiting = asyncio.create_task(caller.start(numbered(5, 1)))
        await asyncio.sleep(away_s)
        await asyncio.to_thread(stack.postgres.start)
        since = time.monotonic()
        run_ids.append((await waiting)["run_id"])
        back = time.monotonic() - since
        readers = await reading
        with Books(stack) as books:
            await books.settled(run_ids, within_s=30)
            run_ids += [run_id for run_id in (await refused) if run_id]
            await books.settled(run_ids, within_s=30)
            found = books.examine(run_ids)
        differing = await scenes.compare(stack, caller.http, readers)
    faults += found.faults + differing
    faults += scenes.otherwise(found, "completed")
    ends = ", ".join(f"{number} {end}" for end, number in found.ends.items())
    refusals = Counter(response.status_code for response in caller.refusals)
    name, refused_with = f"PostgreSQL {how} for {away_s:g} s", f"refused with {dict(refusals)}"
    tally.score("P1 P3", f"{name}: runs and readers", len(run_ids), faults, note=ends)
    tally.score("P1", f"{name}: back → POST 202", 1, times=[back], limit_s=BACK_S, note=refused_with)


async def _refused(caller: Caller) -> str | None:
    """A POST in the outage: 503 with Retry-After, or 202 if it was back in time; its run, if any."""
    since = time.monotonic()
    try:
        response = await caller.post(numbered(5, 1))
    except BROKEN as error:
        raise AssertionError(f"{type(error).__name__} after {time.monotonic() - since:.1f} s") from None
    if response.status_code == 202:
        run_id: str = response.json()["run_id"]
        return run_id
    caller.refusals.append(response)
    assert response.status_code == 503, response.text
    assert response.headers["retry-after"]
    return None


async def _read(stack: Stack, caller: Caller, run_id: str, random: Random) -> Reader:
    reader = Reader(caller.http, stack.port, run_id, mixed(random))
    await reader.read(within_s=120)
    return reader


def test_cut_connections_lose_nothing(stack: Stack, tally: Tally) -> None:
    asyncio.run(_cut_again_and_again(stack, tally))


async def _cut_again_and_again(stack: Stack, tally: Tally) -> None:
    """All connections of web and workers are cut several times a second while runs start and talk."""
    random = Random(SEED)
    cuts = 0
    async with scenes.client(stack) as caller:
        starting = asyncio.gather(*(caller.start(numbered(150, 10)) for _ in range(RUNS)))
        for _ in range(100 if FULL else 8):
            await asyncio.sleep(random.uniform(0.05, 0.4))
            cuts += await asyncio.to_thread(stack.postgres.cut_connections)
        run_ids = [accepted["run_id"] for accepted in await starting]
        readers = await asyncio.gather(*(_read(stack, caller, run, random) for run in run_ids))
        with Books(stack) as books:
            await books.settled(run_ids, within_s=30)
            found = books.examine(run_ids)
        differing = await scenes.compare(stack, caller.http, readers)
    faults = found.faults + differing
    faults += scenes.otherwise(found, "completed")
    tally.score("P1 P3", f"{cuts} database connections cut: runs and readers", RUNS, faults)
