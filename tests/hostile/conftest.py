"""The server that is attacked: one for the session, started as `make up` starts it, ended by its pid."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from benchmarks.ports import free_port
from benchmarks.stack import Parts, fresh_database
from tests.hostile import mcp, providers, runs, runtimes
from tests.hostile.bodies import WIRES
from tests.hostile.gate import Gate, wait
from tests.hostile.loopback import Loopback
from tests.schema_true.recording import records
from tests.support.database import start_postgres

_DATABASE_POOL_SIZE = 8
_ENVIRONMENT = {
    "DATABASE_POOL_SIZE": str(_DATABASE_POOL_SIZE),
    "REDIS_URL": "",
    "HOST": "127.0.0.1",
    "DEMO_TOKEN_S": "0",
    "DRAIN_S": "1",
    "RUN_ANSWER_KB": "2048",
    "RUN_LOG_KB": "16384",
    "TOOL_STEPS": "4",
    "LOG_LEVEL": "WARNING",
    "MCP_CONNECT_S": "2",
    "PLUGIN_CONNECT_S": "2",
    "PLUGIN_WAIT_S": "2",
    "PROVIDER_CONNECT_S": "1",
    "PROVIDER_FIRST_TOKEN_S": "60",  # no starved machine reaches them; see `impatient`
    "PROVIDER_IDLE_S": "60",
}


@pytest.fixture(scope="session")
def database() -> None:
    """None of the session's is needed: the server that is attacked has its own."""


@pytest.fixture(scope="session")
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="parley-hostile-"))
    yield made
    shutil.rmtree(made, ignore_errors=True)


@pytest.fixture(scope="session")
def gate(folder: Path, attackers: dict[str, object]) -> Iterator[Gate]:
    with served(folder, attackers) as made:
        yield made


@pytest.fixture
def impatient(tmp_path: Path, attackers: dict[str, object]) -> Iterator[Gate]:
    """A server of its own that gives a silent provider up soon."""
    soon = {"PROVIDER_FIRST_TOKEN_S": "3", "PROVIDER_IDLE_S": "3"}
    with served(tmp_path, attackers, **soon) as made:
        made.settle()
        yield made


@contextmanager
def served(folder: Path, attackers: dict[str, object], **more: str) -> Iterator[Gate]:
    """A server of its own with `more` in its environment, and a database that is dropped with it."""
    start_postgres()
    port, env = free_port(), _ENVIRONMENT | {"VAR_DIR": str(folder / "var")} | more
    with ExitStack() as opened:
        database_url = fresh_database(os.environ["DATABASE_URL"], opened)
        env |= {"DATABASE_URL": database_url, "PORT": str(port)}
        parts = opened.enter_context(Parts(folder))
        up = parts.start("up", sys.executable, "manage.py", "up", env=env)
        parts.wait("up", lambda: _answers(port))
        rows = json.dumps(attackers)
        token = parts.finish("prepare", sys.executable, "-m", "tests.hostile.prepare", rows, env=env)
        records.servers.add(f"127.0.0.1:{port}")
        made = Gate(port, token, up.pid, database_url, folder / "up.log")
        opened.callback(made.close)
        yield made


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=2) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.fixture(scope="session")
def attackers() -> Iterator[dict[str, object]]:
    """The misbehaving ones that the server is told of; see `tests.hostile.prepare`."""
    with ExitStack() as opened:
        yield started(opened)


def started(opened: ExitStack) -> dict[str, object]:
    """Start providers, MCP servers and plugin runtimes; what `tests.hostile.prepare` needs of them."""
    provider = opened.enter_context(Loopback(providers.answer))
    server = opened.enter_context(Loopback(mcp.answer))
    runtime = opened.enter_context(runtimes.Runtimes())
    return {
        "base_url": f"http://127.0.0.1:{provider.port}",
        "models": providers.models(),
        "mcp": mcp.servers(server.port),
        "runtimes": runtime.urls,
    }


@pytest.fixture(scope="session")
def warm(gate: Gate) -> Gate:
    """The server once it has met the largest of everything: what it keeps for that, it keeps once."""
    for _ in range(3):
        for wire in WIRES.values():
            for body in (wire.valid(), wire.valid() | {"state": "x" * 300_000}):
                gate.http.post(wire.path, content=json.dumps(body))
    for _ in range(2):
        # Each connection to the database keeps room for the longest that it carried, and the one that
        # came back last is used first: only several runs at once use several.
        started = [runs.start(gate, "chat-never_stops_talking") for _ in range(_DATABASE_POOL_SIZE)]
        gate.wait_for_ends()
        for run in started:
            runs.said(gate, run)
    largest = "a-document-of-too-many-values"
    with gate.switched_on("agents_pluginruntime", "name", largest):
        assert wait(lambda: runtimes.asked.get(largest, 0) > 1, 20)
    gate.settle()
    return gate
