"""A worker that stood still wakes up and finds its runs taken: it writes nothing more (promise P7)."""

from __future__ import annotations

import asyncio
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.faults import ledger, scenes
from tests.faults.scenes import SETTLE_S, Books, numbered
from tests.faults.stack import FULL, LEASE_S, SEED, Part, Stack, only_in_full, wait_until
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600 if FULL else 120)]
RUNS = 100 if FULL else 12
WAKINGS = 20


def test_a_frozen_worker_that_wakes_writes_nothing_more(stack: Stack, tally: Tally) -> None:
    asyncio.run(_freeze_past_the_lease(stack, tally))


async def _freeze_past_the_lease(stack: Stack, tally: Tally) -> None:
    first, second = stack.workers
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            second.kill()  # so that the first holds all runs, and a new one settles them
            run_ids = await scenes.start_many(caller, RUNS, numbered(2_000, 20))
            await books.all_say(run_ids, "message.delta")
            first.freeze()
            frozen_at = scenes.now()
            second.launch()
            await books.settled(run_ids, within_s=SETTLE_S)
            times = scenes.seconds_since(frozen_at, books.rows(run_ids))
            before = ledger.everything(books.connection, run_ids)
            first.thaw()
            await _notices(first, RUNS)
            await asyncio.sleep(1)  # time for a write that must not come
            faults = _written(before, ledger.everything(books.connection, run_ids))
            faults += books.examine(run_ids).faults
            await _still_works(stack, books)
    tally.score("P7", "runs of a worker frozen past its lease, then woken", RUNS, faults)
    tally.score("P9", "SIGSTOP of a worker → settled", RUNS, times=times, limit_s=SETTLE_S)


async def _notices(worker: Part, runs: int) -> None:
    await asyncio.to_thread(
        wait_until, lambda: worker.log().count("lease lost") >= runs, seconds=10, what="lost leases"
    )


def _written(before: dict[str, list[Any]], after: dict[str, list[Any]]) -> Counter[str]:
    """What was written between two looks: so many rows, and which of their columns."""
    found = Counter[str]()
    for name in before:
        found[f"{name} written after the lease"] += len(before[name]) != len(after[name])
        for old, new in zip(before[name], after[name], strict=False):
            changed = [column for column in old._fields if getattr(old, column) != getattr(new, column)]
            found[f"{name}, {', '.join(changed)} written after the lease"] += bool(changed)
    return found


async def _still_works(stack: Stack, books: Books) -> None:
    """The woken worker takes new runs: there is nobody else."""
    first, second = stack.workers
    second.wait_ready()
    second.kill()
    async with scenes.client(stack) as caller:
        run_ids = await scenes.start_many(caller, 2, numbered(5, 1))
        await books.settled(run_ids, within_s=10)
    assert books.examine(run_ids).ends == {"completed": 2}
    assert first.alive


@only_in_full
def test_workers_that_wake_just_when_their_lease_ends_break_nothing(stack: Stack, tally: Tally) -> None:
    asyncio.run(_wake_at_the_edge(stack, tally, Random(SEED)))


async def _wake_at_the_edge(stack: Stack, tally: Tally, random: Random) -> None:
    """Both workers stand still for about a lease, each in its own time, again and again."""
    run_ids: list[str] = []
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            for _ in range(WAKINGS):
                prompt = numbered(random.randint(300, 800), random.randint(3, 5))
                started = await scenes.start_many(caller, RUNS, prompt)
                await books.all_say(started, "run.started")
                await asyncio.gather(*(_doze(worker, random) for worker in stack.workers))
                run_ids += started
            await books.settled(run_ids, within_s=SETTLE_S)
        found = books.examine(run_ids)
    ends = ", ".join(f"{number} {end}" for end, number in found.ends.items())
    tally.score("P7", "runs of workers frozen for about a lease", len(run_ids), found.faults, note=ends)


async def _doze(worker: Part, random: Random) -> None:
    worker.freeze()
    await asyncio.sleep(LEASE_S + random.uniform(-1.0, 0.8))
    worker.thaw()
