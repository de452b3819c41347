"""One runtime's failure is that runtime's: the others go on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pytest_django import Settings

from agents.hosting.runner import HostedRunner
from agents.models import PluginRuntime
from tests.client import Client
from tests.conftest import Server
from tests.mcp_host import free_port
from tests.plugins.bound import audited, bound, said
from tests.plugins.conftest import forget, old_runtime_process, wait_for_status
from tests.plugins.runs import context, heard, on_loop, texts, wait_for

OLD = "plugin:old/probe/default"


@pytest.fixture
def old(server: Server, enter_runtime: Callable[..., PluginRuntime]) -> Iterator[HostedRunner]:
    """A runtime that works."""
    with old_runtime_process() as url:
        row = enter_runtime(url=url, profile="v1")
        yield wait_for(server, OLD)
        forget(server, row)


@pytest.fixture(params=["rubbish", "huge", "endless", "closes"])
def broken(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of a runtime that does as it should not."""
    port, started = free_port(), threading.Event()
    loop = asyncio.new_event_loop()

    async def connected(socket: Any) -> None:
        match request.param:
            case "rubbish":
                for number in range(2_000):
                    await socket.send(f"rubbish {number}")
            case "huge":
                await socket.send("{" + "x" * (17 * 1024 * 1024))
            case "endless":
                for _ in range(40):
                    await socket.send("{" + "x" * (1024 * 1024 - 1))
            case "closes":
                return
        await socket.wait_closed()

    async def main() -> None:
        from websockets.asyncio.server import serve

        async with serve(connected, "127.0.0.1", port):
            started.set()
            await stop.wait()

    stop = asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    started.wait(10)
    yield f"ws://127.0.0.1:{port}"
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    loop.close()


def test_a_broken_runtime_disturbs_no_other(
    server: Server,
    settings: Settings,
    old: HostedRunner,
    broken: str,
    enter_runtime: Callable[..., PluginRuntime],
) -> None:
    settings.PLUGIN_CONNECT_S = 2
    row = enter_runtime(url=broken)
    assert texts(on_loop(server, heard(old, context("say a|b")))) == ["a", "ab"]
    wait_for_status(row, "failed")
    assert row.problem
    assert texts(on_loop(server, heard(old, context("x" * 100_000)))) == ["100000 characters"]
    forget(server, row)


def test_the_first_generation_asks_the_host_too(client: Client, old: HostedRunner) -> None:
    with bound(client, OLD, storage=["plugin"]):
        run_id, answer, detail = said(
            client, 'call state_set {"scope": "actor", "key": "k", "value": {"a": 1}}'
        )
        assert detail["status"] == "completed", detail
        assert '"success": true' in answer
        assert audited(run_id, 1) == [("state_set", "ok")]
        _, answer, _ = said(client, 'call state_get {"scope": "actor", "key": "k"}')
        assert '"value": {"a": 1}' in answer
        _, answer, _ = said(client, "call history_page {}")
        assert '"has_more": false' in answer
        _, answer, _ = said(client, 'call state_get {"caller_plugin_identity": "x/y", "scope": "actor"}')
        assert "mismatch" in answer
        assert '"code": "unauthorized"' in answer
        _, answer, _ = said(client, 'call artifact_read {"artifact_id": "nope"}')
        assert "not found" in answer
        _, answer, _ = said(client, 'call call_tool {"tool_name": "gymbro.exercise.search"}')
        assert "unauthorized" in answer
