"""The pool survives those who use it: a client that leaves takes no connection along."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest

from benchmarks.ports import free_port
from config import database
from config.database import new_connections

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
                database._mark_suspect()
            await _come_and_go(Random(1))
            await _hold_all(3)
        finally:
            await database.close()

    asyncio.run(play())


async def _server_process() -> int:
    async with database.connection() as held:
        found = held.info.backend_pid
    await asyncio.sleep(0.01)  # nobody waits for its way back
    return found


def test_the_connection_given_back_last_is_given_out_first() -> None:
    async def play() -> set[int]:
        try:
            await _hold_all(3)
            return {await _server_process() for _ in range(9)}
        finally:
            await database.close()

    assert len(asyncio.run(play())) == 1


def test_what_begins_waits_for_what_is_under_way_but_for_each_eighth_turn() -> None:
    served: list[bool] = []

    async def ask(*, begins: bool) -> None:
        async with database.connection(begins=begins):
            served.append(begins)

    async def play() -> None:
        try:
            async with AsyncExitStack() as opened:
                for _ in range(3):
                    await opened.enter_async_context(database.connection())
                tasks = [asyncio.create_task(ask(begins=begins)) for begins in [True] * 4 + [False] * 20]
                await asyncio.sleep(0)
            await asyncio.gather(*tasks)
        finally:
            await database.close()

    asyncio.run(play())
    assert sorted(served) == [False] * 20 + [True] * 4
    early = served[:16]
    assert 1 <= early.count(True) <= 2


@pytest.mark.parametrize("limit", ["_IDLE_S", "_LENT_S"])
def test_a_connection_goes_back_to_the_pool_after_a_while(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def play() -> int:
        try:
            await _hold_all(3)
            kept = database._opened[asyncio.get_running_loop()]["serving"]
            monkeypatch.setattr(database, limit, -1.0)
            for _ in range(3):
                await _server_process()
            return len(kept._idle)
        finally:
            await database.close()

    assert asyncio.run(play()) <= 1


def test_a_connection_that_comes_back_goes_to_who_waits_for_a_new_one_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arguments = new_connections.connection_arguments()  # psycopg's pool reads it at every attempt
    monkeypatch.setattr(database, "connection_arguments", lambda: arguments)

    async def play() -> None:
        try:
            async with database.connection() as held:
                await held.execute("SELECT 1")
                arguments.update({"host": "127.0.0.1", "port": free_port()})
                tasks = [asyncio.create_task(_ask()) for _ in range(9)]
                await asyncio.sleep(0.05)
            async with asyncio.timeout(3):
                await asyncio.gather(*tasks)
        finally:
            await database.close()

    asyncio.run(play())


def test_who_waits_through_an_outage_is_served_when_it_ends_though_nobody_else_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = new_connections.connection_arguments()
    away = there | {"host": "127.0.0.1", "port": free_port()}  # psycopg's pool reads it at every attempt
    monkeypatch.setattr(database, "connection_arguments", lambda: away)

    async def play() -> None:
        waiting = asyncio.create_task(_ask())
        try:
            await asyncio.sleep(2 * database._RECONNECT_S + 0.2)  # it has given up, and more than once
            assert not waiting.done()
            away.clear()
            away.update(there)
            async with asyncio.timeout(2 * database._RECONNECT_S + 1):
                await waiting
        finally:
            waiting.cancel()
            await database.close()

    asyncio.run(play())
