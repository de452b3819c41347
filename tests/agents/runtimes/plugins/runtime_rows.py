"""Runtimes as rows: a process behind one, its status, and how one is forgotten."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from agents.models import PluginRuntime
from agents.runtimes.plugins import connection
from benchmarks.ports import free_port
from tests.agents.runtimes.plugins.runs import call_on_loop
from tests.conftest import Server
from tests.support.fakes.mcp_host import wait_until

FAKE = Path(__file__).with_name("fake_v1.py")


def forget(server: Server, row: PluginRuntime) -> None:
    """Delete the row and wait for its connection to go: a runtime may be connected anew meanwhile."""
    number = row.pk
    PluginRuntime.objects.filter(pk=number).delete()
    wait_until(
        lambda: all(link.runtime.id != number for link in call_on_loop(server, connection.links)), 30
    )


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
