"""What the installed langbot-plugin's runtime sends, against what was recorded of its version.

No fake of ours speaks this generation: the tests run the real one. When another version sends
something else, these tests say what; then read it, and record it anew:

    RECORD_FRAMES=1 pytest tests/agents/runtimes/plugins/test_released_frames.py
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import Any
from uuid import UUID

import pytest

from agents.models import PluginRuntime
from agents.runtimes.plugins.released_protocol import ReleasedProtocol
from agents.runtimes.plugins.wire_protocol import read_runners
from benchmarks.ports import free_port
from tests.agents.runtimes.plugins.frames import FOLDER, Frame, Kept, between, recorded, shape
from tests.agents.runtimes.plugins.runs import context, heard, on_loop, steps, wait_for
from tests.agents.runtimes.plugins.runtime_home import ALL, RuntimeHome, install
from tests.conftest import Server
from tests.support.fakes.mcp_host import wait_until

NAME = f"released-{version('langbot-plugin')}"
RUNS = (
    steps(["say", "a", "b"]),
    steps(["api", "state_get", ["conversation", "k"]]),
    steps(["raw", "history_page", {}]),
    steps(["raw", "call_tool", {"tool_name": "t", "parameters": {}}]),
    steps(["result", "tool.call.started", {"tool_call_id": "c", "tool_name": "t", "parameters": {}}]),
    steps(["result", "run.completed", {"finish_reason": "stop"}]),
    steps(["crash"]),
)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kept, str]]:
    """A runtime with the probe, and what it says on its way through a proxy at this address."""
    home = RuntimeHome(tmp_path_factory.mktemp("runtime"))
    install(home.home, "probe", ALL)
    home.start()
    found, port, ended = Kept(), free_port(), threading.Event()

    async def passing() -> None:
        task = asyncio.create_task(between(port, home.url, found, lambda: None))
        await asyncio.to_thread(ended.wait)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task

    thread = threading.Thread(target=lambda: asyncio.run(passing()), daemon=True)
    thread.start()
    yield found, f"ws://127.0.0.1:{port}/control/ws"
    ended.set()
    thread.join(10)
    home.stop()


@pytest.fixture(scope="module")
def sent(
    server: Server, kept: tuple[Kept, str], enter_runtime: Callable[..., PluginRuntime]
) -> list[Frame]:
    """One frame of each kind and shape that it sends in answer to these runs."""
    found, url = kept
    enter_runtime(url=url)
    for text in RUNS:
        probe = wait_for(server, "plugin:parley/probe/default")
        on_loop(server, heard(probe, context(text)))
    wait_until(lambda: any(kind.startswith("asks") for kind, _ in found.frames))
    if os.environ.get("RECORD_FRAMES"):
        found.write(FOLDER / f"{NAME}.json", f"langbot-plugin {version('langbot-plugin')}")
    return [{"kind": kind, "frame": frame} for (kind, _), frame in found.frames.items()]


def _places(frames: list[Frame]) -> set[str]:
    """All but its answers to pings, which come only after a while."""
    told = [one for one in frames if one["kind"] != "answers __ping"]
    return {f"{one['kind']}: {place}" for one in told for place in shape(one["frame"])}


def test_the_runtime_sends_what_was_recorded_of_its_version(sent: list[Frame]) -> None:
    assert _places(sent) ^ _places(recorded(NAME)) == set()


def test_the_recorded_runners_are_read() -> None:
    listed: list[Any] = [
        runner
        for one in recorded(NAME)
        if one["kind"] == "answers list_runners"
        for runner in one["frame"]["data"]["runners"]
    ]
    found, passed_over = read_runners(ReleasedProtocol(UUID(int=1)), listed)
    assert (list(found), passed_over) == (["plugin:parley/probe/default"], [])
