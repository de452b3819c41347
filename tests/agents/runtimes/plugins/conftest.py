"""Runtimes for tests: each is a process and a row, and both are gone afterwards."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from agents.models import PluginRuntime
from agents.runtimes.plugins import pool
from config.process import reconnecting
from tests.agents.runtimes.plugins.runs import call_on_loop
from tests.conftest import Server
from tests.support.fakes.mcp_host import free_port, wait_until

FAKE = Path(__file__).with_name("fake_v1.py")


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


def forget(server: Server, row: PluginRuntime) -> None:
    """Delete the row and wait for its connection to go: a runtime may be connected anew meanwhile."""
    number = row.pk
    PluginRuntime.objects.filter(pk=number).delete()
    wait_until(lambda: all(link.runtime.id != number for link in call_on_loop(server, pool.links)), 30)


@pytest.fixture
def commands_allowed(settings: Any) -> None:
    """Let staff enter this Python as a program."""
    settings.RUNNER_COMMANDS = [f"{sys.executable} *"]


@contextmanager
def old_runtime_process(*more: str) -> Iterator[str]:
    """A runtime of the first generation; its address."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(FAKE), "ws", str(port), *more])
    try:
        wait_until(lambda: _listens(port), 30)
        yield f"ws://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait(10)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def wait_for_status(row: PluginRuntime, status: str, seconds: float = 20) -> PluginRuntime:
    """The row once its connection says so."""

    def reached() -> bool:
        row.refresh_from_db()
        return row.status == status

    wait_until(reached, seconds)
    return row
