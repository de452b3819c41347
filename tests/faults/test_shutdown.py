"""SIGTERM under load: what is asked to end ends in order, and nobody loses anything by it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

from tests.faults import scenes
from tests.faults.clients import Reader, mixed
from tests.faults.scenes import SETTLE_S, Books, numbered
from tests.faults.stack import DRAIN_S, FULL, SEED, SLACK, Stack
from tests.faults.tally import Tally
from tests.support.fakes.fake_model import Answer, End, text

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
RUNS = 60 if FULL else 10
END_S = 10.0 * SLACK


def test_a_worker_that_is_asked_to_end_finishes_what_it_can(stack: Stack, tally: Tally) -> None:
    asyncio.run(_drain(stack, tally))


async def _drain(stack: Stack, tally: Tally) -> None:
    """Short runs end within the grace, others are settled; the other worker takes what comes."""
    first, second = stack.workers
    stack.scripted.script(*[Answer((End.HANG,))] * RUNS, text("awake"), name="wakes")
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            second.kill()
            short = await scenes.start_many(caller, RUNS, numbered(100, 10))
            long = await scenes.start_many(caller, RUNS, numbered(5_000, 10))
            silent = await scenes.start_many(caller, RUNS, "hello", "script-wakes")
            await books.all_say(short + long, "message.delta")
            await scenes.played(stack, "wakes")
            first.terminate()
            since = time.monotonic()
            second.launch()
            later = await scenes.start_many(caller, RUNS, numbered(20, 5))
            await books.settled(later, within_s=10)
            code = await asyncio.to_thread(first.wait_ended, DRAIN_S + END_S)
            took = time.monotonic() - since
            await books.settled(short + long + silent, within_s=SETTLE_S)
        lost, others = books.examine(long), books.examine(short + silent + later)
    faults = lost.faults + scenes.otherwise(lost, "worker_lost")
    faults += others.faults + scenes.otherwise(others, "completed")
    faults["exit code"] += code != 0
    tally.score("P1", "SIGTERM to a worker under load", 4 * RUNS, faults)
    tally.score("P1", "SIGTERM to a worker → ended", 1, times=[took], limit_s=DRAIN_S + 3 * SLACK)


def test_readers_of_a_web_process_that_is_asked_to_end_go_on(stack: Stack, tally: Tally) -> None:
    asyncio.run(_end_web(stack, tally))


async def _end_web(stack: Stack, tally: Tally) -> None:
    random = Random(SEED)
    async with scenes.client(stack) as caller:
        run_ids = await scenes.start_many(caller, RUNS, numbered(250, 10))
        readers = [
            Reader(caller.http, stack.port, run_id, mixed(Random(random.random())))
            for run_id in run_ids * 3
        ]
        reading = asyncio.gather(*(reader.read(within_s=60) for reader in readers))
        with Books(stack) as books:
            await books.all_say(run_ids, "message.delta")
        stack.web.terminate()
        since = time.monotonic()
        code = await asyncio.to_thread(stack.web.wait_ended, END_S)
        took = time.monotonic() - since
        await asyncio.to_thread(stack.web.start)
        await reading
        differing = await scenes.compare(stack, caller.http, readers)
    with Books(stack) as books:
        found = books.examine(run_ids)
    faults = (
        found.faults + differing + scenes.otherwise(found, "completed") + Counter({"exit code": code})
    )
    tally.score("P3", "SIGTERM to web: its readers", len(readers), faults)
    tally.score("P3", "SIGTERM to web → ended", 1, times=[took], limit_s=END_S)


def test_everything_ends_when_asked_even_without_redis(stack: Stack, tally: Tally) -> None:
    stack.redis.kill()
    everybody, since = (stack.beat, stack.web, *stack.workers), time.monotonic()
    for part in everybody:
        part.terminate()
    with ThreadPoolExecutor(len(everybody)) as pool:
        codes = list(pool.map(lambda part: part.wait_ended(3 * END_S), everybody))
    faults, took = Counter({"exit code": sum(map(bool, codes))}), time.monotonic() - since
    tally.score(
        "P11", "SIGTERM while Redis is down → ended", len(codes), faults, times=[took], limit_s=END_S
    )
