"""A Redis of the tests' own, and limits that begin at nothing."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator

import pytest

from benchmarks.ports import free_port
from config import database
from config.coordination import redis_client as connection


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Redis of the test's own."""
    if shutil.which("redis-server") is None:
        pytest.skip("no redis-server")
    port, folder = free_port(), tmp_path_factory.mktemp("redis")
    command = [
        "redis-server",
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--dir",
        str(folder),
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        _wait_for(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(10)


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise AssertionError("redis-server does not answer")


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_away_until", 0.0)


@pytest.fixture
def patient(fresh: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Redis is waited for, as long as it may take: how soon it is given up is tested beside this."""
    monkeypatch.setattr(connection, "PATIENCE_S", 30.0)
    database.run_sync(connection.close())  # clients keep the patience with which they were made
    yield
    database.run_sync(connection.close())
