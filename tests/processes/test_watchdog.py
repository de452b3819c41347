"""What holds an event loop is named, whatever it is, and a process that was stopped blames nobody."""

from __future__ import annotations

import asyncio
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
import structlog
import uvloop
from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from config.http.middleware import RequestId
from config.process import server, watchdog
from config.process.bootstrap import bind
from config.process.watchdog import Hold, Sample

HERE = __name__
CANARY = "cAnArY-of-a-local-variable"


def sleep() -> None:
    time.sleep(1.5)  # most of which the watchdog's thread sees, however late it gets its turn


def compute() -> None:
    until = time.monotonic() + 0.6
    while time.monotonic() < until:
        pass


def match() -> None:
    """Search with a regular expression for longer than HELD_S; it keeps the interpreter's lock.

    Measured in time of the processor, as the timer is: on a busy machine the clock runs ahead of it.
    """
    for length in range(16, 40):
        since = time.thread_time()
        re.compile("(a|a)*$").match("a" * length + "b")
        if time.thread_time() - since > 2 * watchdog.HELD_S:
            return


class Noted:
    """A listener that keeps what it hears, and where."""

    def __init__(self) -> None:
        self.holds: list[tuple[UUID | None, float, int]] = []

    def froze(self, run_id: UUID | None, seconds: float) -> None:
        self.holds.append((run_id, seconds, threading.get_ident()))


async def run_of(run_id: UUID, block: Callable[[], None]) -> None:
    structlog.contextvars.bind_contextvars(run_id=run_id.hex, request_id="r1")
    local = CANARY

    async def part() -> None:
        block()

    await asyncio.create_task(part())  # what a run starts is part of it
    assert local


def watched(
    block: Callable[[], None], listener: Noted, *, factory: Any = uvloop.new_event_loop
) -> list[Any]:
    """The lines of a loop that a run holds."""

    async def main() -> None:
        with watchdog.watch(listener), watchdog.watch():
            await asyncio.sleep(0.1)
            await asyncio.create_task(run_of(RUN, block))
            await asyncio.sleep(0.1)

    with capture_logs() as lines, asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main())
    return [line for line in lines if line.get("run_id") == RUN.hex or "error" in line]


def named(block: Callable[[], None], listener: Noted, *, factory: Any = uvloop.new_event_loop) -> Any:
    """The one line at the end of the hold; while it lasts a slow machine may add others."""
    lines = watched(block, listener, factory=factory)
    (line,) = (line for line in lines if line["event"] != "loop is held")
    return line


RUN = uuid4()


def test_a_hold_that_is_excused_is_not_reported_and_the_next_one_is() -> None:
    def settle() -> None:
        with watchdog.exclude_block():
            sleep()

    def settle_and_go_on() -> None:
        settle()
        compute()

    assert watched(settle, Noted()) == []
    assert len(watched(settle_and_go_on, Noted())) == 1


@pytest.mark.parametrize("factory", [uvloop.new_event_loop, asyncio.new_event_loop])
@pytest.mark.parametrize("block", [sleep, compute, match])
def test_what_holds_a_loop_is_named(block: Callable[[], None], factory: Any) -> None:
    noted, before = Noted(), watchdog.totals.times
    line = named(block, noted, factory=factory)
    assert (line["event"], line["request_id"]) == ("loop held", "r1")
    assert line["innermost"].startswith(f"{HERE}:{block.__name__}:")
    assert line["coroutine"] == "run_of.<locals>.part"
    assert line["frame"] == ""  # none of ours: this is a test
    assert line["seconds"] >= watchdog.HELD_S
    assert CANARY not in str(line)
    assert [run_id for run_id, _, _ in noted.holds if run_id] == [RUN]
    assert {thread for _, _, thread in noted.holds} == {threading.get_ident()}
    assert watchdog.totals.times >= before + len(noted.holds)
    assert watchdog.totals.longest >= line["seconds"] - 0.001


def test_code_that_keeps_the_interpreters_lock_is_named_where_the_thread_comes_too_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watchdog.Watchdog, "_observe", lambda *_: time.sleep(0.01))
    noted = Noted()
    line = named(match, noted)
    assert line["innermost"].startswith(f"{HERE}:match:")
    assert [run_id for run_id, _, _ in noted.holds if run_id] == [RUN]


def test_a_loop_beside_the_main_thread_is_watched_too() -> None:
    with ThreadPoolExecutor(1) as pool:
        line = pool.submit(named, sleep, Noted()).result()
    assert line["innermost"].startswith(f"{HERE}:sleep:")


def test_our_code_on_the_way_to_what_holds_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from config.process import memory

    monkeypatch.setattr("gc.collect", sleep)
    monkeypatch.setattr("gc.freeze", lambda: None)
    monkeypatch.setattr("gc.set_threshold", lambda *_: None)
    line = named(memory.freeze_heap, Noted())
    assert line["frame"].startswith("config.process.memory:freeze_heap:")
    assert line["innermost"].startswith(f"{HERE}:sleep:")


def test_a_run_that_does_not_hold_its_loop_is_not_named() -> None:
    noted = Noted()
    assert watched(lambda: None, noted) == []
    assert RUN not in {run_id for run_id, _, _ in noted.holds}


def test_a_loop_that_is_still_held_is_reported_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchdog, "_REPORT_EVERY_S", 0.35)
    lines = watched(sleep, Noted())
    *meanwhile, last = (line["event"] for line in lines)
    assert {*meanwhile} == {"loop is held"}
    assert last == "loop held"


def test_nothing_is_left_of_a_watchdog_that_nobody_needs_any_more() -> None:
    before = {*threading.enumerate()}
    watched(lambda: None, Noted())
    left = {*threading.enumerate()} - before
    assert not [thread for thread in left if thread.name == "watchdog"]
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


STOPPED = """
import asyncio, os, signal, subprocess, sys
from config import logs
from config.process import watchdog
logs.configure({"level": "INFO", "format": "json"})

class Blamed:
    def froze(self, run_id, seconds):
        print(run_id, seconds > 1)

async def main():
    with watchdog.watch(Blamed()):
        await asyncio.sleep(0.1)
        subprocess.Popen(["/bin/sh", "-c", f"sleep 2; kill -CONT {os.getpid()}"])
        os.kill(os.getpid(), signal.SIGSTOP)
        await asyncio.sleep(0.2)

asyncio.run(main())
"""


def test_a_process_that_was_stopped_blames_no_run() -> None:
    done = subprocess.run(
        [sys.executable, "-c", STOPPED], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == "None True\n"
    assert '"process stood still"' in done.stderr
    assert '"loop held"' not in done.stderr


@contextmanager
def served(application: Any) -> Iterator[str]:
    """The address of a web process's server on a loop of its own."""
    listener = bind("127.0.0.1", 0)
    loop, stop = uvloop.new_event_loop(), asyncio.Event()
    serving = server.serve(application, listener=listener, server="uvicorn", stop=stop)
    thread = threading.Thread(target=loop.run_until_complete, args=(serving,))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    loop.call_soon_threadsafe(stop.set)
    thread.join(30)
    loop.close()


async def _blocking(_scope: Any, _receive: Any, send: Any) -> None:
    sleep()
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


def test_a_web_process_names_the_request_that_held_it() -> None:
    with capture_logs() as lines, served(RequestId(_blocking)) as url:
        answer = httpx.get(f"{url}/{CANARY}", headers={"X-Request-Id": "of-this-test"}, trust_env=False)
    assert answer.status_code == 204
    (line,) = (line for line in lines if line.get("request_id") == "of-this-test")
    assert line["event"] == "loop held"
    assert line["frame"].startswith("config.http.middleware:RequestId")
    assert line["innermost"].startswith(f"{HERE}:sleep:")
    assert CANARY not in str(line)


def sample(task: int) -> Sample:
    return Sample("", "", "run", (("run_id", UUID(int=task).hex),))


@given(st.lists(st.integers(0, 3), max_size=12))
def test_only_the_run_that_was_seen_most_of_the_time_is_to_blame(tasks: list[int]) -> None:
    hold = Hold(0.5, 0.5, 0.0, tuple(map(sample, tasks)))
    most = [UUID(int=task) for task in {*tasks} if tasks.count(task) * 2 > len(tasks)]
    assert hold.run_id == (most[0] if most else None)
