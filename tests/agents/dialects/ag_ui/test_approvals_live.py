"""Real approvals, answered by unmodified AG-UI clients of both generations."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.dialects.ag_ui.conftest import Open
from tests.agents.dialects.ag_ui.messages import Seen, params, shape, sound, user
from tests.agents.dialects.ag_ui.node import RealClient
from tests.support.client import Client

ASK = "approve demo.note buy milk"


@pytest.fixture
def asking(open_agent: Open) -> RealClient:
    """A client whose run waits for an approval."""
    agent = open_agent()
    seen = sound(agent.run(add=[user(ASK)], params=params()))
    assert seen["outcome"] == "interrupt"
    return agent


def answers(seen: Seen) -> list[Any]:
    return [json.loads(m["content"]) for m in seen["messages"] if m["role"] == "tool"]


def test_a_call_is_approved_and_made_under_the_id_that_the_client_knows(asking: RealClient) -> None:
    seen = sound(asking.run(params=params(), resume=resolved({"approved": True})))
    [call] = [call for said in seen["messages"] for call in said.get("toolCalls", [])]
    assert call["function"] == {"name": "demo.note", "arguments": '{"text":"buy milk"}'}
    [tool] = [said for said in seen["messages"] if said["role"] == "tool"]
    assert tool["toolCallId"] == call["id"]
    assert "TOOL_CALL_START" not in [event["type"] for event in seen["events"]]
    assert "buy milk" in seen["messages"][-1]["content"]
    assert seen["interrupts"] == []


def resolved(payload: Any) -> dict[str, Any]:
    return {"status": "resolved", "payload": payload}


@pytest.mark.parametrize(
    ("resume", "code", "reason"),
    [
        (resolved({"approved": False, "reason": "not today"}), "approval_refused", "not today"),
        (resolved(False), "approval_refused", ""),
        ({"status": "cancelled"}, "approval_refused", ""),
    ],
)
def test_a_call_is_refused(asking: RealClient, resume: Any, code: str, reason: str) -> None:
    seen = sound(asking.run(params=params(), resume=resume))
    [told] = answers(seen)
    assert told["error"]["code"] == code
    assert reason in told["error"]["message"]
    assert seen["interrupts"] == []


def test_a_call_is_approved_with_other_arguments(asking: RealClient) -> None:
    edited = {"approved": True, "arguments": {"text": "buy bread"}}
    seen = sound(asking.run(params=params(), resume=resolved(edited)))
    assert "buy bread" in json.dumps(answers(seen))


def test_an_answer_that_is_none_is_refused_and_the_next_one_taken(asking: RealClient) -> None:
    wrong = asking.run(params=params(), resume=resolved("perhaps"))
    assert (wrong["status"], len(wrong["interrupts"])) == (422, 1)
    seen = sound(asking.run(params=params(), resume=resolved(True)))
    assert "buy milk" in seen["messages"][-1]["content"]


def test_the_thread_is_replayed_as_it_was_streamed(open_agent: Open, client: Client) -> None:
    thread_id = str(uuid4())
    agent = open_agent(threadId=thread_id)
    connect = f"{client.url}/api/v1/agent/threads/{thread_id}/connect"
    waiting = sound(agent.run(add=[user(ASK)], params=params()))
    other = open_agent(threadId=thread_id)
    seen = sound(other.run(connect=connect))
    assert (shape(seen), seen["interrupts"]) == (shape(waiting), waiting["interrupts"])
    whole = sound(other.run(params=params(), resume=resolved(True)))
    assert shape(sound(open_agent(threadId=thread_id).run(connect=connect))) == shape(whole)
