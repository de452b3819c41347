"""Web, worker and beat through PgBouncer in transaction mode, with the file of `deploy/`."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
import pytest
from psycopg.conninfo import conninfo_to_dict

from benchmarks import stack
from benchmarks.ports import free_port
from tests.support.client import Client, Seen
from tests.support.database import server_url, start_postgres
from tests.support.pooler import PgBouncer, missing

pytestmark = [
    pytest.mark.timeout(180),
    pytest.mark.skipif(bool(missing()), reason=missing()),
    pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed"),
]

RUNS: Final = 6
AWAY_S: Final = 2.0
SIGNS: Final = ("prepared statement", "Traceback", "UnusablePooler")


@dataclass(frozen=True)
class Parley:
    """The processes, and what is between them and PostgreSQL."""

    parts: stack.Parts
    pooler: PgBouncer
    client: Client

    def start(self, tokens: int, delay_ms: int) -> str:
        return str(self.client.start(f"tokens={tokens} delay_ms={delay_ms}", model="bench")["run_id"])


@pytest.fixture(scope="module")
def parley() -> Iterator[Parley]:
    start_postgres()
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-poolers-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        folder.chmod(0o711)  # the user of PgBouncer passes through
        database = stack.fresh_database(server_url(), opened)
        parts = opened.enter_context(stack.Parts(folder))
        pooler = PgBouncer(folder / "pooler", database)
        opened.callback(pooler.kill)
        pooler.start()
        model, port = free_port(), free_port()
        parts.start("model", stack.PYTHON, "-m", "benchmarks.fake_model", "--port", str(model))
        redis, _ = stack.private_redis(parts)
        env = stack.environment(parts, port, "uvicorn") | {
            "DATABASE_URL": pooler.url(str(conninfo_to_dict(database)["dbname"])),
            "DIRECT_DATABASE_URL": database,
            "REDIS_URL": redis,
            "CELERY_BROKER_URL": "",
            "LOG_LEVEL": "INFO",
        }
        parts.finish("migrate", stack.PYTHON, "manage.py", "migrate", "--no-input", env=env)
        for name in ("web", "worker", "beat"):
            parts.start(name, stack.PYTHON, "manage.py", name, env=env)
        base = f"http://127.0.0.1:{model}/v1"
        token = parts.finish("prepare", stack.PYTHON, "-m", "benchmarks.prepare", base, env=env)
        url = f"http://127.0.0.1:{port}"
        parts.wait("web", lambda: answers(url))
        parts.wait("worker", lambda: "worker ready" in parts.tail("worker"))
        client = Client(url, token, None)
        opened.callback(client.close)
        yield Parley(parts, pooler, client)


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/ready", timeout=5, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def ids(frames: list[Seen]) -> list[int]:
    return [frame.id for frame in frames if frame.id is not None]


def test_each_process_says_what_is_between(parley: Parley) -> None:
    for name in ("web", "worker"):
        assert '"mode": "transaction"' in parley.parts.tail(name)


def test_a_run_is_executed_streamed_and_resumed(parley: Parley) -> None:
    run_id = parley.start(40, 5)
    begun = parley.client.watch(run_id, stop_after=12)
    rest = parley.client.watch(run_id, after=max(ids(begun)))
    assert ids(begun) + ids(rest) == ids(parley.client.watch(run_id))
    assert parley.client.run(run_id)["status"] == "completed"


def test_a_run_is_cancelled_within_two_seconds(parley: Parley) -> None:
    run_id = parley.start(1_000, 50)
    parley.client.watch(run_id, stop_after=5)
    since = time.monotonic()
    parley.client.http.post(f"/api/v1/agent/runs/{run_id}/cancel", json={})
    assert parley.client.wait_for(run_id, "cancelled", "failed")["status"] == "cancelled"
    assert time.monotonic() - since < 2


def test_runs_outlive_a_pooler_that_is_killed_and_comes_back(parley: Parley) -> None:
    """Their worker has its leases for longer, and writes on when the pooler is back."""
    runs = [parley.start(120, 40) for _ in range(RUNS)]
    with ThreadPoolExecutor(RUNS) as pool:
        reading = [pool.submit(to_the_end, parley, run_id) for run_id in runs]
        for run_id in runs:
            parley.client.wait_for(run_id, "running")
        threading.Event().wait(1)
        parley.pooler.kill()
        threading.Event().wait(AWAY_S)
        parley.pooler.start()
        seen = [one.result(60) for one in reading]
    for run_id, frames in zip(runs, seen, strict=True):
        detail = parley.client.wait_for(run_id, "completed", "failed")
        assert (detail["status"], detail["attempt"]) == ("completed", 1)
        assert frames == ids(parley.client.watch(run_id))


def test_nothing_has_gone_wrong_but_what_the_outage_broke(parley: Parley) -> None:
    """A statement that meets a stranger's session says so in the log."""
    for name in ("web", "worker", "beat"):
        log = parley.parts.tail(name, 100_000)
        assert not [
            word for word in ("prepared statement", "Traceback", "UnusablePooler") if word in log
        ]


def to_the_end(parley: Parley, run_id: str) -> list[int]:
    """The ids that a reader got who comes back when it is cut off."""
    found: list[int] = []
    client = Client(parley.client.url, parley.client.token, None)
    try:
        for _ in range(50):
            try:
                found += ids(client.watch(run_id, after=max(found, default=0)))
                return found
            except (httpx.TransportError, AssertionError):
                time.sleep(0.2)
    finally:
        client.close()
    raise AssertionError(f"the run was never read to its end: {found[-3:]}")
