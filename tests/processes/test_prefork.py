"""`manage.py serve`: processes of one host that share a port, and are replaced when they die."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import psutil
import psycopg
import pytest

from benchmarks.ports import free_port
from benchmarks.stack import PYTHON, Parts, fresh_database, healthy_at
from config.process.prefork import Part, _Place
from tests.schema_true.recording import records
from tests.support.client import Client, reply
from tests.support.database import start_postgres

pytestmark = pytest.mark.timeout(180)
SOON_S: Final = 30
NAMES: Final = {"web-1", "web-2", "worker-1"}


@dataclass
class Serving:
    """A running `serve` with two web processes, of which it wrote who they are."""

    parts: Parts
    process: subprocess.Popen[bytes]
    client: Client
    port: int
    database_url: str

    def lines(self) -> list[dict[str, Any]]:
        found = self.parts.tail("serve", 1_000).splitlines()
        return [json.loads(line) for line in found if line.startswith("{")]

    def pids(self) -> dict[str, int]:
        """The newest process of each part."""
        lines = self.lines()
        return {one["part"]: one["part_pid"] for one in lines if one["event"] == "process started"}

    def kill(self, name: str) -> int:
        """Kill the process of a part, and wait until another has its place."""
        dead = self.pids()[name]
        os.kill(dead, signal.SIGKILL)
        wait_until(lambda: self.pids()[name] != dead)
        return dead


def wait_until(true: Callable[[], bool]) -> None:
    until = time.monotonic() + SOON_S
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.fixture(scope="session")
def database() -> None:
    """None of the session's is needed: these processes have their own."""


@pytest.fixture(scope="module")
def environment() -> Iterator[tuple[Parts, dict[str, str], str]]:
    """A migrated database of PostgreSQL alone, the settings that name it, and a client's token."""
    start_postgres()
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-prefork-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        parts = opened.enter_context(Parts(folder))
        url = fresh_database(os.environ["DATABASE_URL"], opened)
        env = {"DATABASE_URL": url, "HOST": "127.0.0.1", "VAR_DIR": str(folder), "LOG_LEVEL": "INFO"}
        env |= {"REDIS_URL": "", "CELERY_BROKER_URL": "", "COORDINATION": "", "DEMO_TOKEN_S": "0.01"}
        env |= {"DJANGO_SETTINGS_MODULE": "config.settings", "LOG_FORMAT": "json"}
        parts.finish("migrate", PYTHON, "manage.py", "migrate", "--no-input", env=env)
        nobody = "http://127.0.0.1:9/v1"
        prepare = (PYTHON, "-m", "tests.faults.prepare", nobody, nobody)
        yield parts, env, parts.finish("prepare", *prepare, env=env)


@pytest.fixture
def serving(environment: tuple[Parts, dict[str, str], str]) -> Iterator[Serving]:
    parts, env, token = environment
    port = free_port()
    records.servers.add(f"127.0.0.1:{port}")
    process = parts.start(
        "serve", PYTHON, "manage.py", "serve", "--web=2", env=env | {"PORT": str(port)}
    )
    client = Client(f"http://127.0.0.1:{port}", token, None)
    try:
        made = Serving(parts, process, client, port, env["DATABASE_URL"])
        parts.wait("serve", lambda: healthy_at(port))
        wait_until(lambda: sum(one["event"].endswith(" ready") for one in made.lines()) == len(NAMES))
        yield made
    finally:
        client.close()
        process.kill()
        process.wait(SOON_S)


def test_what_dies_is_replaced_and_every_web_process_answers_on_the_one_port(serving: Serving) -> None:
    first = serving.pids()
    assert first.keys() == NAMES
    dead = {serving.kill(name) for name in NAMES}
    assert dead == set(first.values())
    wait_until(lambda: healthy_at(serving.port))
    frames = serving.client.watch(serving.client.start("bench press")["run_id"])
    assert "“bench press”" in reply(frames)
    ended = [one for one in serving.lines() if one["event"] == "process ended, starting it again"]
    assert {(one["part"], one["exit_code"]) for one in ended} == {(name, -9) for name in NAMES}
    for name in ("web-1", "web-2"):
        stopped = serving.pids()[name]
        os.kill(stopped, signal.SIGSTOP)
        try:
            wait_until(lambda: healthy_at(serving.port))
        finally:
            os.kill(stopped, signal.SIGCONT)
    serving.process.terminate()
    assert serving.process.wait(SOON_S) == 0


def test_after_ctrl_c_a_live_run_is_finished_and_all_processes_end(serving: Serving) -> None:
    """A terminal sends SIGINT to the whole group; a child that had two would end at once."""
    run_id = serving.client.start("bench press")["run_id"]
    serving.client.wait_for(run_id, "running")
    pids = serving.pids().values()
    assert len({os.getpgid(pid) for pid in (*pids, serving.process.pid)}) == 4
    os.killpg(serving.process.pid, signal.SIGINT)
    assert serving.process.wait(SOON_S) == 0
    assert not any(psutil.pid_exists(pid) for pid in pids)
    assert not any(one["event"].startswith("process ended") for one in serving.lines())
    with psycopg.connect(serving.database_url) as database:
        row = database.execute(
            "SELECT status FROM conversations_run WHERE id = %s", (run_id,)
        ).fetchone()
    assert row == ("completed",)


def test_nobody_outlives_the_process_that_started_them(serving: Serving) -> None:
    pids = serving.pids().values()
    serving.process.kill()
    serving.process.wait(SOON_S)
    wait_until(lambda: not any(psutil.pid_exists(pid) for pid in pids))


def test_a_part_that_cannot_run_is_tried_less_and_less_often() -> None:
    place, pauses = _Place(Part("broken", lambda: sys.exit(3))), []
    for _ in range(3):
        place.start()
        place.end(replaced=True)
        pauses.append(place.pause)
    assert pauses == [0.2, 0.4, 0.8]
    assert place.due > time.monotonic()
    for _ in range(12):
        place.start()
        place.end(replaced=True)
    assert place.pause == 30
    place.start()
    place.since -= 60  # it has run for long
    place.end(replaced=True)
    assert place.pause == 0.1
    assert place.due <= time.monotonic()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--web=0"], "argument --web: 0 is not a number from 1 to 64"),
        (["--workers=many"], "argument --workers: many is not a number from 1 to 64"),
        (["--capacity=0"], "--capacity must be 1 or more."),
        (["--port=99999"], "argument --port: 99999 is not a number from 1 to 65535"),
    ],
)
def test_wrong_options_are_named(
    environment: tuple[Parts, dict[str, str], str], arguments: list[str], complaint: str
) -> None:
    _, env, _ = environment
    command = [PYTHON, "manage.py", "serve", *arguments]
    done = subprocess.run(command, env=os.environ | env, capture_output=True, text=True, timeout=60)
    assert done.returncode in {1, 2}
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
