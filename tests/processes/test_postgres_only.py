"""Web, worker and beat that have DATABASE_URL alone, and look for news by themselves once a minute.

So what they do within seconds they do because a notification came, or because a new connection made
them look.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest

from benchmarks.ports import free_port
from benchmarks.stack import PYTHON, Parts, fresh_database, healthy_at
from config.coordination.postgres_listener import NAME
from tests.schema_true.recording import records
from tests.support.client import Client, reply
from tests.support.database import start_postgres
from tests.support.fakes.fake_model import Answer, End, FakeModel, text

pytestmark = pytest.mark.timeout(180)

SOON_S: Final = 20  # of a busy machine; a third of what a look without a notification would take
PATIENT: Final = """
import sys
import django
django.setup()
from agents.worker import loop
from conversations.log import follow
loop._LOOK_S = follow._CALM_S = 60.0
from config.process.command_line import manage
manage(["manage.py", *sys.argv[1:]])
"""
LISTENERS: Final = "SELECT pid FROM pg_stat_activity WHERE application_name = %s AND datname = %s"
COUNTED: Final = "SELECT FROM conversations_metrics WHERE next_at > clock_timestamp()"


@dataclass
class Shape:
    """The processes, their database, and the model that runs ask."""

    parts: Parts
    port: int
    database: psycopg.Connection[Any]
    model: FakeModel
    client: Client
    env: dict[str, str]
    processes: dict[str, subprocess.Popen[bytes]]

    def listeners(self) -> set[int]:
        """The process ids of the sessions that listen."""
        return {pid for (pid,) in self.database.execute(LISTENERS, (NAME, self.database.info.dbname))}

    def start(self, name: str, *command: str) -> None:
        self.processes[name] = self.parts.start(name, PYTHON, *command, env=self.env)

    def start_patiently(self, name: str) -> None:
        """Start web or a worker that looks by itself only once a minute."""
        self.start(name, "-c", PATIENT, name)

    def end(self, *names: str) -> None:
        """Ask them to end, and see that they do so soon and cleanly."""
        ending = [self.processes.pop(name) for name in names]
        for process in ending:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(30) for process in ending] == [0] * len(ending)

    def says(self, name: str, words: str) -> bool:
        return words in self.parts.tail(name, 1_000)

    def worker_of(self, run_id: str) -> str:
        """The name of the process that executes the run, "" while none does."""
        row = self.database.execute("SELECT worker FROM conversations_run WHERE id = %s", (run_id,))
        pid = re.findall(r":(\d+):", (row.fetchone() or ("",))[0] or "")
        return next((name for name, one in self.processes.items() if pid == [str(one.pid)]), "")


@pytest.fixture(scope="session")
def database() -> None:
    """None of the session's is needed: these processes have their own."""


@pytest.fixture(scope="module")
def shape() -> Iterator[Shape]:
    start_postgres()
    with ExitStack() as opened:
        folder = Path(tempfile.mkdtemp(prefix="parley-postgres-only-"))
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        parts = opened.enter_context(Parts(folder))
        model = opened.enter_context(FakeModel())
        url, port = fresh_database(os.environ["DATABASE_URL"], opened), free_port()
        env = {"DATABASE_URL": url, "PORT": str(port), "HOST": "127.0.0.1", "VAR_DIR": str(folder)}
        env |= {"REDIS_URL": "", "CELERY_BROKER_URL": "", "COORDINATION": "", "LOG_LEVEL": "INFO"}
        env |= {"LEASE_S": "2", "DEMO_TOKEN_S": "0.002", "DJANGO_SETTINGS_MODULE": "config.settings"}
        parts.finish("migrate", PYTHON, "manage.py", "migrate", "--no-input", env=env)
        models = (model.base_url, model.base_url, "hang", "script:again", "script:killed")
        token = parts.finish("prepare", PYTHON, "-m", "tests.faults.prepare", *models, env=env)
        records.servers.add(f"127.0.0.1:{port}")
        client = Client(f"http://127.0.0.1:{port}", token, None)
        opened.callback(client.close)
        direct = opened.enter_context(psycopg.connect(url, autocommit=True))
        made = Shape(parts, port, direct, model, client, env, {})
        made.start("beat", "manage.py", "beat")
        wait_until(lambda: direct.execute(COUNTED).fetchone() is not None)  # nobody else does it yet
        for name in ("web", "worker"):
            made.start_patiently(name)
        parts.wait("web", lambda: healthy_at(port))
        parts.wait("worker", lambda: made.says("worker", "worker ready"))
        wait_until(lambda: len(made.listeners()) == 2)
        yield made
        made.end("beat", "worker", "web")
        wait_until(lambda: not made.listeners())


def wait_until(true: Callable[[], bool], *, seconds: float = SOON_S) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.02)


def _are_new(shape: Shape, cut: set[int]) -> bool:
    return len(shape.listeners() - cut) == 2


def test_a_run_is_woken_for_executed_and_streamed_by_notifications(shape: Shape) -> None:
    begun = time.monotonic()
    for number in range(5):
        frames = shape.client.watch(shape.client.start(f"bench press {number}")["run_id"])
        assert frames[-1].event == "completed"
        assert f"“bench press {number}”" in reply(frames)
        assert len([frame for frame in frames if frame.event == "content_delta"]) > 1
    assert time.monotonic() - begun < SOON_S


def test_a_run_is_cancelled_in_another_process(shape: Shape) -> None:
    run_id = shape.client.start(model="hang")["run_id"]
    shape.client.wait_for(run_id, "running")
    assert shape.client.http.post(f"/api/v1/agent/runs/{run_id}/cancel").status_code == 202
    frames = shape.client.watch(run_id)
    assert (frames[-1].event, frames[-1].data["code"]) == ("error", "cancelled")


def test_sessions_that_listen_are_cut_and_come_back(shape: Shape) -> None:
    """A run that is accepted while nobody listens is found, and read, when they listen again."""
    for _ in range(3):
        cut = shape.listeners()
        assert len(cut) == 2
        for pid in cut:
            shape.database.execute("SELECT pg_terminate_backend(%s)", (pid,))
        begun = time.monotonic()
        assert shape.client.watch(shape.client.start()["run_id"])[-1].event == "completed"
        assert time.monotonic() - begun < SOON_S
        wait_until(partial(_are_new, shape, cut))
    assert shape.says("web", "LISTEN is back")
    assert shape.says("worker", "LISTEN is back")


def test_what_staff_change_is_known_to_the_others_within_seconds(shape: Shape) -> None:
    """Nothing is sent for it: values are read again after a second at most."""
    shape.model.script(text("new"), name="again")
    shape.database.execute("UPDATE prompts_modelmapping SET key = 'renamed' WHERE key = 'script-again'")
    body, accepted = {"model": "renamed", "text": "hi"}, dict[str, Any]()

    def is_accepted() -> bool:
        answer = shape.client.http.post("/api/v1/agent/runs", json=body)
        accepted.update(answer.json())
        return answer.status_code == 202

    wait_until(is_accepted)
    assert reply(shape.client.watch(accepted["run_id"])) == "new"


def test_the_run_of_a_killed_worker_is_taken_over(shape: Shape) -> None:
    shape.model.script(Answer((End.HANG,)), text("still here"), name="killed")
    asked = len(shape.model.requests)
    silent: dict[str, Any] = {"enable_exercise_search": False}  # what has called a tool is not run again
    run_id = shape.client.start(model="script-killed", **silent)["run_id"]
    wait_until(lambda: len(shape.model.requests) > asked)
    assert shape.worker_of(run_id) == "worker"
    shape.start("worker-2", "manage.py", "worker")
    shape.parts.wait("worker-2", lambda: shape.says("worker-2", "worker ready"))
    killed = shape.processes["worker"]
    killed.kill()
    frames = shape.client.watch(run_id)
    assert (frames[-1].event, reply(frames)) == ("completed", "still here"), frames
    killed.wait(SOON_S)
    shape.start_patiently("worker")
    shape.parts.wait("worker", lambda: shape.says("worker", "worker ready"))
    shape.end("worker-2")
    wait_until(lambda: len(shape.listeners()) == 2)
