"""Which POSTs are let in: a burst is, more on top of a crawl are not."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from config.errors import Unavailable
from config.http import admission as module
from config.http.admission import CRAWL_S, CRAWLING, CROWD, Posts

RUNS = "/api/v1/agent/runs"


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [100.0]
    monkeypatch.setattr(module, "monotonic", lambda: clock[0])
    return clock


def test_a_burst_is_let_in_as_a_whole(now: list[float], settings: Any) -> None:
    with ExitStack() as burst:
        posts = Posts()
        for _ in range(settings.POSTS_AT_ONCE):
            burst.enter_context(posts.admitted("POST", RUNS))
        with pytest.raises(Unavailable) as refusal, posts.admitted("POST", RUNS):
            pass
    assert (refusal.value.error_code, refusal.value.retry_after) == ("overloaded", 1)


def test_while_many_wait_for_long_no_more_are_let_in(now: list[float]) -> None:
    with ExitStack() as waiting:
        posts = Posts()
        leaves = [waiting.enter_context(posts.admitted("POST", RUNS)) for _ in range(CRAWLING)]
        now[0] += CRAWL_S + 0.01
        with pytest.raises(Unavailable), posts.admitted("POST", RUNS):
            pass
        with posts.admitted("GET", RUNS):
            pass
        leaves[0]()
        with posts.admitted("POST", RUNS):
            pass


def test_a_few_slow_ones_keep_nobody_out(now: list[float]) -> None:
    with ExitStack() as waiting:
        posts = Posts()
        for _ in range(CRAWLING - 1):
            waiting.enter_context(posts.admitted("POST", RUNS))
        now[0] += 60
        for _ in range(100):
            waiting.enter_context(posts.admitted("POST", RUNS))


def test_what_has_been_answered_holds_no_place(now: list[float], settings: Any) -> None:
    settings.POSTS_AT_ONCE = 1
    posts = Posts()
    with posts.admitted("POST", RUNS) as leave:
        leave()  # its stream goes on
        with posts.admitted("POST", RUNS):
            pass
    with posts.admitted("POST", RUNS):
        pass


def test_a_full_queue_is_known_at_the_door_only_in_a_crowd_and_only_for_new_runs() -> None:
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
