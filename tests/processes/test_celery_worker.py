"""A bare `celery worker` executes runs: woken by the broker, drained when Celery is told to stop."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from benchmarks.ports import free_port
from benchmarks.stack import PYTHON, Parts, fresh_database, healthy_at, private_redis
from tests.schema_true.recording import records
from tests.support.client import Client, reply
from tests.support.database import start_postgres

pytestmark = pytest.mark.timeout(180)

WORKER: Final = (PYTHON, "-m", "celery", "-A", "config", "worker", "--loglevel", "INFO")
POOLS: Final = {"solo": (), "threads": ("--concurrency", "1"), "prefork": ("--concurrency", "1")}


@dataclass
class Place:
    """A web process, its database and broker, and no worker yet."""

    parts: Parts
    client: Client
    env: dict[str, str]


@pytest.fixture(scope="session")
def database() -> None:
    """None of the session's is needed: these processes have their own."""


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    if shutil.which("redis-server") is None:
        pytest.skip("redis-server is not installed: there is no broker")
    start_postgres()
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-celery-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        parts = opened.enter_context(Parts(folder))
        model_port = free_port()
        parts.start("model", PYTHON, "-m", "benchmarks.fake_model", "--port", str(model_port))
        redis_url, _ = private_redis(parts)
        url, port = fresh_database(os.environ["DATABASE_URL"], opened), free_port()
        env = {"DATABASE_URL": url, "REDIS_URL": redis_url, "CELERY_BROKER_URL": redis_url}
        env |= {"PORT": str(port), "HOST": "127.0.0.1", "VAR_DIR": str(folder), "COORDINATION": ""}
        env |= {"DJANGO_SETTINGS_MODULE": "config.settings", "LOG_LEVEL": "INFO", "DRAIN_S": "20"}
        parts.finish("migrate", PYTHON, "manage.py", "migrate", "--no-input", env=env)
        model = f"http://127.0.0.1:{model_port}/v1"
        token = parts.finish("prepare", PYTHON, "-m", "tests.faults.prepare", model, model, env=env)
        parts.start("web", PYTHON, "manage.py", "web", env=env)
        parts.wait("web", lambda: healthy_at(port))
        records.servers.add(f"127.0.0.1:{port}")
        client = Client(f"http://127.0.0.1:{port}", token, None)
        opened.callback(client.close)
        yield Place(parts, client, env)


@pytest.mark.parametrize("pool", POOLS)
def test_a_bare_celery_worker_executes_runs_and_is_drained(place: Place, pool: str) -> None:
    name = f"celery-{pool}"
    celery = place.parts.start(name, *WORKER, "--pool", pool, *POOLS[pool], env=place.env)
    place.parts.wait(name, lambda: " ready." in place.parts.tail(name, 1_000))
    first = place.client.start("tokens=3 delay_ms=0", model="bench")["run_id"]
    assert reply(place.client.watch(first)) == "t0 t1 t2 "
    second = place.client.start("tokens=30 delay_ms=100", model="bench")["run_id"]
    place.client.wait_for(second, "running")
    celery.send_signal(signal.SIGTERM)
    assert reply(place.client.watch(second)) == "".join(f"t{number} " for number in range(30))
    assert celery.wait(30) == 0
    assert "draining" in place.parts.tail(name, 1_000)
