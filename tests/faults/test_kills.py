"""Workers and the web process killed, at random and at chosen moments (promises P1, P2, P3, P8, P9)."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any
from uuid import uuid4

import pytest

from tests.faults import scenes
from tests.faults.clients import Caller, Reader, mixed
from tests.faults.ledger import Findings
from tests.faults.scenes import SETTLE_S, Books, numbered
from tests.faults.stack import FULL, LEASE_S, SEED, SLACK, Part, Stack, wait_until
from tests.faults.tally import Tally
from tests.support.fakes.fake_model import Answer, End, text

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
RUNS, CLIENTS = (1_000, 25) if FULL else (18, 9)
AT_EACH_STEP = 20 if FULL else 4
LARGE_PIECE, LARGE_PIECES = 100_000, 500 if FULL else 100


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
    """Inside the block everybody is killed again and again, each a while after it was ready."""
    killed: Counter[str] = Counter()

    async def kill_for_ever(victim: Part, longest_s: float) -> None:
        while True:
            await asyncio.sleep(random.uniform(0.1, longest_s))
            victim.kill()
            killed[victim.name.partition("-")[0]] += 1
            victim.launch()
            await asyncio.to_thread(victim.wait_ready)

    lives = {stack.web: 4.0, **dict.fromkeys(stack.workers, 2.5)}
    killers = [asyncio.create_task(kill_for_ever(*life)) for life in lives.items()]
    try:
        yield killed
    finally:
        for killer in killers:
            killer.cancel()
        await asyncio.wait(killers)


async def _client(stack: Stack, caller: Caller, order: Iterator[int], random: Random) -> list[Reader]:
    """Start a run, read it to the end, start the next, as long as there are any to start."""
    readers = []
    for _ in order:
        accepted = await caller.start(numbered(random.randint(5, 150), random.randint(2, 9)))
        reader = Reader(caller.http, stack.port, accepted["run_id"], mixed(random))
        await reader.read(within_s=120)
        readers.append(reader)
    return readers


def test_a_killed_workers_runs_are_run_again_only_if_nothing_was_said(
    stack: Stack, tally: Tally
) -> None:
    asyncio.run(_kill_at_each_step(stack, tally))


async def _kill_at_each_step(stack: Stack, tally: Tally) -> None:
    """One kill meets runs at every step; nobody but web is left to settle them."""
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
            await scenes.played(stack, "wakes")
            killed_at = scenes.now()
            for part in (*stack.workers, stack.beat):
                part.kill()
            await books.settled(used_a_tool + spoke, within_s=SETTLE_S)
            await asyncio.to_thread(stack.mend)
            await books.settled(silent, within_s=SETTLE_S)
        times = scenes.seconds_since(killed_at, books.rows(used_a_tool + spoke))
        again, lost = books.examine(silent), books.examine(used_a_tool + spoke)
    faults = again.faults + scenes.otherwise(again, "completed")
    faults += lost.faults + scenes.otherwise(lost, "worker_lost")
    faults += _started(again, times=2) + _started(lost, times=1)
    tally.score("P8", "killed before a word, after a tool, in the middle", 3 * count, faults)
    tally.score(
        "P9", "kill -9 of workers and beat → settled by web", 2 * count, times=times, limit_s=SETTLE_S
    )
    assert max(times) < LEASE_S + 2 + 2 * SLACK  # two seconds in which the lease must stand still


def _started(found: Findings, *, times: int) -> Counter[str]:
    """Count the runs that were not started so many times, by how often they were."""
    started = Counter(account.attempts for account in found.accounts.values())
    del started[times]
    return Counter({f"started {number}, not {times} times": runs for number, runs in started.items()})


def test_lost_runs_with_large_logs_are_settled_too(stack: Stack, tally: Tally) -> None:
    asyncio.run(_kill_with_large_logs(stack, tally))


async def _kill_with_large_logs(stack: Stack, tally: Tally) -> None:
    """What a lost run has said may be as long as RUN_LOG_KB allows: settling it holds nobody up."""
    pieces = [{"reasoning_content": "x" * LARGE_PIECE}] * LARGE_PIECES
    stack.scripted.script(Answer((*pieces, *text("a word").steps[:2], End.HANG)), name="never")
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            large = await scenes.start_many(caller, 2, "hello", "script-never")
            await books.all_say(large, "message.delta", within_s=60)
            killed_at = scenes.now()
            for part in (*stack.workers, stack.beat):
                part.kill()
            slowest_s = await _slowest_health(caller, books.settled(large, within_s=SETTLE_S))
            await asyncio.to_thread(stack.mend)
        times = scenes.seconds_since(killed_at, books.rows(large))
        lost = books.examine(large)
    tally.score(
        "P9",
        f"kill -9 of workers, {LARGE_PIECE * LARGE_PIECES // 10**6} MB said → settled by web",
        2,
        lost.faults + scenes.otherwise(lost, "worker_lost"),
        times=times,
        limit_s=SETTLE_S,
        note=f"/health meanwhile {slowest_s:.2f} s at worst",
    )


def test_of_a_lost_run_that_is_not_stored_nothing_stays(stack: Stack, tally: Tally) -> None:
    asyncio.run(_kill_what_is_not_stored(stack, tally))


async def _kill_what_is_not_stored(stack: Stack, tally: Tally) -> None:
    """A worker dies in the middle of it: its reader gets an end, and the database forgets every word."""
    word = f"zebra{uuid4().hex}"
    stack.scripted.script(Answer((*text(f"Of a {word}.").steps[:2], End.HANG)), name="never")
    body = {"model": "script-never", "input": f"The {word}?", "store": False, "stream": True}
    body["metadata"] = {"ticket": word}
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            async with caller.http.stream("POST", f"{stack.url}/v1/responses", json=body) as stream:
                lines = stream.aiter_lines()
                created = json.loads((await _line(lines, "data:"))[5:])
                run_id = created["response"]["id"].removeprefix("resp_")
                await books.all_say([run_id], "message.delta")
                assert _tables_with(books, word), "while it runs it is as safe as any other"
                for part in (*stack.workers, stack.beat):
                    part.kill()
                await books.settled([run_id], within_s=SETTLE_S)
                last = await _line(lines, "event: response.failed")
            await asyncio.to_thread(stack.mend)
            lost = scenes.otherwise(books.examine([run_id]), "worker_lost")
            found = await caller.http.get(f"{stack.url}/v1/responses/resp_{run_id}")
        books.connection.execute(
            "UPDATE conversations_run SET finished_at = now() - interval '1 hour' WHERE id = %s",
            [run_id],
        )
        await asyncio.to_thread(
            wait_until, lambda: not _tables_with(books, word), seconds=30, what="forgetting"
        )
        [row] = books.rows([run_id])
    assert last
    assert (found.status_code, row.folded, row.status) == (404, True, "failed")
    tally.score("P2", "killed in a run that is not stored, nothing of it stays", 1, lost)


async def _line(lines: AsyncIterator[str], beginning: str) -> str:
    """The next line that begins so."""
    async with asyncio.timeout(SETTLE_S):
        return await anext(line async for line in lines if line.startswith(beginning))


def _tables_with(books: Books, word: str) -> list[str]:
    """The tables with a row that has the word in it anywhere."""
    names = books.connection.execute(
        "SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'r'"
        " AND relnamespace = 'public'::regnamespace"
    ).fetchall()
    return [
        row.name
        for row in names
        if books.connection.execute(
            f"SELECT 1 AS one FROM {row.name} held WHERE held::text LIKE %s LIMIT 1", [f"%{word}%"]
        ).fetchone()
    ]


async def _slowest_health(caller: Caller, work: Coroutine[Any, Any, object]) -> float:
    """How long the slowest answer of /health took while the work was done."""
    working, slowest = asyncio.ensure_future(work), 0.0
    while not working.done():
        since = time.monotonic()
        response = await caller.http.get(f"{caller.url}/health")
        assert response.status_code == 200
        slowest = max(slowest, time.monotonic() - since)
        await asyncio.sleep(0.05)
    await working
    return slowest
