"""The server that is attacked: one for the session, started as `make up` starts it, ended by its pid."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.stack import Parts, free_port, fresh_database
from tests.database import start_postgres
from tests.hostile.gate import Gate

_ENVIRONMENT = {
    "REDIS_URL": "",
    "HOST": "127.0.0.1",
    "DEMO_TOKEN_S": "0",
    "DRAIN_S": "1",
    "LOG_LEVEL": "WARNING",
    "MCP_CONNECT_S": "2",
    "PROVIDER_FIRST_TOKEN_S": "3",
    "PROVIDER_IDLE_S": "3",
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
    start_postgres()
    port, env = free_port(), _ENVIRONMENT | {"VAR_DIR": str(folder / "var")}
    with ExitStack() as opened:
        database_url = fresh_database(os.environ["DATABASE_URL"], opened)
        env |= {"DATABASE_URL": database_url, "PORT": str(port)}
        parts = opened.enter_context(Parts(folder))
        up = parts.start("up", sys.executable, "manage.py", "up", env=env)
        parts.wait("up", lambda: _answers(port))
        rows = json.dumps(attackers)
        token = parts.finish("prepare", sys.executable, "-m", "tests.hostile.prepare", rows, env=env)
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
def attackers() -> dict[str, object]:
    return {"base_url": "http://127.0.0.1:9/v1", "models": [], "mcp": {}, "runtimes": {}}
