"""Cancel, deadline and a silent model: every run ends in time, whatever became of its worker (P9)."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import pytest

from tests.faults import scenes
from tests.faults.scenes import Books, numbered
from tests.faults.stack import FULL, OFFERED_S, SLACK, Part, Stack
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
LIMIT_S = 2.0 * SLACK
DEADLINE_S = 8 if FULL else 3  # more than all need to begin, less than a lease
PATIENCE = ("PROVIDER_CONNECT_S", "PROVIDER_FIRST_TOKEN_S", "PROVIDER_IDLE_S")
PATIENCE_S = 0.5
RUNS = 40 if FULL else 8
ROUNDS = 10 if FULL else 1
Fate = Callable[[Part], None]
FATES: dict[str, tuple[Fate, Fate]] = {
    "workers alive": (lambda worker: None, lambda worker: None),
    "one worker killed, one frozen": (Part.kill, Part.freeze),
}
if FULL:
    FATES |= {"workers killed": (Part.kill, Part.kill), "workers frozen": (Part.freeze, Part.freeze)}


@pytest.mark.parametrize("fate", FATES)
def test_cancel_and_deadline_are_honoured_whatever_became_of_the_worker(
    stack: Stack, tally: Tally, fate: str
) -> None:
    for _ in range(ROUNDS):
        stack.mend()
        stack.web.kill()
        stack.web.start(RUN_DEADLINE_S=str(DEADLINE_S))
        try:
            asyncio.run(_end_in_time(stack, tally, fate))
        finally:
            stack.web.kill()


async def _end_in_time(stack: Stack, tally: Tally, fate: str) -> None:
    """Half of the runs talk, half wait for a silent model; half of each is cancelled at once."""
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            talking = await scenes.start_many(caller, 2 * RUNS, numbered(2_000, 25))
            silent = await scenes.start_many(caller, 2 * RUNS, "hello", "hang")
            await books.all_say(talking, "message.delta")
            await books.all_say(silent, "stage.started")
            for worker, meet in zip(stack.workers, FATES[fate], strict=True):
                meet(worker)
            unwanted, late = talking[:RUNS] + silent[:RUNS], talking[RUNS:] + silent[RUNS:]
            asked_at = scenes.now()
            await scenes.cancel(stack, unwanted)
            await books.settled(talking + silent, within_s=20)
        cancelled = scenes.seconds_since(asked_at, books.rows(unwanted))
        overdue = [(row.finished_at - row.deadline_at).total_seconds() for row in books.rows(late)]
        ended, expired = books.examine(unwanted), books.examine(late)
    faults = ended.faults + scenes.otherwise(ended, "cancelled")
    tally.score("P9", f"cancel → ended, {fate}", len(unwanted), faults, times=cancelled, limit_s=LIMIT_S)
    faults = expired.faults + scenes.otherwise(expired, "deadline_exceeded")
    faults["ended before its deadline"] += sum(seconds < -0.05 for seconds in overdue)
    tally.score("P9", f"deadline → ended, {fate}", len(late), faults, times=overdue, limit_s=LIMIT_S)


def test_a_row_that_somebody_holds_keeps_no_other_waiting(stack: Stack, tally: Tally) -> None:
    asyncio.run(_hold_a_row(stack, tally))


async def _hold_a_row(stack: Stack, tally: Tally) -> None:
    """As if a process were frozen in the middle of settling one run: the others end in time."""
    with Books(stack) as books, stack.postgres.connect() as frozen:
        async with scenes.client(stack) as caller:
            held, *others = await scenes.start_many(caller, 1 + RUNS, numbered(2_000, 25))
            await books.all_say([held, *others], "message.delta")
            for worker in stack.workers:
                worker.kill()
            await scenes.cancel(stack, [held])
            with frozen.transaction():
                frozen.execute("SELECT FROM conversations_run WHERE id = %s FOR UPDATE", [held])
                asked_at = scenes.now()
                await scenes.cancel(stack, others)
                await books.settled(others, within_s=20)
            await books.settled([held], within_s=20)
            times = scenes.seconds_since(asked_at, books.rows(others))
        found = books.examine([held, *others])
    tally.score(
        "P9", "cancel → ended, another row is held", RUNS, found.faults, times=times, limit_s=LIMIT_S
    )


def test_a_model_that_hangs_ends_the_run_visibly(stack: Stack, tally: Tally) -> None:
    for worker in stack.workers:
        worker.kill()
        worker.start(**dict.fromkeys(PATIENCE, str(PATIENCE_S)))
    time.sleep(OFFERED_S)
    try:
        asyncio.run(_hang(stack, tally))
    finally:
        for worker in stack.workers:
            worker.kill()


async def _hang(stack: Stack, tally: Tally) -> None:
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            never = await scenes.start_many(caller, RUNS, "hello", "hang")
            midway = await scenes.start_many(caller, RUNS, "hello", "hang-midway")
            await books.settled(never + midway, within_s=20)
        rows, found = books.rows(never + midway), books.examine(never + midway)
    times = [(row.finished_at - row.started_at).total_seconds() - 2 * PATIENCE_S for row in rows]
    faults = found.faults + scenes.otherwise(found, "provider_timeout")
    faults["words lost"] += sum(found.of(run_id).text != "Hello" for run_id in midway)
    tally.score(
        "P2", "a model that hangs: patience → ended", len(rows), faults, times=times, limit_s=LIMIT_S
    )
