"""More than can be taken: what is refused is refused at once, what was accepted is kept (P1)."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from tests.faults import scenes
from tests.faults.clients import Caller
from tests.faults.scenes import Books, numbered
from tests.faults.stack import FULL, SLACK, Stack
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600 if FULL else 120)]
WAITING = 40 if FULL else 16
POSTS = 1_000 if FULL else 100
AT_ONCE = 4
REFUSED_S = 0.1 * SLACK**2
LIMITS = {503: "RUNS_WAITING", 429: "RUNS_WAITING_PER_USER"}


@pytest.fixture
def narrow(stack: Stack) -> Iterator[Stack]:
    """Two workers with room for two runs each."""
    for worker in stack.workers:
        worker.kill()
        worker.launch(WORKER_CAPACITY="2")
    stack.mend()
    yield stack
    for worker in stack.workers:
        worker.kill()


@pytest.mark.parametrize("status", LIMITS)
def test_what_is_too_much_is_refused_at_once(narrow: Stack, tally: Tally, status: int) -> None:
    narrow.web.kill()
    narrow.web.start(**{LIMITS[status]: str(WAITING)})
    try:
        asyncio.run(_flood(narrow, tally, status))
    finally:
        narrow.web.kill()


async def _flood(stack: Stack, tally: Tally, status: int) -> None:
    """Fill the queue; ask again and again; then let everything end."""
    with Books(stack) as books:
        async with scenes.client(stack) as caller:
            accepted = await _fill(caller)
            asked = await asyncio.gather(*(_ask(caller, POSTS // AT_ONCE) for _ in range(AT_ONCE)))
            answers = [answer for some in asked for answer in some]
            accepted += [r.json()["run_id"] for r, _ in answers if r.status_code == 202]
            await books.settled(accepted, within_s=90)
        found = books.examine(accepted)
    refused = [(response, took) for response, took in answers if response.status_code != 202]
    faults = found.faults + scenes.otherwise(found, "completed")
    faults += Counter(f"refused with {r.status_code}" for r, _ in refused if r.status_code != status)
    faults["without Retry-After"] += sum("retry-after" not in r.headers for r, _ in refused)
    faults["nothing refused"] += not refused
    times = sorted(took for _, took in refused)
    usual = times[: max(1, len(times) * 99 // 100)]  # this process shares the machine with what it asks
    tally.score("P1", f"beyond {LIMITS[status]}: accepted runs", len(accepted), faults)
    tally.score(
        "P1", f"beyond {LIMITS[status]}: POST → {status}", len(usual), times=usual, limit_s=REFUSED_S
    )


async def _fill(caller: Caller) -> list[str]:
    """Start runs until one is refused; the ids of those before."""
    accepted: list[str] = []
    while (response := await caller.post(numbered(40, 25))).status_code == 202:
        accepted.append(response.json()["run_id"])
    return accepted


async def _ask(caller: Caller, count: int) -> list[tuple[httpx.Response, float]]:
    """So many POSTs one after the other, with the seconds that each took."""
    answers = []
    for _ in range(count):
        since = time.monotonic()
        response = await caller.post(numbered(5, 5))
        answers.append((response, time.monotonic() - since))
    return answers
