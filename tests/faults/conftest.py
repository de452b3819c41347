"""One stack for all fault tests of a session, mended before each; a table of scores at the end."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from tests.faults import stack as stacks
from tests.faults.stack import Stack
from tests.faults.tally import Tally

_TALLY = pytest.StashKey[Tally]()


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_TALLY] = Tally()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    scores = config.stash.get(_TALLY, Tally())
    if scores.scores:
        terminalreporter.section("faults (full)" if stacks.FULL else "faults (bounded)")
        for line in scores.table():
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def running_stack() -> Iterator[Stack]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: without it there is no one-host shape to break")
    with stacks.running() as stack:
        yield stack


@pytest.fixture
def stack(running_stack: Stack) -> Stack:
    """The stack, whole; what a test leaves broken is mended before the next one."""
    running_stack.mend()
    return running_stack


@pytest.fixture
def tally(request: pytest.FixtureRequest) -> Tally:
    return request.config.stash.setdefault(_TALLY, Tally())
