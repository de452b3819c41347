"""Reasoning among a thread's messages: put where it was thought, read again with the thread."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import pytest

from agents.dialects.ag_ui.message_types import (
    AgUiAssistantMessage,
    AgUiMessage,
    AgUiMessageFacts,
    AgUiMetadata,
    AgUiReasoningFacts,
    AgUiStreamedMessage,
    AgUiToolMessage,
    AgUiUserMessage,
)
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


OURS = AgUiMetadata(AgUiMessageFacts(run_id=RUN))
ASKED = AgUiUserMessage("u", role="user", metadata=OURS, content="user")
OTHER = AgUiUserMessage("other", role="user", content="other")


def assistant(wire_id: str) -> AgUiAssistantMessage:
    return AgUiAssistantMessage(wire_id, role="assistant", metadata=OURS)


THOUGHT = (
    events.ReasoningDelta("m1", "First "),
    events.ReasoningDelta("m1", "this."),
    events.ToolCallStarted("c1", "search", {}),
    events.ToolCallCompleted("c1", "search", True, 1, {}),
    events.ReasoningDelta("m2", "Then that."),
    events.MessageDelta("m2", "Here."),
)


def order(messages: list[AgUiMessage]) -> list[str]:
    return [one.content if isinstance(one, AgUiStreamedMessage) else one.role for one in messages]


def test_each_thought_stands_before_what_came_of_it() -> None:
    call = f"call-c1-{RUN}"
    answer = AgUiToolMessage("t", role="tool", metadata=OURS, tool_call_id="c1", content="{}")
    stored: list[AgUiMessage] = [ASKED, assistant(call), answer, assistant(f"m2-{RUN}")]
    merged = with_thoughts(stored, {RUN: outline(RUN, told(*THOUGHT))})
    assert order(merged) == ["user", "First this.", "assistant", "tool", "Then that.", "assistant"]
    facts = AgUiMetadata(AgUiReasoningFacts(RUN, 20))
    assert merged[1] == AgUiStreamedMessage(f"reasoning-m1-{RUN}", "reasoning", "First this.", facts)


def test_a_thought_that_nothing_came_of_stands_at_its_runs_end() -> None:
    merged = with_thoughts([ASKED, OTHER], {RUN: outline(RUN, told(*THOUGHT))})
    assert order(merged) == ["user", "First this.", "Then that.", "user"]
    assert with_thoughts([OTHER], {RUN: outline(RUN, told(*THOUGHT))}) == [OTHER]


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
