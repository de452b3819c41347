"""Calls that share statements: who goes with whom, and whose fault is whose."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from itertools import pairwise

import psycopg
import pytest
from psycopg import errors

from config.sql import Grouped

Work = Callable[[list[int]], Awaitable[list[int]]]


def grouped(work: Work, *, most: int = 64) -> tuple[Grouped[int, int], list[list[int]]]:
    """Calls of `work`, and the groups that it was given."""
    groups: list[list[int]] = []

    async def noted(values: list[int]) -> list[int]:
        groups.append(values)
        return await work(values)

    return Grouped(noted, most=most), groups


async def doubled(values: list[int]) -> list[int]:
    await asyncio.sleep(0)
    return [2 * value for value in values]


def test_calls_of_one_turn_go_together_and_each_has_its_own_result() -> None:
    calls, groups = grouped(doubled, most=3)

    async def play() -> list[int]:
        return await asyncio.gather(*(calls.call(value) for value in range(5)))

    assert asyncio.run(play()) == [0, 2, 4, 6, 8]
    assert groups == [[0, 1, 2], [3, 4]]


def test_calls_that_come_meanwhile_go_with_the_next_statement() -> None:
    async def play() -> list[list[int]]:
        under_way, answered = asyncio.Event(), asyncio.Event()

        async def work(values: list[int]) -> list[int]:
            under_way.set()
            await answered.wait()
            return values

        calls, groups = grouped(work)
        first = asyncio.ensure_future(calls.call(1))
        await under_way.wait()
        later = [asyncio.ensure_future(calls.call(value)) for value in (2, 3)]
        await asyncio.sleep(0)
        assert groups == [[1]]
        answered.set()
        assert await asyncio.gather(first, *later) == [1, 2, 3]
        assert await calls.call(4) == 4  # and it begins anew
        return groups

    assert asyncio.run(play()) == [[1], [2, 3], [4]]


def test_others_on_the_loop_have_their_turns_while_many_are_answered() -> None:
    """A request that is refused waits for eight who go on at most, not for sixty-four."""

    async def play() -> list[str | int]:
        calls, groups = grouped(doubled)
        order: list[str | int] = []

        async def call(value: int) -> None:
            order.append(await calls.call(value))

        async def another() -> None:
            while True:
                if order and order[-1] != "another":
                    order.append("another")
                await asyncio.sleep(0)

        other = asyncio.ensure_future(another())
        await asyncio.gather(*(call(value) for value in range(64)))
        other.cancel()
        assert len(groups) == 1
        return order

    order = asyncio.run(play())
    assert [told for told in order if told != "another"] == [2 * value for value in range(64)]
    places = [place for place, told in enumerate(order) if told == "another"]
    assert all(after - before <= 9 for before, after in pairwise([0, *places, len(order)])), order


def test_a_statement_that_waits_for_a_lock_holds_up_no_other() -> None:
    async def play() -> None:
        under_way, let_go = asyncio.Event(), asyncio.Event()

        async def work(values: list[int]) -> list[int]:
            if values == [1]:
                under_way.set()
                await let_go.wait()
            return values

        calls, _ = grouped(work)
        held = asyncio.ensure_future(calls.call(1))
        await under_way.wait()
        assert await calls.call(2) == 2
        assert not held.done()
        let_go.set()
        assert await held == 1

    asyncio.run(play())


def test_a_fault_is_only_its_callers() -> None:
    async def work(values: list[int]) -> list[int]:
        if 2 in values:
            raise errors.UniqueViolation("two")
        return values

    calls, groups = grouped(work)

    async def play() -> list[int | BaseException]:
        return await asyncio.gather(*map(calls.call, (1, 2, 3)), return_exceptions=True)

    one, two, three = asyncio.run(play())
    assert (one, three) == (1, 3)
    assert isinstance(two, errors.UniqueViolation)
    assert sorted(groups) == [[1], [1, 2, 3], [2], [3]]


@pytest.mark.parametrize(
    "outage", [psycopg.OperationalError("gone"), errors.AdminShutdown(), OSError(), errors.DiskFull()]
)
def test_an_outage_is_told_to_all_at_once(outage: Exception) -> None:
    async def work(values: list[int]) -> list[int]:
        raise outage

    calls, groups = grouped(work)

    async def play() -> list[int | BaseException]:
        return await asyncio.gather(*map(calls.call, (1, 2)), return_exceptions=True)

    assert asyncio.run(play()) == [outage, outage]
    assert groups == [[1, 2]]


def test_a_deadlock_is_no_outage() -> None:
    """One of the calls has caused it: alone, each succeeds."""

    async def work(values: list[int]) -> list[int]:
        if len(values) > 1:
            raise errors.DeadlockDetected("each waits for the other")
        return values

    calls, _ = grouped(work)

    async def play() -> list[int]:
        return await asyncio.gather(*map(calls.call, (1, 2)))

    assert asyncio.run(play()) == [1, 2]


def test_a_caller_that_leaves_takes_only_its_own_call_along() -> None:
    calls, groups = grouped(doubled)

    async def play() -> int:
        left, stays = (asyncio.ensure_future(calls.call(value)) for value in (1, 2))
        await asyncio.sleep(0)
        left.cancel()
        assert await stays == 4
        with pytest.raises(asyncio.CancelledError):
            await left
        return await calls.call(3)

    assert asyncio.run(play()) == 6
    assert groups[-1] == [3]


def test_each_loop_has_calls_of_its_own() -> None:
    calls, _ = grouped(doubled)
    assert [asyncio.run(calls.call(value)) for value in (1, 2)] == [2, 4]


def test_calls_that_wait_are_cancelled_with_those_who_answer_them() -> None:
    """A server that stops cancels all tasks, and some of them still call."""

    async def play() -> int:
        under_way = asyncio.Event()

        async def work(values: list[int]) -> list[int]:
            if values == [1]:
                under_way.set()
                await asyncio.Event().wait()
            return values

        calls, _ = grouped(work)
        both = [asyncio.ensure_future(calls.call(1))]
        await under_way.wait()
        both.append(asyncio.ensure_future(calls.call(2)))
        await asyncio.sleep(0)
        for task in asyncio.all_tasks() - {asyncio.current_task(), *both}:
            task.cancel()
        done, _ = await asyncio.wait(both, timeout=1)
        assert [task.cancelled() for task in done] == [True, True]
        return await asyncio.wait_for(calls.call(3), timeout=1)

    assert asyncio.run(play()) == 3
