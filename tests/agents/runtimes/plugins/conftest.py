"""Runtimes for tests: each is a process and a row, and both are gone afterwards."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from agents.models import PluginRuntime
from config.process import reconnecting
from tests.agents.runtimes.plugins.runtime_rows import forget
from tests.conftest import Server


@pytest.fixture(scope="module", autouse=True)
def rows_looked_at_often() -> Iterator[None]:
    """Rows come and go with each test: a worker that looks once a second would make all of them wait."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reconnecting, "_LOOK_S", 0.1)
        yield


@pytest.fixture(scope="module")
def enter_runtime(server: Server) -> Iterator[Callable[..., PluginRuntime]]:
    """Enter runtimes as staff do."""
    made: list[PluginRuntime] = []

    def enter(**given: Any) -> PluginRuntime:
        row = PluginRuntime.objects.create(**({"name": f"r-{uuid4().hex[:8]}"} | given))
        made.append(row)
        return row

    yield enter
    for row in made:
        forget(server, row)


@pytest.fixture
def commands_allowed(settings: Any) -> None:
    """Let staff enter this Python as a program."""
    settings.RUNNER_COMMANDS = [f"{sys.executable} *"]
