"""The real runtime of langbot-plugin, over its own wire."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from agents.host_protocol.runner import HostedRunner
from agents.models import PluginRuntime
from agents.runners.base import RunFailure
from prompts.endpoints import secrets
from tests.agents.runtimes.plugins.runs import (
    answers,
    call_on_loop,
    context,
    found,
    heard,
    on_loop,
    steps,
    texts,
    wait_for,
)
from tests.agents.runtimes.plugins.runtime_home import ALL, RuntimeHome, install
from tests.agents.runtimes.plugins.runtime_rows import forget, wait_for_status
from tests.conftest import Server
from tests.support.fakes.mcp_host import wait_until

PROBE = "plugin:parley/probe/default"
TOKEN = "a-token-of-a-runtime-that-is-long-enough"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuntimeHome]:
    """A runtime with the probe installed."""
    home = RuntimeHome(tmp_path_factory.mktemp("runtime"), TOKEN)
    install(home.home, "probe", ALL)
    home.start()
    yield home
    home.stop()


@pytest.fixture(scope="module")
def runtime(home: RuntimeHome, enter_runtime: Callable[..., PluginRuntime]) -> PluginRuntime:
    """Its row."""
    row = enter_runtime(url=home.url, is_active=False)
    row.token = secrets.store(secrets.Purpose.PLUGIN_RUNTIME.of(row.pk), TOKEN)
    row.is_active = True
    row.save()
    return row


@pytest.fixture
def probe(server: Server, runtime: PluginRuntime) -> HostedRunner:
    return wait_for(server, PROBE)


def test_a_runtime_is_found_out_and_its_runners_are_listed(
    probe: HostedRunner, runtime: PluginRuntime
) -> None:
    wait_until(lambda: PluginRuntime.objects.get(pk=runtime.pk).runners)
    row = wait_for_status(runtime, "connected")
    assert (row.spoken, row.problem, [one["id"] for one in row.runners]) == ("released", "", [PROBE])
    assert probe.manifest.label == {"en_US": "Probe", "zh_Hans": "探针"} | probe.manifest.label
    assert probe.manifest.permissions.models == ("invoke", "stream", "rerank")
    assert probe.manifest.capabilities.streaming


def test_a_run_streams(server: Server, probe: HostedRunner) -> None:
    results = on_loop(server, heard(probe, context(steps(["say", "你", "好", " 🌍"]))))
    assert texts(results)[:3] == ["你", "你好", "你好 🌍"]
    assert results[-1].type == "run.completed"
    assert [one.sequence for one in results] == list(range(1, len(results) + 1))


def test_the_context_is_what_the_sdk_reads(server: Server, probe: HostedRunner) -> None:
    asked = context(steps(["context"]), config={"tone": "calm"}, metadata={"a": 1})
    told = answers(on_loop(server, heard(probe, asked)))[0]["ok"]
    assert told["run_id"] == asked.run_id
    assert told["trigger"]["source"] == "api"
    assert told["event"]["event_type"] == "message.received"
    assert told["config"] == {"tone": "calm"}
    assert told["runtime"]["deadline_at"] == asked.runtime.deadline_at
    assert told["delivery"]["supports_streaming"] is True


def test_three_megabytes_come_through(server: Server, probe: HostedRunner) -> None:
    for text in ("x" * 3_000_000, "练" * 1_000_000):
        results = on_loop(server, heard(probe, context(text)))
        assert texts(results) == [f"{len(text)} characters"]


def test_more_than_sixteen_mebibytes_fail_their_run_only(server: Server, probe: HostedRunner) -> None:
    with pytest.raises(RunFailure) as failed:
        on_loop(server, heard(probe, context("x" * 17_000_000)))
    assert failed.value.code == "runner.input_too_large"
    assert texts(on_loop(server, heard(probe, context("short")))) == ["5 characters"]


def test_twenty_runs_at_once_do_not_mix(server: Server, probe: HostedRunner) -> None:
    async def all_at_once() -> list[Any]:
        told = [context(steps(["say", f"{number}:", "x" * number])) for number in range(20)]
        return await asyncio.gather(*(heard(probe, one) for one in told))

    for number, results in enumerate(on_loop(server, all_at_once())):
        assert texts(results)[1] == f"{number}:" + "x" * number
        assert len({one.run_id for one in results}) == 1


def test_a_long_stream_is_paced_and_whole(server: Server, probe: HostedRunner) -> None:
    results = on_loop(server, heard(probe, context(steps(["burst", 300]))))
    assert [len(text) for text in texts(results)[:300]] == list(range(1, 301))


def test_a_deadline_ends_the_run_in_the_plugin(server: Server, probe: HostedRunner) -> None:
    results = on_loop(server, heard(probe, context(steps(["sleep", 60]), seconds=1)))
    assert [one.type for one in results] == ["run.failed"]
    assert results[0].data["code"] == "runner.timeout"
    assert results[0].data["retryable"] is True


def test_a_cancelled_run_ends_in_the_plugin_too(server: Server, probe: HostedRunner) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(heard(probe, context(steps(["say", "a"], ["sleep", 600]))))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    on_loop(server, cancelled())
    link = probe._link  # type: ignore[attr-defined]
    assert call_on_loop(server, lambda: dict(link.runs)) == {}
    assert texts(on_loop(server, heard(probe, context("next")))) == ["4 characters"]


def test_results_that_are_none_are_passed_over(server: Server, probe: HostedRunner) -> None:
    given = steps(
        ["result", "strange.thing", {"a": 1}],
        ["print"],
        ["say", "still here"],
    )
    results = on_loop(server, heard(probe, context(given)))
    assert "still here" in texts(results)


@pytest.mark.parametrize("run_id", ["f" * 32, "", None, 7, "../x"])
def test_a_run_that_is_not_on_the_connection_opens_nothing(
    server: Server, probe: HostedRunner, run_id: Any
) -> None:
    asked = {"run_id": run_id, "scope": "runner", "key": "k"}
    told = answers(on_loop(server, heard(probe, context(steps(["raw", "state_get", asked])))))
    assert "unauthorized" in told[0]["error"]


def test_an_unknown_action_is_refused_and_the_run_goes_on(server: Server, probe: HostedRunner) -> None:
    given = steps(["raw", "vector_search", {}], ["raw", "get_langbot_version", {}])
    refused, version = answers(on_loop(server, heard(probe, context(given))))
    assert "not found" in refused["error"]
    assert version["ok"]["version"]


def test_a_plugin_that_crashes_fails_its_run_and_comes_back(server: Server, probe: HostedRunner) -> None:
    results = on_loop(server, heard(probe, context(steps(["crash"]))))
    assert results[-1].type == "run.failed"
    assert results[-1].data["code"] == "runner.forward_exception"
    wait_until(lambda: _works(server), 30)


def test_a_killed_plugin_fails_at_once_and_comes_back(
    server: Server, probe: HostedRunner, home: RuntimeHome
) -> None:
    running = asyncio.run_coroutine_threadsafe(
        heard(probe, context(steps(["sleep", 60]), seconds=60)), server.loop
    )
    wait_until(lambda: call_on_loop(server, lambda: bool(probe._link.runs)))  # type: ignore[attr-defined]
    time.sleep(0.3)
    pid = home.plugin_pid("probe")
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    results = running.result(30)
    assert results[-1].type == "run.failed"
    wait_until(lambda: _works(server), 30)


def test_a_runtime_that_goes_away_fails_its_runs_and_is_found_again(
    server: Server, probe: HostedRunner, home: RuntimeHome, runtime: PluginRuntime
) -> None:
    running = asyncio.run_coroutine_threadsafe(
        heard(probe, context(steps(["sleep", 60]), seconds=60)), server.loop
    )
    wait_until(lambda: call_on_loop(server, lambda: bool(probe._link.runs)))  # type: ignore[attr-defined]
    assert home.process is not None
    children = psutil.Process(home.process.pid).children(recursive=True)
    home.process.kill()
    home.process.wait(10)
    with pytest.raises(RunFailure) as failed:
        running.result(30)
    assert (failed.value.code, failed.value.retryable) == ("runner.unavailable", True)
    wait_for_status(runtime, "failed")
    assert found(server, PROBE) is None
    for child in children:
        child.kill()
    home.start()
    wait_until(lambda: _works(server), 40)


def _works(server: Server) -> bool:
    probe = found(server, PROBE)
    if probe is None:
        return False
    try:
        results = on_loop(server, heard(probe, context("hello", seconds=5)))
    except RunFailure:
        return False
    return texts(results) == ["5 characters"]


def test_a_wrong_token_is_named_and_an_unknown_address_too(
    server: Server, home: RuntimeHome, enter_runtime: Callable[..., PluginRuntime]
) -> None:
    row = enter_runtime(url=home.url)
    wait_for_status(row, "failed")
    assert "answers 401" in row.problem
    forget(server, row)
