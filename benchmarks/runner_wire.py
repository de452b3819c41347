"""What a Host call costs over the plugin runtime's wire, and how fast a run streams over it.

`python -m pytest benchmarks/runner_wire.py -s -p no:randomly` prints the figures (the server, database
and runtime of the tests serve it; three runs, the middle one counts). In process: `host_calls`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from statistics import median
from typing import Any

import pytest

from agents.models import PluginRuntime
from tests.agents.runtimes.plugins.bound import bound, done, said
from tests.agents.runtimes.plugins.conftest import enter_runtime as enter_runtime
from tests.agents.runtimes.plugins.runs import context, heard, on_loop, steps, wait_for
from tests.agents.runtimes.plugins.runtime_home import ALL, RuntimeHome, install
from tests.conftest import Server
from tests.conftest import client as client
from tests.conftest import database as database
from tests.conftest import django_db_setup as django_db_setup
from tests.conftest import make_client as make_client
from tests.conftest import server as server
from tests.support.client import Client

RUNNER = "plugin:parley/timed/default"
CALLS = 500
DELTAS = 1_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuntimeHome]:
    home = RuntimeHome(tmp_path_factory.mktemp("runtime"))
    install(home.home, "timed", ALL)
    home.start()
    yield home
    home.stop()


@pytest.fixture(scope="module", autouse=True)
def runner(server: Server, home: RuntimeHome, enter_runtime: Callable[..., PluginRuntime]) -> Any:
    enter_runtime(url=home.url, profile="released")
    return wait_for(server, RUNNER)


def test_host_calls_over_the_wire(client: Client) -> None:
    with bound(client, RUNNER, calls_per_minute=0):
        for what, call in (
            ("state_get", ["time", CALLS, "state_get", ["actor", "k"]]),
            ("no Host work (get_langbot_version)", ["time", CALLS, "get_langbot_version", []]),
        ):
            taken = [done(client, call)[1][0]["ok"] for _ in range(3)]
            _tell(f"{what} over the wire", taken, CALLS)


def test_deltas_over_the_wire(server: Server, runner: Any, client: Client) -> None:
    def alone() -> float:
        begun = time.perf_counter()
        results = on_loop(server, heard(runner, context(steps(["burst", DELTAS]))))
        assert len(results) > DELTAS
        return time.perf_counter() - begun

    _tell("delta of one run, wire only", [alone() for _ in range(3)], DELTAS)

    async def together() -> float:
        begun = time.perf_counter()
        asked = [context(steps(["burst", DELTAS // 10])) for _ in range(20)]
        await asyncio.gather(*(heard(runner, one) for one in asked))
        return time.perf_counter() - begun

    _tell(
        "delta of 20 runs at once, wire only",
        [on_loop(server, together()) for _ in range(3)],
        2 * DELTAS,
    )

    def whole() -> float:
        with bound(client, RUNNER):
            begun = time.perf_counter()
            said(client, steps(["burst", DELTAS]))
            return time.perf_counter() - begun

    _tell("delta of a whole run, to its client", [whole() for _ in range(3)], DELTAS)


def _tell(what: str, seconds: list[float], count: int) -> None:
    each = median(seconds) / count
    print(f"\n{what}: {each * 1e6:.0f} µs each, {1 / each:.0f} a second")
