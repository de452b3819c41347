"""Cancel and deadline are honoured within two seconds, even when the worker is dead (promise P9)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

import pytest

from tests.faults import scenes
from tests.faults.scenes import Books, numbered, request
from tests.faults.stack import FULL, Part, Stack
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
LIMIT_S = 2.0
RUNS = 40 if FULL else 8
ROUNDS = 10 if FULL else 1
FATES = {"alive": lambda _: None, "killed": Part.kill, "frozen": Part.freeze}


@pytest.mark.parametrize("fate", FATES)
def test_a_cancel_is_honoured_whatever_became_of_the_worker(
    stack: Stack, tally: Tally, fate: str
) -> None:
    for _ in range(ROUNDS):
        stack.mend()
        asyncio.run(_cancel(stack, tally, fate))


async def _cancel(stack: Stack, tally: Tally, fate: str) -> None:
    """Half of the runs talk, half wait for a silent model; both workers meet their fate."""
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            talking = await scenes.start_many(caller, RUNS, numbered(5_000, 5))
            silent = await scenes.start_many(caller, RUNS, "hello", "hang")
            await books.all_say(talking, "message.delta")
            await books.all_say(silent, "stage.started")
            for worker in stack.workers:
                FATES[fate](worker)
            asked_at = scenes.now()
            await asyncio.gather(*map(caller.cancel, talking + silent))
            await books.settled(talking + silent, within_s=20)
        times = scenes.seconds_since(asked_at, books.rows(talking + silent))
        found = books.examine(talking + silent)
    faults = found.faults + _otherwise(found.ends, "cancelled")
    tally.score("P9", f"cancel → ended, worker {fate}", 2 * RUNS, faults, times=times, limit_s=LIMIT_S)


@pytest.mark.parametrize("fate", FATES)
def test_a_deadline_is_honoured_whatever_became_of_the_worker(
    stack: Stack, tally: Tally, fate: str
) -> None:
    for _ in range(ROUNDS):
        stack.mend()
        asyncio.run(_run_late(stack, tally, fate))


async def _run_late(stack: Stack, tally: Tally, fate: str) -> None:
    """The dialects do not ask for a deadline of their own; `start_run` takes one."""
    order = [request(numbered(5_000, 5), deadline_s=2), request("hello", "hang", deadline_s=2)] * RUNS
    started = await asyncio.to_thread(scenes.start_directly, stack, order)
    run_ids = [outcome["run_id"] for outcome in started[0]]
    with Books(stack) as books:
        await books.all_say(run_ids, "run.started")
        for worker in stack.workers:
            FATES[fate](worker)
        await books.settled(run_ids, within_s=20)
        late = [(row.finished_at - row.deadline_at).total_seconds() for row in books.rows(run_ids)]
        found = books.examine(run_ids)
    faults = found.faults + _otherwise(found.ends, "deadline_exceeded")
    faults["ended before its deadline"] += sum(seconds < -0.05 for seconds in late)
    tally.score("P9", f"deadline → ended, worker {fate}", 2 * RUNS, +faults, times=late, limit_s=LIMIT_S)


def _otherwise(ends: Counter[str], wanted: str) -> Counter[str]:
    return Counter({f"ended {end}": number for end, number in ends.items() if end != wanted})


def test_a_model_that_hangs_ends_the_run_visibly(stack: Stack, tally: Tally) -> None:
    asyncio.run(_hang(stack, tally))


async def _hang(stack: Stack, tally: Tally) -> None:
    since = time.monotonic()
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            never = await scenes.start_many(caller, RUNS, "hello", "hang")
            midway = await scenes.start_many(caller, RUNS, "hello", "hang-midway")
            await books.settled(never + midway, within_s=20)
        found = books.examine(never + midway)
    faults = found.faults + _otherwise(found.ends, "provider_timeout")
    faults["words lost"] += sum(found.of(run_id).text != "Hello" for run_id in midway)
    tally.score("P2", "a model that hangs", 2 * RUNS, +faults, times=[time.monotonic() - since])
