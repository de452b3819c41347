"""Which POSTs are let in: a burst is, more on top of a crowd that stays are not."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any

import pytest

from config.errors import Unavailable
from config.http import admission as module
from config.http import asgi_handlers, floods
from config.http.admission import (
    AT_WORK,
    CALM_S,
    CRAWL_S,
    CRAWLING,
    CROWD,
    FEWEST,
    SLOW_S,
    TURN_S,
    Pace,
    Place,
    Posts,
)
from config.http.asgi_handlers import HotHandler, Split
from config.http.floods import Floods

RUNS = "/api/v1/agent/runs"


def on_a_loop(play: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(play)
    def test(**fixtures: Any) -> None:
        asyncio.run(play(**fixtures))

    return test


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    return clock


@on_a_loop
async def test_a_burst_is_let_in_as_a_whole(now: list[float], settings: Any) -> None:
    with ExitStack() as burst:
        posts = Posts()
        for _ in range(settings.POSTS_AT_ONCE):
            burst.enter_context(posts.admitted("POST", RUNS))
        with pytest.raises(Unavailable) as refusal, posts.admitted("POST", RUNS):
            pass
    assert (refusal.value.error_code, refusal.value.retry_after) == ("overloaded", 1)


@on_a_loop
async def test_while_many_wait_for_long_no_more_are_let_in(now: list[float]) -> None:
    with ExitStack() as waiting:
        posts = Posts()
        places = [waiting.enter_context(posts.admitted("POST", RUNS)) for _ in range(CRAWLING)]
        now[0] += CRAWL_S + 0.01
        with pytest.raises(Unavailable), posts.admitted("POST", RUNS):
            pass
        with posts.admitted("GET", RUNS):
            pass
        for place in places[: CRAWLING - FEWEST + 1]:
            place.leave()
        with posts.admitted("POST", RUNS):
            pass


@on_a_loop
async def test_a_crowd_that_is_slow_for_long_is_told_though_each_waits_for_less(
    now: list[float],
) -> None:
    posts = Posts()
    assert let_in(posts, now, seconds=SLOW_S - 0.05, rounds=100) == 100
    assert let_in(posts, now, seconds=2 * SLOW_S, rounds=100) == 1 + CRAWL_S // (2 * SLOW_S)


@on_a_loop
async def test_bursts_with_some_time_between_them_are_let_in(now: list[float]) -> None:
    posts = Posts()
    for _ in range(10):
        assert let_in(posts, now, seconds=2 * SLOW_S, rounds=2) == 2
        with posts.admitted("POST", RUNS):  # alone
            now[0] += 0.1


def let_in(posts: Posts, now: list[float], *, seconds: float, rounds: int) -> int:
    """How many rounds of CRAWLING more are let in, each while the one before has waited for so long."""
    before = ExitStack()
    with ExitStack() as opened:
        for number in range(rounds):
            coming = opened.enter_context(ExitStack())
            try:
                for _ in range(CRAWLING):
                    coming.enter_context(posts.admitted("POST", RUNS))
            except Unavailable:
                before.close()
                return number
            before.close()
            now[0] += seconds
            before = coming
        before.close()
    return rounds


@on_a_loop
async def test_a_few_slow_ones_keep_nobody_out(now: list[float]) -> None:
    with ExitStack() as waiting:
        posts = Posts()
        for _ in range(CRAWLING - 1):
            waiting.enter_context(posts.admitted("POST", RUNS))
        now[0] += 60
        for _ in range(100):
            waiting.enter_context(posts.admitted("POST", RUNS))


@on_a_loop
async def test_what_has_been_answered_holds_no_place(now: list[float], settings: Any) -> None:
    settings.POSTS_AT_ONCE = 1
    posts = Posts()
    with posts.admitted("POST", RUNS) as place:
        place.leave()  # its stream goes on
        with posts.admitted("POST", RUNS):
            pass
    with posts.admitted("POST", RUNS):
        pass


@on_a_loop
async def test_of_a_burst_a_few_are_worked_on_at_once_and_the_next_in_their_order() -> None:
    posts, begun = Posts(), list[int]()

    async def post(number: int, places: list[Place]) -> None:
        with posts.admitted("POST", RUNS) as place:
            await place.turn()
            begun.append(number)
            places.append(place)
            await asyncio.Event().wait()

    places = list[Place]()
    burst = [asyncio.create_task(post(number, places)) for number in range(AT_WORK + 4)]
    await asyncio.sleep(0.01)
    assert begun == list(range(AT_WORK))
    places[0].leave()  # answered: its stream goes on
    places[0].leave()
    await asyncio.sleep(0.01)
    assert begun[AT_WORK:] == [AT_WORK]
    burst[AT_WORK + 1].cancel()  # its client went away while it waited
    burst[1].cancel()
    await asyncio.sleep(0.01)
    assert begun[AT_WORK:] == [AT_WORK, AT_WORK + 2]
    with posts.admitted("GET", RUNS) as place:
        await place.turn()
    with posts.admitted("POST", f"{RUNS}/abc/cancel") as place:
        await place.turn()
    for task in burst:
        task.cancel()
    await asyncio.wait(burst)
    assert len(begun) == AT_WORK + 2
    with posts.admitted("POST", RUNS) as place:
        await place.turn()


@on_a_loop
async def test_whoever_goes_when_its_turn_comes_passes_it_on() -> None:
    posts, begun = Posts(), list[int]()

    async def post(number: int) -> None:
        with posts.admitted("POST", RUNS) as place:
            await place.turn()
            begun.append(number)

    with ExitStack() as opened:
        at_work = [opened.enter_context(posts.admitted("POST", RUNS)) for _ in range(AT_WORK)]
        for place in at_work:
            await place.turn()
        waiting = [asyncio.create_task(post(number)) for number in range(2)]
        await asyncio.sleep(0)
        at_work[0].leave()
        waiting[0].cancel()
        await asyncio.wait(waiting)
    assert begun == [1]


@on_a_loop
async def test_slow_ones_hold_up_the_next_for_a_moment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TURN_WAIT_S", 0.05)
    posts = Posts()
    with ExitStack() as opened:
        slow = [opened.enter_context(posts.admitted("POST", RUNS)) for _ in range(AT_WORK + 1)]
        for place in slow:  # the last one waits for TURN_WAIT_S
            await place.turn()
        slow[0].leave()
        with posts.admitted("POST", RUNS) as place:  # still AT_WORK beside it
            await place.turn()
        for place in slow:
            place.leave()
    with ExitStack() as opened:
        for _ in range(AT_WORK):
            await asyncio.wait_for(opened.enter_context(posts.admitted("POST", RUNS)).turn(), 0.02)


@on_a_loop
async def test_a_full_queue_is_known_at_the_door_only_in_a_crowd_and_only_for_new_runs() -> None:
    asked: list[int] = []

    def full(coming: int) -> Unavailable:
        asked.append(coming)
        return Unavailable("Too many runs are waiting.", code="queue_full")

    posts = Posts(full)
    with ExitStack() as waiting:
        for _ in range(CROWD):
            waiting.enter_context(posts.admitted("POST", RUNS))
        assert asked == []
        with pytest.raises(Unavailable), posts.admitted("POST", RUNS):
            pass
        with posts.admitted("POST", f"{RUNS}/abc/cancel"):
            pass
    assert asked == [CROWD]


# --- after a crawl --------------------------------------------------------------------------------


async def turns(pace: Pace, now: list[float], *, waiting: int, count: int, seconds: float) -> None:
    """So many turns of the loop, each this long, while so many wait."""
    for _ in range(count):
        pace.notice(waiting, crawls=False)
        now[0] += seconds
        await asyncio.sleep(0)


@on_a_loop
async def test_a_crowd_that_does_not_crawl_may_make_turns_long(now: list[float], settings: Any) -> None:
    pace = Pace()
    await turns(pace, now, waiting=200, count=100, seconds=10 * TURN_S)
    assert pace.most == settings.POSTS_AT_ONCE


@on_a_loop
async def test_after_a_crawl_as_many_are_let_in_as_keep_turns_short(
    now: list[float], settings: Any
) -> None:
    pace = Pace()
    pace.notice(200, crawls=True)
    assert pace.most == FEWEST
    await turns(pace, now, waiting=FEWEST, count=51, seconds=TURN_S / 2)
    assert FEWEST + 50 <= pace.most <= FEWEST + 51
    await turns(pace, now, waiting=FEWEST + 50, count=3, seconds=2 * TURN_S)
    assert FEWEST < pace.most < FEWEST + 50
    await turns(pace, now, waiting=FEWEST, count=100, seconds=2 * TURN_S)
    assert pace.most == FEWEST
    await turns(pace, now, waiting=FEWEST, count=10_000, seconds=TURN_S / 2)
    assert pace.most == settings.POSTS_AT_ONCE


@on_a_loop
async def test_once_no_crowd_has_come_for_a_while_the_next_burst_is_let_in(
    now: list[float], settings: Any
) -> None:
    pace = Pace()
    pace.notice(200, crawls=True)
    await turns(pace, now, waiting=1, count=9, seconds=CALM_S / 10)
    await turns(pace, now, waiting=CROWD, count=1, seconds=CALM_S / 10)
    await turns(pace, now, waiting=1, count=9, seconds=CALM_S / 10)
    assert pace.most == FEWEST
    await turns(pace, now, waiting=1, count=3, seconds=CALM_S / 10)
    assert pace.most == settings.POSTS_AT_ONCE


@on_a_loop
async def test_who_is_turned_away_gets_the_error_and_the_id_of_the_request(settings: Any) -> None:
    settings.POSTS_AT_ONCE = 1
    door, posts = make_door()
    scope = {"method": "POST", "path": RUNS, "headers": [(b"x-request-id", b"mine")]}
    assert door.turn_away(scope) is None
    with posts.admitted("POST", RUNS):
        assert door.turn_away(scope | {"method": "GET"}) is None
        refused = door.turn_away(scope)
        replaced = door.turn_away(scope | {"headers": [(b"x-request-id", b"not one")]})
    assert refused is not None
    assert replaced is not None
    status, headers, body = refused
    assert (status, headers["Retry-After"], headers["x-request-id"]) == (503, "1", "mine")
    assert json.loads(body) == {
        "detail": "Too many requests at once.",
        "code": "overloaded",
        "request_id": "mine",
    }
    assert replaced[1]["x-request-id-replaced"] == "true"
    assert replaced[1]["x-request-id"] == json.loads(replaced[2])["request_id"] != "not one"


def make_door() -> tuple[Split, Posts]:
    posts, never = Posts(), Never()
    return Split(hot=HotHandler(posts), uploads=never, with_orm=never, pages=never), posts


class Never:
    """An application that is not asked."""

    async def __call__(self, *asgi: Any) -> None:
        raise AssertionError


@pytest.fixture
def told_to_wait(monkeypatch: pytest.MonkeyPatch) -> Floods:
    found = Floods()
    monkeypatch.setattr(asgi_handlers, "floods", found)
    return found


@pytest.mark.parametrize(("method", "path"), [("POST", RUNS), ("GET", f"{RUNS}/abc/events")])
def test_who_was_told_to_wait_is_told_so_at_the_door_for_a_second(
    told_to_wait: Floods, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    clock = [100.0]
    monkeypatch.setattr(floods, "monotonic", lambda: clock[0])
    door, _ = make_door()
    mine = (b"authorization", b"Bearer mine")
    scope = {"method": method, "path": path, "headers": [mine]}
    assert door.turn_away(scope) is None
    told_to_wait.note("Bearer mine", retry_after=7)
    refused = door.turn_away(scope)
    assert refused is not None
    status, headers, body = refused
    assert (status, headers["Retry-After"]) == (429, "7")
    assert json.loads(body)["code"] == "too_many_requests"
    assert door.turn_away(scope | {"headers": [(b"authorization", b"Bearer other")]}) is None
    assert door.turn_away(scope | {"headers": []}) is None
    assert door.turn_away(scope | {"headers": [mine, (b"origin", b"https://a.example")]}) is None
    for public in ("/health", "/admin/", "/api/v1/schemas/agent_run_sse_frame.schema.json"):
        assert door.turn_away(scope | {"path": public}) is None
    clock[0] += floods.REMEMBERED_S
    assert door.turn_away(scope) is None


def test_no_more_than_so_many_are_remembered(told_to_wait: Floods) -> None:
    told_to_wait.note(None, retry_after=1)
    for number in range(2_500):
        told_to_wait.note(f"Bearer {number}", retry_after=1)
    assert told_to_wait.refusal([(b"authorization", b"Bearer 2499")]) is not None
    assert told_to_wait.refusal([(b"authorization", b"Bearer 1")]) is None
