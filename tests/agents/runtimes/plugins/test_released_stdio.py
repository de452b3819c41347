"""The real runtime as a program that Parley starts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from pytest_django import Settings

from agents.models import PluginRuntime
from agents.runners.base import RunFailure
from tests.agents.runtimes.plugins.runs import answers, context, heard, on_loop, steps, texts, wait_for
from tests.agents.runtimes.plugins.runtime_home import install
from tests.agents.runtimes.plugins.runtime_rows import forget, wait_for_status
from tests.conftest import Server
from tests.support.fakes.mcp_host import wait_until

PIPED = "plugin:parley/piped/default"
ARGS = ["-m", "langbot_plugin.cli.__init__", "rt", "-s", "--skip-deps-check"]
PORT = ["--ws-debug-port", "{port}"]


def programs(home: Path) -> list[int]:
    """The processes that work in this folder or below it."""
    pids = []
    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(str(home)) and process.status() != psutil.STATUS_ZOMBIE:
                pids.append(process.pid)
        except psutil.Error:
            continue
    return pids


def test_a_runtime_that_parley_starts_serves_and_ends_with_its_row(
    server: Server,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    enter_runtime: Callable[..., PluginRuntime],
) -> None:
    settings.RUNNER_COMMANDS = [f"{sys.executable} *"]
    monkeypatch.setenv("SECRET_OF_OURS", "not for programs")
    install(tmp_path, "piped", {"models": ["invoke"]})
    row = enter_runtime(
        transport="stdio", command=sys.executable, args=ARGS + PORT, directory=str(tmp_path)
    )
    runner = wait_for(server, PIPED)
    wait_for_status(row, "connected")
    assert texts(on_loop(server, heard(runner, context(steps(["say", "a", "b"])))))[:2] == ["a", "ab"]
    large = on_loop(server, heard(runner, context("练" * 1_000_000)))
    assert texts(large) == ["1000000 characters"]
    (environment,) = answers(on_loop(server, heard(runner, context(steps(["environment"])))))
    assert "SECRET_OF_OURS" not in environment["ok"]

    (first,) = [pid for pid in programs(tmp_path) if psutil.Process(pid).cwd() == str(tmp_path)]
    psutil.Process(first).kill()

    def says_again() -> list[str]:
        with suppress(RunFailure):  # of the connection that broke
            return texts(on_loop(server, heard(wait_for(server, PIPED), context("again"))))
        return []

    wait_until(lambda: says_again() == ["5 characters"], 30)
    assert first not in programs(tmp_path)

    forget(server, row)
    wait_until(lambda: not programs(tmp_path), 30)
