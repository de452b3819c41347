"""Runs of a plugin runner, made by hand on the server's loop: the wire alone, without a binding."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar
from uuid import uuid4

from agents.host_protocol.host_api import HostApi
from agents.host_protocol.messages import text_in
from agents.host_protocol.resources import AgentResources
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import (
    AgentInput,
    AgentRunContext,
    DeliveryContext,
    EventContext,
    RuntimeContext,
    Trigger,
)
from agents.host_protocol.runner import HostedRunner
from agents.runtimes.plugins.runner import reachable_runners
from tests.conftest import Server
from tests.support.fakes.mcp_host import wait_until

T = TypeVar("T")


def on_loop(server: Server, work: Coroutine[Any, Any, T], seconds: float = 60) -> T:
    """What the coroutine gives, on the server's loop."""
    return asyncio.run_coroutine_threadsafe(work, server.loop).result(seconds)


def call_on_loop(server: Server, read: Callable[[], T]) -> T:
    async def work() -> T:
        return read()

    return on_loop(server, work())


def found(server: Server, runner_id: str) -> HostedRunner | None:
    """The runner, if a live runtime offers it now."""
    runners = call_on_loop(server, reachable_runners)
    return next((one for one in runners if one.manifest.id == runner_id), None)


def wait_for(server: Server, runner_id: str, seconds: float = 30) -> HostedRunner:
    runner: HostedRunner = wait_until(lambda: found(server, runner_id), seconds)
    return runner


def context(text: str, *, seconds: float = 30, **more: Any) -> AgentRunContext:
    """A run of this text."""
    given: dict[str, Any] = {
        "run_id": uuid4().hex,
        "trigger": Trigger("message.received"),
        "event": EventContext(event_id="e", event_type="message.received", source="api"),
        "input": AgentInput(text=text),
        "delivery": DeliveryContext(surface="api", supports_streaming=True),
        "resources": AgentResources(),
        "runtime": RuntimeContext(deadline_at=time.time() + seconds),
    }
    return AgentRunContext(**(given | more))


async def heard(runner: HostedRunner, asked: AgentRunContext) -> list[RunResult]:
    """All that the run says."""
    async with aclosing(runner.run(asked, HostApi(None))) as results:  # type: ignore[arg-type]
        return [result async for result in results if isinstance(result, RunResult)]


def texts(results: list[RunResult]) -> list[str]:
    """The texts of its deltas and messages."""
    told = [one.data.get("chunk") or one.data.get("message") for one in results]
    return [text_in(one["content"]) for one in told if one]


def steps(*given: list[Any]) -> str:
    return json.dumps(list(given))


def answers(results: list[RunResult]) -> list[Any]:
    """What came of the probe's steps."""
    whole = next(one for one in results if one.type == "message.completed")
    found: list[Any] = json.loads(whole.data["message"]["content"])
    return found
