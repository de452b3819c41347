"""A runner changes the state that the thread shares with its client: AG-UI patches, kept for later."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any
from uuid import uuid4

import pytest

from agents.host_protocol import results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from conversations import events
from tests.support.client import Client
from tests.support.host.hosted_runs import bound
from tests.support.host.stage import Says

STATES = ("STATE_SNAPSHOT", "STATE_DELTA")


async def as_results(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
    yield results.state(context.run_id, "thread", "/count", 1)
    yield results.state(context.run_id, "thread", "title", "Legs")
    yield results.state(context.run_id, "thread", "/items/-", "b")
    yield results.state(context.run_id, "thread", "/deep/er", True)
    yield results.state(context.run_id, "conversation", "count", 7)  # the runner's own
    yield results.message(context.run_id, "ok")


async def as_facts(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
    yield events.StateUpdated("thread", "/count", 1)
    yield events.StateUpdated("thread", "title", "Legs")
    yield events.StateUpdated("thread", "/items/-", "b")
    yield events.StateUpdated("thread", "/deep/er", True)
    yield events.StateUpdated("mcp", "someone", [{"name": "not a runner's to say"}])
    yield results.message(context.run_id, "ok")


def ag_ui(client: Client, thread: str, **more: Any) -> list[dict[str, Any]]:
    body = {
        "threadId": thread,
        "runId": str(uuid4()),
        "messages": [{"id": str(uuid4()), "role": "user", "content": "go"}],
        "tools": [],
        "context": [],
        "forwardedProps": {"history": "stored"},
    }
    answer = client.http.post("/api/v1/agent/ag-ui", json=body | more)
    assert answer.status_code == 200, answer.text
    return frames(answer.text)


def frames(text: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]


def told(seen: list[dict[str, Any]]) -> list[Any]:
    """The states and patches, in order."""
    return [one.get("snapshot", one.get("delta")) for one in seen if one["type"] in STATES]


@pytest.mark.parametrize("says", [as_results, as_facts])
def test_what_a_runner_changes_goes_out_as_patches_and_is_kept(client: Client, says: Says) -> None:
    thread, begins = str(uuid4()), {"count": 0, "items": ["a"]}
    ends = {"count": 1, "items": ["a", "b"], "title": "Legs", "deep": {"er": True}}
    with bound(client.user, says):
        seen = ag_ui(client, thread, state=begins)
    assert told(seen) == [
        begins,
        [{"op": "replace", "path": "/count", "value": 1}],
        [{"op": "add", "path": "/title", "value": "Legs"}],
        [{"op": "add", "path": "/items/-", "value": "b"}],
        ends,  # a patch cannot make the object on the way
    ]
    assert client.http.get(f"/api/v1/agent/threads/{thread}").json()["state"] == ends
    connected = client.http.get(f"/api/v1/agent/threads/{thread}/connect")
    assert told(frames(connected.text)) == [ends]


def test_the_next_run_begins_with_it(client: Client) -> None:
    contexts: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        contexts.append(context)
        yield results.state(context.run_id, "thread", "count", len(contexts))
        yield results.message(context.run_id, "ok")

    thread = str(uuid4())
    with bound(client.user, says):
        ag_ui(client, thread)
        second = ag_ui(client, thread)
    assert told(second) == [{"count": 1}, [{"op": "replace", "path": "/count", "value": 2}]]
    assert [one.adapter and one.adapter["extra"]["state"] for one in contexts] == [None, {"count": 1}]


def test_a_client_that_comes_back_is_told_the_state_as_it_is_now(client: Client) -> None:
    thread, run_id = str(uuid4()), str(uuid4())
    message = [{"id": "m1", "role": "user", "content": "go"}]
    with bound(client.user, as_results):
        ag_ui(client, thread, runId=run_id, messages=message, state={"items": []})
        again = ag_ui(client, thread, runId=run_id, messages=message, state={"items": []})
    ends = {"items": ["b"], "count": 1, "title": "Legs", "deep": {"er": True}}
    assert told(again) == [ends]


@pytest.mark.parametrize("value", [{1, 2}, "x" * 300_000, float("nan")])
def test_a_value_that_cannot_be_kept_is_dropped_and_the_run_goes_on(client: Client, value: Any) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        yield events.StateUpdated("thread", "/bad", value)
        yield results.message(context.run_id, "ok")

    with bound(client.user, says):
        seen = ag_ui(client, str(uuid4()), state={"a": 1})
    assert told(seen) == [{"a": 1}]
    assert seen[-1]["type"] == "RUN_FINISHED"


def test_a_binding_without_state_shares_none(client: Client) -> None:
    with bound(client.user, as_results, state_enabled=False):
        seen = ag_ui(client, str(uuid4()), state={"a": 1})
    assert told(seen) == [{"a": 1}]


def test_state_too_large_to_be_kept_ends_the_run(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for number in range(40):
            yield results.state(context.run_id, "thread", f"k{number}", "x" * 200_000)

    with bound(client.user, says):
        seen = ag_ui(client, str(uuid4()))
    assert (seen[-1]["type"], seen[-1].get("code")) == ("RUN_ERROR", "state_too_large")
