"""Many at once on one thread: the same run once, others one after the other (promises P5 and P6)."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from uuid import uuid4

import pytest

from tests.faults import scenes
from tests.faults.scenes import Books, numbered, request
from tests.faults.stack import FULL, Stack
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800 if FULL else 120)]
KEYS = 100 if FULL else 10
PROCESSES, TWINS = 2, 50
RACERS = 50


def test_a_hundred_parallel_starts_of_one_key_start_one_run(stack: Stack, tally: Tally) -> None:
    """By `actions.start_run`: no dialect carries a client's run id yet (issue 4 brings RunAgentInput)."""
    keys = [{"thread_id": str(uuid4()), "client_run_id": f"key-{number}"} for number in range(KEYS)]
    order = [request(numbered(3, 1), **key) for key in keys for _ in range(TWINS)]
    twins = scenes.start_directly(stack, *[order] * PROCESSES)
    other = scenes.start_directly(stack, [request("something else", **key) for key in keys])
    faults: Counter[str] = Counter()
    for number in range(KEYS):
        mine = [one for some in twins for one in some[number * TWINS : (number + 1) * TWINS]]
        faults["several runs for one key"] += len({one.get("run_id") for one in mine}) != 1
        faults["not created once"] += sum(one.get("created", False) for one in mine) != 1
    faults["other body accepted"] += sum(one != _CONFLICT for one in other[0])
    with Books(stack) as books:
        run_ids = {one["run_id"] for some in twins for one in some}
        asyncio.run(books.settled(run_ids, within_s=20))
        faults += books.examine(run_ids).faults
    tally.score("P5", "parallel starts of one (user, thread, runId)", KEYS * TWINS * PROCESSES, +faults)


_CONFLICT = {"error": "run_id_already_used", "status": 409}


def test_racing_clients_of_one_thread_run_one_after_the_other(stack: Stack, tally: Tally) -> None:
    asyncio.run(_race(stack, tally))


async def _race(stack: Stack, tally: Tally) -> None:
    """Enqueueing only: no dialect asks for `reject` or `interrupt` yet."""
    thread = str(uuid4())
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            prompt = numbered(10, 1)
            run_ids = await scenes.start_many(caller, RACERS, prompt, conversation_id=thread)
            took = await books.settled(run_ids, within_s=60)
        rows = sorted(books.rows(run_ids), key=lambda row: row.thread_seq)
        found = books.examine(run_ids)
    faults = found.faults + Counter(
        "two at once, or out of order"
        for one, next_ in pairwise(rows)
        if next_.started_at < one.finished_at
    )
    faults["not completed"] += RACERS - found.ends["completed"]
    tally.score("P6", "racing clients on one thread", RACERS, +faults, times=[took])
