"""Streams cut, delayed and split on their way to the reader (promises P3 and P4)."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import repeat
from random import Random

import pytest

from tests.faults import scenes
from tests.faults.clients import TRANSPORTS, Caller, Reader
from tests.faults.clients import mixed as mixed_transports
from tests.faults.proxy import Faults, Proxy
from tests.faults.scenes import Books, numbered
from tests.faults.stack import FULL, SEED, SLACK, Stack
from tests.faults.tally import Tally

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600 if FULL else 120)]
READERS = 3
CUTS = READERS * (10_000 if FULL else 150)
AT_ONCE = 8 if FULL else 4


def test_three_readers_cut_at_random_each_get_the_log(stack: Stack, tally: Tally) -> None:
    asyncio.run(_cut_at_random(stack, tally, Random(SEED)))


async def _cut_at_random(stack: Stack, tally: Tally, random: Random) -> None:
    readers: list[Reader] = []
    faults: Counter[str] = Counter()
    async with scenes.client(stack) as caller, Proxy(stack.port, random, Faults()) as proxy:
        while proxy.cuts < CUTS:
            some = await _read_through(proxy, caller, random)
            faults += await scenes.compare(stack, caller.http, some)
            readers += some
    with Books(stack) as books:
        found = books.examine({reader.run_id for reader in readers})
    faults += found.faults + Counter({"not completed": len(found.accounts) - found.ends["completed"]})
    connections = sum(reader.connections for reader in readers)
    note = f"{len(readers)} readers of {len(found.accounts)} runs, {connections} connections"
    tally.score("P3 P4", "random cuts, mixed transports", proxy.cuts, faults, note=note)


async def _read_through(proxy: Proxy, caller: Caller, random: Random) -> list[Reader]:
    """A few runs, each with three readers behind the proxy, read to the end."""
    run_ids = await scenes.start_many(caller, AT_ONCE, numbered(400, 4))
    readers = [
        Reader(caller.http, proxy.port, run_id, mixed_transports(Random(random.random())))
        for run_id in run_ids
        for _ in range(READERS)
    ]
    await asyncio.gather(*(reader.read(within_s=60 * SLACK) for reader in readers))
    return readers


def test_a_reader_resumes_at_every_boundary_on_every_transport(stack: Stack, tally: Tally) -> None:
    asyncio.run(_resume_everywhere(stack, tally))


async def _resume_everywhere(stack: Stack, tally: Tally) -> None:
    """Half of the readers come while the run goes on, the others after its end."""
    async with scenes.client(stack) as caller:
        run_id = (await scenes.start_many(caller, 1, numbered(80, 20)))[0]
        early = _resumed(caller, stack, run_id, range(45))
        await asyncio.gather(*(reader.read(within_s=30) for reader in early))
        whole = await scenes.replay(caller.http, stack, run_id)
        last = whole[-1].id or 0
        late = _resumed(caller, stack, run_id, range(45, last))
        await asyncio.gather(*(reader.read(within_s=30) for reader in late))
    faults = Counter(
        "resumed stream differs"
        for reader in early + late
        if reader.frames != [frame for frame in whole if (frame.id or 0) > reader.began_at]
    )
    tally.score("P4", "resumed at every boundary, each transport", len(early + late), faults)


def _resumed(caller: Caller, stack: Stack, run_id: str, places: range) -> list[Reader]:
    return [
        Reader(caller.http, stack.port, run_id, repeat(transport), began_at=after)
        for after in places
        for transport in TRANSPORTS
    ]
