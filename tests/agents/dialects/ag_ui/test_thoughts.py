"""Reasoning among a thread's messages: put where it was thought, read again with the thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from agents.dialects.ag_ui.reasoning import outline, with_thoughts
from conversations import events
from conversations.events import Fact, RunEvent
from conversations.models import EventBatch
from tests.support.client import Client, ScriptedModel

pytestmark = pytest.mark.once

RUN = uuid4().hex


def told(*facts: Fact) -> list[RunEvent]:
    """One fact every ten milliseconds."""
    return [RunEvent(seq, 1_000 + 10 * seq, fact) for seq, fact in enumerate(facts, 1)]


def message(wire_id: str, role: str = "assistant") -> dict[str, Any]:
    return {"id": wire_id, "role": role, "metadata": {"parley": {"run_id": RUN}}}


THOUGHT = (
    events.ReasoningDelta("m1", "First "),
    events.ReasoningDelta("m1", "this."),
    events.ToolCallStarted("c1", "search", {}),
    events.ToolCallCompleted("c1", "search", True, 1, {}),
    events.ReasoningDelta("m2", "Then that."),
    events.MessageDelta("m2", "Here."),
)


def order(messages: list[dict[str, Any]]) -> list[str]:
    return [one.get("content") or one["role"] for one in messages]


def test_each_thought_stands_before_what_came_of_it() -> None:
    call = f"call-c1-{RUN}"
    stored = [message("u", "user"), message(call), message("t", "tool"), message(f"m2-{RUN}")]
    merged = with_thoughts(stored, {RUN: outline(RUN, told(*THOUGHT))})
    assert order(merged) == ["user", "First this.", "assistant", "tool", "Then that.", "assistant"]
    assert merged[1]["metadata"] == {"parley": {"run_id": RUN, "latency_ms": 20}}
    assert merged[1]["id"] == f"reasoning-m1-{RUN}"


def test_a_thought_that_nothing_came_of_stands_at_its_runs_end() -> None:
    stored = [message("u", "user"), {"id": "other", "role": "user"}]
    merged = with_thoughts(stored, {RUN: outline(RUN, told(*THOUGHT))})
    assert order(merged) == ["user", "First this.", "Then that.", "user"]
    assert with_thoughts([{"id": "other", "role": "user"}], {RUN: outline(RUN, told(*THOUGHT))}) == [
        {"id": "other", "role": "user"}
    ]


def test_a_thread_is_read_with_its_reasoning_while_the_events_are_kept(
    client: Client, make_client: Callable[..., Client], scripted: Callable[..., ScriptedModel]
) -> None:
    accepted = client.start("hi", model=scripted("reasoning").name)
    client.watch(accepted["run_id"])
    path = f"/api/v1/agent/threads/{accepted['conversation_id']}"

    def roles(**asked: str) -> list[str]:
        return [one["role"] for one in client.http.get(path, params=asked).json()["messages"]]

    plain = roles()
    assert "reasoning" not in plain
    assert roles(reasoning="true") == [*plain[:-1], "reasoning", plain[-1]]
    assert make_client().http.get(path, params={"reasoning": "true"}).status_code == 404
    EventBatch.objects.filter(run_id=accepted["run_id"]).delete()
    assert roles(reasoning="true") == plain
