"""Many at once on one thread: the same run once, others one after the other (promises P5 and P6)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import pairwise
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.faults import scenes
from tests.faults.clients import Caller
from tests.faults.scenes import Books, numbered
from tests.faults.stack import FULL, Stack
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
KEYS = 100 if FULL else 2
TWINS = 100
RACERS = 50
ROUNDS = 20 if FULL else 1


@pytest.mark.parametrize("by", ["Idempotency-Key", "runId"])
def test_a_hundred_parallel_posts_of_one_key_start_one_run(stack: Stack, tally: Tally, by: str) -> None:
    asyncio.run(_start_again_and_again(stack, tally, by))


async def _start_again_and_again(stack: Stack, tally: Tally, by: str) -> None:
    """Every other Idempotency-Key names its thread; without one the key itself makes it."""
    faults: Counter[str] = Counter()
    post = {"Idempotency-Key": _keyed, "runId": _named}[by]
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            for number in range(KEYS):
                key, thread = str(uuid4()), str(uuid4()) if number % 2 or by == "runId" else None
                twins = await asyncio.gather(
                    *(post(caller, key, numbered(3, 1), thread) for _ in range(TWINS))
                )
                other = await post(caller, key, "something else", thread)
                refused = [twin for twin in twins if twin.status_code != 202]
                run_ids = {twin.json()[_ID[by]] for twin in twins if twin not in refused}
                faults.update(f"{twin.status_code} {twin.text}" for twin in refused)
                faults["several runs for one key"] += len(run_ids) - 1
                faults["other body accepted"] += other.status_code != 409
                await books.settled(run_ids, within_s=20)
                faults += books.examine(run_ids).faults
    tally.score("P5", f"parallel POSTs with one {by}", KEYS * TWINS, faults)


_ID = {"Idempotency-Key": "run_id", "runId": "taskId"}


async def _keyed(caller: Caller, key: str, text: str, thread: str | None) -> httpx.Response:
    """A text run under this Idempotency-Key."""
    more: dict[str, Any] = {"conversation_id": thread} if thread else {}
    return await _answered(lambda: caller.post(text, headers={"Idempotency-Key": key}, **more))


async def _named(caller: Caller, key: str, text: str, thread: str | None) -> httpx.Response:
    """A RunAgentInput of this runId."""
    body = {
        "threadId": thread,
        "runId": key,
        "messages": [{"id": "1", "role": "user", "content": text}],
        "forwardedProps": {"model": "bench"},
    }
    return await _answered(lambda: caller.http.post(f"{caller.url}/api/v1/agent/runs", json=body))


async def _answered(post: Callable[[], Awaitable[httpx.Response]]) -> httpx.Response:
    """The answer; a 503 is waited out as it says (the test before may have cut PostgreSQL)."""
    for _ in range(10):
        answer = await post()
        if answer.status_code != 503:
            break
        await asyncio.sleep(float(answer.headers["Retry-After"]))
    return answer


@pytest.mark.parametrize("on_busy", ["enqueue", "reject", "interrupt"])
def test_racing_clients_of_one_thread_run_one_after_the_other(
    stack: Stack, tally: Tally, on_busy: str
) -> None:
    for _ in range(ROUNDS):
        asyncio.run(_race(stack, tally, on_busy))


async def _race(stack: Stack, tally: Tally, on_busy: str) -> None:
    thread, since = str(uuid4()), time.monotonic()
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            answers = await asyncio.gather(
                *(
                    caller.post(numbered(20, 2), query={"on_busy": on_busy}, conversation_id=thread)
                    for _ in range(RACERS)
                )
            )
            run_ids = [answer.json()["run_id"] for answer in answers if answer.status_code == 202]
            await books.settled(run_ids, within_s=60)
        rows = sorted(books.rows(run_ids), key=lambda row: row.thread_seq)
        found = books.examine(run_ids)
    begun = [row for row in rows if row.started_at]
    faults = found.faults + Counter(
        "two at once, or out of order"
        for one, following in pairwise(begun)
        if following.started_at < one.finished_at
    )
    refused = Counter(answer.status_code for answer in answers if answer.status_code != 202)
    faults["refused wrongly"] += refused.total() - (refused[409] if on_busy == "reject" else 0)
    faults["the last one did not run"] += rows[-1].status != "completed"
    faults["not completed"] += (on_busy != "interrupt") * (len(rows) - found.ends["completed"])
    ends = ", ".join(f"{number} {end}" for end, number in (found.ends + refused).items())
    took = time.monotonic() - since
    tally.score(
        "P6", f"racing clients on one thread: {on_busy}", RACERS, faults, times=[took], note=ends
    )
