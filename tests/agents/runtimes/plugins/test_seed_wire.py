"""What the Host itself sends to a runtime of seed 003's generation: discovery, and a run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import fields

from agents.host_protocol.run_context import AgentRunContext
from agents.models import PluginRuntime
from benchmarks.ports import free_port
from tests.agents.runtimes.plugins import fake_v1
from tests.agents.runtimes.plugins.runs import context, heard, on_loop, texts, wait_for
from tests.agents.runtimes.plugins.runtime_rows import forget
from tests.conftest import Server

OLD = "plugin:old/probe/default"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Every document that a runtime of this process takes."""
    found: list[dict[str, Any]] = []
    take = fake_v1.Session.take

    def noted(session: fake_v1.Session, document: dict[str, Any]) -> None:
        found.append(document)
        take(session, document)

    monkeypatch.setattr(fake_v1.Session, "take", noted)
    return found


@pytest.fixture
def address(asked: list[dict[str, Any]]) -> Iterator[str]:
    """A runtime on a thread of this process."""
    port, loop = free_port(), asyncio.new_event_loop()
    serving = loop.create_task(fake_v1.over_websocket(port))

    def serve() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(serving)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"ws://127.0.0.1:{port}"
    loop.call_soon_threadsafe(serving.cancel)
    thread.join(10)
    assert not thread.is_alive()
    loop.close()


def test_runners_are_asked_for_with_nothing_and_run_with_their_context(
    server: Server,
    enter_runtime: Callable[..., PluginRuntime],
    address: str,
    asked: list[dict[str, Any]],
) -> None:
    row = enter_runtime(url=address, profile="v1")
    runner, given = wait_for(server, OLD), context("say a|b", config={"tone": "calm"})
    assert texts(on_loop(server, heard(runner, given))) == ["a", "ab"]
    forget(server, row)
    lists = [one["data"] for one in asked if one.get("action") == "list_agent_runners"]
    assert lists
    assert [data for data in lists if data != {}] == []
    (run,) = [one["data"] for one in asked if one.get("action") == "run_agent"]
    named = (run["plugin_author"], run["plugin_name"], run["runner_name"])
    assert named == ("old", "probe", "default")
    assert run["context"].keys() == {field.encode_name for field in fields(AgentRunContext)}
    assert (run["context"]["run_id"], run["context"]["config"]) == (given.run_id, {"tone": "calm"})
    assert run["context"]["event"]["event_type"] == "message.received"
