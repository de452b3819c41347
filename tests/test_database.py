"""The pool survives those who use it: a client that leaves takes no connection along."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest

from config import database

TASKS = 2_000


@pytest.fixture(autouse=True)
def _small(settings: Any, db: None) -> None:
    settings.DATABASE_POOL_SIZE = 3


async def _ask() -> None:
    async with database.connection() as held:
        await held.execute("SELECT pg_sleep(0.0001)")


async def _leave(task: asyncio.Task[None], turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()


async def _come_and_go(random: Random) -> None:
    """Ask for connections in a crowd, most of which leaves somewhere on the way."""
    for _ in range(TASKS // 20):
        tasks = [asyncio.create_task(_ask()) for _ in range(20)]
        leaving = [asyncio.create_task(_leave(task, random.randint(0, 60))) for task in tasks]
        await asyncio.gather(*tasks, *leaving, return_exceptions=True)


async def _hold_all(count: int) -> None:
    async with asyncio.timeout(5), AsyncExitStack() as opened:
        for _ in range(count):
            held = await opened.enter_async_context(database.connection())
            await held.execute("SELECT 1")


@pytest.mark.parametrize("suspicious", [False, True], ids=["calm", "after a break"])
def test_tasks_that_are_cancelled_anywhere_lose_no_connection(suspicious: bool) -> None:
    async def play() -> None:
        try:
            if suspicious:
                database._suspect()
            await _come_and_go(Random(1))
            await _hold_all(3)
        finally:
            await database.close()

    asyncio.run(play())
