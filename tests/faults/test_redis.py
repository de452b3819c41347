"""Redis stopped, frozen, flushed, and its messages doubled: latency, never data (promise P11)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from random import Random

import pytest
import redis
from celery import Celery

from tests.faults import scenes
from tests.faults.clients import Caller, Reader, mixed
from tests.faults.scenes import Books, numbered
from tests.faults.stack import FULL, SEED, SLACK, Part, Stack, only_in_full
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
RUNS = 40 if FULL else 8
OUTAGE_S = 20.0 if FULL else 2.0
PACE_MS = 50 if FULL else 10  # the readers of many runs must keep up, all in this process
ACCEPT_S = 2.0  # RUNS at once beside four times as many readers; P11 promises that it ends, not how soon
START_S = 2.5 * SLACK
AT_ONCE_S = 0.25
CALM_S = 10.0 * SLACK
Fate = Callable[[Part], None]


FATES: dict[str, tuple[Fate, Fate]] = {
    "killed": (Part.kill, Part.start),
    "frozen": (Part.freeze, Part.thaw),
}


@pytest.mark.parametrize("fate", ["killed", pytest.param("frozen", marks=only_in_full)])
def test_streams_and_runs_go_on_without_redis(stack: Stack, tally: Tally, fate: str) -> None:
    asyncio.run(_lose_redis(stack, tally, fate))


async def _lose_redis(stack: Stack, tally: Tally, fate: str) -> None:
    """Runs from before go on, runs from the outage are accepted and end in it, later ones are quick."""
    go, come_back = FATES[fate]
    random = Random(SEED)
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            long = numbered(int(OUTAGE_S * 1500 / PACE_MS), PACE_MS)
            before = await scenes.start_many(caller, RUNS, long)
            reading = asyncio.gather(*(_read(stack, caller, run, random) for run in before * 3))
            await books.all_say(before, "message.delta")
            go(stack.redis)
            gone_at = time.monotonic()
            accepting = await asyncio.gather(*(_timed_start(caller) for _ in range(RUNS)))
            during = [run_id for run_id, _ in accepting]
            others = await asyncio.gather(*(_read(stack, caller, run, random) for run in during))
            await books.settled(during, within_s=20)
            await asyncio.sleep(max(0.0, gone_at + OUTAGE_S - time.monotonic()))
            await asyncio.to_thread(come_back, stack.redis)
            after = await scenes.start_many(caller, RUNS, numbered(20, 5))
            readers = [*await reading, *others]
            await books.settled(after, within_s=20)
            differing = await scenes.compare(stack, caller.http, readers)
            calm = await _until_calm(caller, books)
        found = books.examine([*before, *during, *after])
        waits = _waits(books, during)
    faults = found.faults + differing
    faults["not completed"] += 3 * RUNS - found.ends["completed"]
    score, redis_ = tally.score, f"Redis {fate}"
    score("P11", f"{redis_}: runs before, during and after", 3 * RUNS, faults)
    score("P11", f"{redis_}: POST → 202", RUNS, times=[s for _, s in accepting], limit_s=ACCEPT_S)
    score("P11", f"{redis_}: accepted → started", RUNS, times=waits, limit_s=START_S)
    score("P11", f"{redis_}: back → wake-ups work again", 1, times=[calm], limit_s=CALM_S)


async def _read(stack: Stack, caller: Caller, run_id: str, random: Random) -> Reader:
    reader = Reader(caller.http, stack.port, run_id, mixed(random))
    await reader.read(within_s=60)
    return reader


async def _timed_start(caller: Caller) -> tuple[str, float]:
    since = time.monotonic()
    accepted = await caller.start(numbered(20, 5))
    return accepted["run_id"], time.monotonic() - since


def _waits(books: Books, run_ids: list[str]) -> list[float]:
    """From acceptance to start."""
    return [(row.started_at - row.created_at).total_seconds() for row in books.rows(run_ids)]


async def _until_calm(caller: Caller, books: Books) -> float:
    """Seconds until five runs in a row start at once, that is by wake-up and not by looking."""
    since = time.monotonic()
    while True:
        for _ in range(5):
            run_ids = await scenes.start_many(caller, 1, numbered(1, 1))
            await books.settled(run_ids, within_s=10)
            if max(_waits(books, run_ids)) > AT_ONCE_S:
                break
        else:
            return time.monotonic() - since
        if time.monotonic() - since > 30:
            return time.monotonic() - since


def test_lost_and_doubled_messages_do_no_harm(stack: Stack, tally: Tally) -> None:
    asyncio.run(_lose_and_double(stack, tally))


async def _lose_and_double(stack: Stack, tally: Tally) -> None:
    with redis.Redis.from_url(stack.redis_url) as direct, Books(stack) as books:
        async with scenes.client(stack) as caller:
            lost = []
            for _ in range(RUNS):
                lost += await scenes.start_many(caller, 1, numbered(5, 1))
                direct.flushall()
            await books.settled(lost, within_s=20)
            calm = await _until_calm(caller, books)
            doubled = await scenes.start_many(caller, RUNS, numbered(50, 5))
            await asyncio.to_thread(_send_again, stack, doubled)
            await books.settled(doubled, within_s=20)
        found = books.examine(lost + doubled)
        waits = _waits(books, lost)
    faults = found.faults + Counter(
        {
            f"started {account.attempts} times": 1
            for account in found.accounts.values()
            if account.attempts != 1
        }
    )
    tally.score(
        "P11", "FLUSHALL right after the POST: accepted → started", RUNS, times=waits, limit_s=START_S
    )
    tally.score("P11", "each wake-up sent twenty times more", RUNS, faults)
    tally.score("P11", "flushed → wake-ups work again", 1, times=[calm], limit_s=CALM_S)


def _send_again(stack: Stack, run_ids: list[str]) -> None:
    with Celery(broker=stack.redis_url) as app, app.producer_pool.acquire() as producer:
        for run_id in run_ids * 20:
            app.send_task("agents.execute_run", (run_id,), queue="parley", producer=producer)
