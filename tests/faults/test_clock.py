"""A clock that jumps, of some processes or of the whole host: nobody is taken for dead."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from tests.faults import scenes
from tests.faults.clients import Caller, Reader, mixed
from tests.faults.clock import Clock, HostClock, database_clock
from tests.faults.scenes import SETTLE_S, Books, numbered
from tests.faults.stack import FULL, LEASE_S, SEED, SLACK, Part, Stack, only_in_full
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
RUNS = 40 if FULL else 8
DAY_S = 86_400
MINUTES_S = 300  # longer than a lease, shorter than a run's deadline
ROUNDS = 5 if FULL else 1


@contextmanager
def own_clock(stack: Stack, folder: Path) -> Iterator[Clock]:
    """Web and one worker live by a clock of their own; the other worker and PostgreSQL do not."""
    clock = Clock(folder)
    with _started(clock, stack.web, stack.workers[0]):
        yield clock


@contextmanager
def host_clock(stack: Stack, folder: Path) -> Iterator[Clock]:
    """Everything lives by one clock, PostgreSQL too, as on one host."""
    with stack.postgres.connect() as connection, database_clock(connection):
        clock = HostClock(folder, connection)
        with _started(clock, stack.web, *stack.workers):
            yield clock


@contextmanager
def _started(clock: Clock, *parts: Part) -> Iterator[None]:
    try:
        for part in parts:
            part.kill()
            part.launch(**clock.environment)
        for part in parts:
            part.wait_ready()
        yield
    finally:
        for part in parts:
            part.kill()


@pytest.mark.parametrize(
    "jumps",
    [
        pytest.param((DAY_S, -DAY_S), id="ahead"),
        pytest.param((-DAY_S, DAY_S), id="back", marks=only_in_full),
    ],
)
def test_processes_whose_clock_jumps_lose_nothing(
    stack: Stack, tally: Tally, tmp_path: Path, jumps: tuple[int, int]
) -> None:
    with own_clock(stack, tmp_path) as clock:
        for number in range(ROUNDS):
            asyncio.run(_jump(stack, tally, clock, jumps, number))


async def _jump(stack: Stack, tally: Tally, clock: Clock, jumps: tuple[int, int], number: int) -> None:
    """Runs before, between and after the jumps; a queue on one thread; every reader checked."""
    random = Random(SEED + number)
    clock.jump_to(0)
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            run_ids = await scenes.start_many(caller, RUNS, numbered(150, 20))
            first = await caller.start(numbered(30, 10))
            thread = [first["run_id"]]
            readers = [Reader(caller.http, stack.port, run_id, mixed(random)) for run_id in run_ids]
            reading = [asyncio.create_task(reader.read(within_s=60)) for reader in readers]
            await books.all_say(run_ids, "message.delta")
            for offset in jumps:
                clock.jump_to(offset)
                thread += await _enqueue(caller, first["conversation_id"], 3)
                run_ids += await scenes.start_many(caller, RUNS, numbered(20, 10))
            await asyncio.gather(*reading)
            await books.settled(run_ids + thread, within_s=SETTLE_S)
            faults = await scenes.compare(stack, caller.http, readers)
        found = books.examine(run_ids + thread)
        clocks = [account.row.id.int >> 80 for account in found.accounts.values()]
        assert max(clocks) - min(clocks) > DAY_S * 1000, "the ids tell that the clock has jumped"
        faults += found.faults + scenes.otherwise(found, "completed") + _order(books, thread)
    name = "ahead" if jumps[0] > 0 else "back"
    tally.score(
        "P1 P6", f"clock of web and a worker jumps a day {name}, then two", len(found.accounts), faults
    )


async def _enqueue(caller: Caller, conversation_id: str, count: int) -> list[str]:
    """So many runs behind each other on one thread."""
    return [
        (await caller.start(numbered(5, 5), conversation_id=conversation_id))["run_id"]
        for _ in range(count)
    ]


def _order(books: Books, thread: list[str]) -> Counter[str]:
    """Runs of a thread begin in the order in which they were accepted, one after the other."""
    rows = {row.id: row for row in books.rows(thread)}
    ordered = [rows[UUID(run_id)] for run_id in thread]
    overtaken = sum(later.started_at < earlier.finished_at for earlier, later in pairwise(ordered))
    return +Counter({"run overtook the one before it": overtaken})


@pytest.mark.parametrize("offset", [MINUTES_S, -MINUTES_S], ids=["ahead", "back"])
def test_the_clock_of_the_whole_host_jumps(
    stack: Stack, tally: Tally, tmp_path: Path, offset: int
) -> None:
    with host_clock(stack, tmp_path) as clock:
        for _ in range(ROUNDS):
            asyncio.run(_jump_all(stack, tally, clock, offset))


async def _jump_all(stack: Stack, tally: Tally, clock: Clock, offset: int) -> None:
    """Living workers keep their runs; a worker that is killed right after loses them in time."""
    clock.jump_to(0)
    loop = asyncio.get_running_loop()
    way = "ahead" if offset > 0 else "back"
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            run_ids = await scenes.start_many(caller, RUNS, numbered(200, 20))
            await books.all_say(run_ids, "message.delta")
            clock.jump_to(offset)
            cancelled = await scenes.start_many(caller, RUNS, numbered(2_000, 25))
            await books.all_say(cancelled, "message.delta")
            since = loop.time()
            await scenes.cancel(stack, cancelled)
            await books.settled(cancelled, within_s=SETTLE_S)
            honoured_s = loop.time() - since
            await books.settled(run_ids, within_s=SETTLE_S)
            begun = books.rows(cancelled)[0].started_at
            assert abs(begun - scenes.now()).total_seconds() > MINUTES_S / 2, "PostgreSQL's has, too"
            kept, ended = books.examine(run_ids), books.examine(cancelled)
            lost = await scenes.start_many(caller, RUNS, numbered(2_000, 25))
            await books.all_say(lost, "message.delta")
            clock.jump_to(0)
            for worker in stack.workers:
                worker.kill()
            settled_s = await books.settled(lost, within_s=2 * SETTLE_S)
            for worker in stack.workers:
                worker.launch(**clock.environment)
            gone = books.examine(lost)
    faults = kept.faults + scenes.otherwise(kept, "completed")
    tally.score("P1", f"host's clock jumps {way}: live runs go on", len(run_ids), faults)
    faults = ended.faults + scenes.otherwise(ended, "cancelled")
    trial = f"host's clock jumps {way}: cancel → ended"
    tally.score("P9", trial, RUNS, faults, times=[honoured_s], limit_s=2 * SLACK)
    faults = gone.faults + scenes.otherwise(gone, "worker_lost")
    trial = f"host's clock jumps from {way}: kill -9 → settled"
    tally.score("P9", trial, RUNS, faults, times=[settled_s], limit_s=LEASE_S + 8)
