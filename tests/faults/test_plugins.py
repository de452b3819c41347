"""One runtime obeys one worker: runs that another one claimed are handed to it, and wait for it."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from benchmarks.ports import free_port
from tests.faults.stack import OFFERED_S, Part, Stack, listens, wait_until
from tests.support.paths import ROOT

pytestmark = [pytest.mark.faults, pytest.mark.timeout(240)]

FAKE = ROOT / "tests/agents/runtimes/plugins/fake_v1.py"
OLD = "plugin:old/probe/default"
_RULES_S = 1.0  # workers know the rules as they were half a second ago
_ENTER = """
INSERT INTO agents_pluginruntime (name, identity, transport, url, command, args, directory, profile,
    is_active, status, problem, spoken, runners, held_by, updated_at)
VALUES (%s, gen_random_uuid(), 'websocket', %s, '', '{}', '', 'v1', true, 'waiting', '', '', '[]', '',
    now())
"""
_LEAVE = "DELETE FROM agents_pluginruntime WHERE name = %s"
_BIND = """
INSERT INTO agents_runnerbinding (name, runner_id, is_active, position, model, dialect, config,
    own_model, further_models, tools, knowledge_bases, storage, platform_actions, state_enabled,
    state_scopes, calls_per_minute, delivery, updated_at)
VALUES (%s, %s, true, 1, 'global:demo', '', '{}', true, '{}', '{}', '{}', '{}', '{}', true, '{}', 0,
    'stream', now())
"""
_UNBIND = "DELETE FROM agents_runnerbinding WHERE name = %s"
_HELD = "SELECT held_by FROM agents_pluginruntime WHERE name = %s AND status = 'connected'"
_WORKERS = "SELECT DISTINCT worker FROM conversations_run WHERE id = ANY(%s::uuid[])"


class Runtime:
    """A runtime of the first generation, entered and bound to every run of the model `demo`."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._name = f"r-{uuid4().hex[:8]}"
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Runtime:
        self.start()
        with self._stack.postgres.connect() as connection:
            connection.execute(_ENTER, (self._name, f"ws://127.0.0.1:{self._port}"))
            connection.execute(_BIND, (self._name, OLD))
        bound_at = time.monotonic()
        wait_until(self.holder, what="a worker to connect")
        _until_known(bound_at)
        return self

    def __exit__(self, *_: object) -> None:
        with self._stack.postgres.connect() as connection:
            connection.execute(_UNBIND, (self._name,))
            connection.execute(_LEAVE, (self._name,))
        unbound_at = time.monotonic()
        self.stop()
        _until_known(unbound_at)  # else the next test's runs would still be the runtime's

    def start(self) -> None:
        self._process = subprocess.Popen([sys.executable, str(FAKE), "ws", str(self._port)])
        wait_until(lambda: listens(self._port), what="the runtime")

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait(10)

    def holder(self) -> str:
        """The worker that is connected, "" if none is."""
        return str(next((row[0] for row in self._rows(_HELD, self._name)), ""))

    def workers_of(self, runs: list[str]) -> set[str]:
        return {row[0] for row in self._rows(_WORKERS, runs)}

    def _rows(self, statement: str, given: Any) -> list[Any]:
        with self._stack.postgres.connect() as connection:
            return connection.execute(statement, (given,)).fetchall()


def _until_known(changed_at: float) -> None:
    """Wait until all workers know the rules as they were changed at this moment."""
    time.sleep(max(0.0, changed_at + _RULES_S - time.monotonic()))


@pytest.fixture
def runtime(stack: Stack) -> Iterator[Runtime]:
    with Runtime(stack) as entered:
        yield entered


@pytest.fixture
def http(stack: Stack) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {stack.token}"}
    with httpx.Client(base_url=stack.url, headers=headers, timeout=30, trust_env=False) as made:
        yield made


def start(http: httpx.Client, count: int) -> list[str]:
    """So many runs of the runtime's runner, each on a thread of its own."""
    asked = {"model": "demo", "text": "say one|two"}
    return [http.post("/api/v1/agent/runs", json=asked).json()["run_id"] for _ in range(count)]


def ended(http: httpx.Client, run_id: str) -> dict[str, Any]:
    """The run's row once it has ended."""

    def row() -> dict[str, Any]:
        found: dict[str, Any] = http.get(f"/api/v1/agent/runs/{run_id}").json()
        return found

    wait_until(lambda: row()["status"] in ("completed", "failed"), seconds=60, what=f"run {run_id}")
    return row()


def part_of(stack: Stack, worker: str) -> Part:
    """The process of a worker's name, `host:pid:…`."""
    (found,) = [part for part in stack.workers if part.pid == int(worker.split(":")[1])]
    return found


def _handed_over(worker: Part) -> int:
    return worker.log().count("run handed over")


def test_runs_are_handed_to_the_worker_that_holds_the_runtime(
    stack: Stack, runtime: Runtime, http: httpx.Client
) -> None:
    holder = runtime.holder()
    frozen = part_of(stack, holder)
    (other,) = [part for part in stack.workers if part is not frozen]
    frozen.freeze()  # so that the other one gets them all
    time.sleep(OFFERED_S)
    before = _handed_over(other)
    runs = start(http, 10)
    wait_until(lambda: _handed_over(other) >= before + len(runs), what="handing over")
    frozen.thaw()
    rows = [ended(http, run) for run in runs]
    assert {(row["status"], row["attempt"]) for row in rows} == {("completed", 1)}
    assert runtime.workers_of(runs) == {holder}


def test_a_worker_that_dies_leaves_its_runtime_and_the_runs_that_wait_to_another(
    stack: Stack, runtime: Runtime, http: httpx.Client
) -> None:
    dead = runtime.holder()
    part_of(stack, dead).kill()
    (run,) = start(http, 1)
    assert ended(http, run)["status"] == "completed"
    assert runtime.holder() not in ("", dead)
    assert runtime.workers_of([run]) == {runtime.holder()}


def test_a_run_waits_for_a_runtime_that_comes_back_and_fails_clearly_for_one_that_does_not(
    runtime: Runtime, http: httpx.Client
) -> None:
    runtime.stop()
    wait_until(lambda: not runtime.holder(), what="the broken connection")
    (waits,) = start(http, 1)
    runtime.start()
    assert ended(http, waits)["status"] == "completed"
    runtime.stop()
    wait_until(lambda: not runtime.holder(), what="the broken connection")
    (fails,) = start(http, 1)
    assert ended(http, fails)["error"]["code"] == "runner.unavailable"
