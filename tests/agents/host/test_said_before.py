"""A client that keeps the conversation itself: what it sends is the runner's history, on every wire.

The same story on each: two questions were answered before, one of them with a tool, and a third is asked
(seed 003 §4.6, 4.8, 4.9, 7.4).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from agents.host_protocol import results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import ContextPolicy
from agents.host_protocol.messages import Message, text_in
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text
from tests.support.host.hosted_runs import bound
from tests.support.host.stage import manifest
from tests.support.host.told_history import STORY, TOLD, chat

pytestmark = pytest.mark.once

Send = Callable[[Client, list[dict[str, Any]]], Any]


def not_stored(client: Client, said: list[dict[str, Any]]) -> Any:
    return chat(client, said, store=False)


def responses(client: Client, said: list[dict[str, Any]]) -> Any:
    items: list[dict[str, Any]] = []
    for one in said:
        match one:
            case {"role": "tool"}:
                output = {"call_id": one["tool_call_id"], "output": one["content"]}
                items.append({"type": "function_call_output", **output})
            case {"tool_calls": calls}:
                items += [
                    {"type": "function_call", "call_id": call["id"], **call["function"]}
                    for call in calls
                ]
            case _:
                items.append(one)
    return client.http.post("/v1/responses", json={"model": "demo", "input": items})


def ag_ui(client: Client, said: list[dict[str, Any]], **more: Any) -> Any:
    body = {"threadId": str(uuid4()), "runId": str(uuid4()), "messages": as_ag_ui(said)} | more
    rest: dict[str, Any] = {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return client.http.post("/api/v1/agent/ag-ui", json=rest | body)


def as_ag_ui(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {"tool_call_id": "toolCallId", "tool_calls": "toolCalls"}
    return [
        {"id": f"m{place}"} | {names.get(key, key): value for key, value in one.items()}
        for place, one in enumerate(said)
    ]


def agent_api(client: Client, said: list[dict[str, Any]]) -> Any:
    messages: list[dict[str, Any]] = []
    for one in said:
        match one:
            case {"role": "tool"}:
                data = {"call_id": one["tool_call_id"], "output": one["content"]}
                messages.append(_data("function_call_output", "tool", data))
            case {"tool_calls": calls}:
                for call in calls:
                    data = {"call_id": call["id"], **call["function"]}
                    messages.append(_data("function_call", "assistant", data))
            case _:
                text = {"type": "text", "text": one["content"]}
                messages.append({"role": one["role"], "type": "message", "content": [text]})
    return client.http.post("/process", json={"model": "demo", "input": messages, "stream": False})


def _data(kind: str, role: str, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "role": role, "content": [{"type": "data", "data": data}]}


WIRES = pytest.mark.parametrize("send", [chat, not_stored, responses, ag_ui, agent_api])


class Watching:
    """A runner that keeps what it was told of its run."""

    def __init__(self, **policy: Any) -> None:
        self.policy = policy
        self.told: list[Any] = []
        self.contexts: list[AgentRunContext] = []

    async def says(self, context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        history = host.history
        backward = await history.page(before_cursor=context.context.latest_cursor)
        forward = await history.page(direction="forward")
        halves = [await history.page(limit=2)]
        while halves[-1].has_more:
            halves.append(await history.page(limit=2, before_cursor=halves[-1].next_cursor))
        found = await history.search("SECOND")
        self.contexts.append(context)
        self.told.append((backward, forward, halves, found))
        yield results.message(context.run_id, f"re {context.input.text}")

    def served(self, client: Client) -> Any:
        declared = manifest(f"python:w{uuid4().hex[:8]}", context=ContextPolicy(**self.policy))
        return bound(client.user, self.says, declared)


def shown(items: Any) -> list[tuple[Any, ...]]:
    return [(one.role, one.item_type, one.content, _without_nulls(one.content_json)) for one in items]


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(one) for key, one in value.items() if one is not None}
    return [_without_nulls(one) for one in value] if isinstance(value, list) else value


@WIRES
def test_what_a_client_sends_with_its_question_is_the_runs_history(client: Client, send: Send) -> None:
    watching = Watching(bootstrap="recent_tail")
    with watching.served(client):
        answer = send(client, STORY)
    assert answer.status_code == 200, answer.text
    assert "re third question" in answer.text
    (context,), ((backward, forward, halves, found),) = watching.contexts, watching.told
    assert context.event.event_type == "message.received"
    assert context.input.text == "third question"
    assert shown(backward.items) == TOLD[::-1]
    assert shown(forward.items) == TOLD
    assert [one.content for one in found.items] == ["second answer", "second question"]
    ids = [one.transcript_id for one in forward.items]
    assert len(set(ids)) == 6
    assert [one.transcript_id for page in halves for one in page.items] == ids[::-1]
    assert context.event.event_id not in {one.event_id for one in forward.items}
    assert context.bootstrap is not None
    inlined = [(one.role, one.content) for one in context.bootstrap.messages]
    assert inlined == [(one["role"], one["content"]) for one in STORY[:-1]]
    policy = context.context.inline_policy
    assert (policy.delivered_count, policy.source_total_count, policy.messages_complete) == (7, 7, True)
    assert context.context.has_history_before is False
    assert context.adapter is not None
    assert context.adapter["extra"]["system"] == ["Talk like a pirate."]


@WIRES
def test_a_runner_that_takes_its_own_context_is_told_that_there_is_more(
    client: Client, send: Send
) -> None:
    watching = Watching()
    with watching.served(client):
        send(client, STORY)
        send(client, STORY[-1:])
    many, one = watching.contexts
    assert (many.context.has_history_before, many.bootstrap) == (True, None)
    assert (one.context.has_history_before, shown(watching.told[1][0].items)) == (False, [])


def test_what_the_thread_holds_already_is_not_doubled(client: Client) -> None:
    """AG-UI's clients send the whole conversation with every turn, our answer under our id for it."""
    watching, thread = Watching(), {"threadId": str(uuid4())}
    with watching.served(client):
        assert ag_ui(client, STORY, **thread).status_code == 200
        answer = {
            "id": f"execution-{watching.contexts[0].run_id}",
            "role": "assistant",
            "content": "re third question",
        }
        again = [*as_ag_ui(STORY), answer, {"id": "m9", "role": "user", "content": "fourth question"}]
        assert ag_ui(client, [], messages=again, **thread).status_code == 200
    last = [one.content for one in watching.told[1][1].items]
    assert last == [one[2] for one in TOLD] + ["third question", "re third question"]
    assert watching.contexts[1].input.text == "fourth question"


@WIRES
def test_the_answer_of_a_clients_tool_goes_on_with_all_that_was_said(client: Client, send: Send) -> None:
    watching = Watching()
    with watching.served(client):
        answer = send(client, STORY[:6])
    assert answer.status_code == 200, answer.text
    (context,), ((backward, *_),) = watching.contexts, watching.told
    assert context.event.event_type == "approval.decided"
    (outcome,) = context.event.data["outcomes"]
    assert (outcome["tool_name"], outcome["parameters"]) == ("load", {"kg": 100})
    assert outcome["content"] == '{"plates":4}'
    assert shown(backward.items) == TOLD[4::-1]


def test_a_call_without_an_answer_and_an_answer_without_a_call_are_left_out(client: Client) -> None:
    watching = Watching()
    lone = {"role": "tool", "tool_call_id": "nobody", "content": "?"}
    said = [STORY[1], lone, *STORY[2:5], {"role": "user", "content": "never mind"}]
    with watching.served(client):
        assert ag_ui(client, said).status_code == 200
    assert shown(watching.told[0][0].items) == TOLD[2::-1]


def test_what_a_client_asks_beside_its_messages_is_in_the_context(client: Client) -> None:
    watching = Watching()
    tool = {"name": "load", "description": "Loads.", "parameters": {"type": "object"}}
    body = {
        "model": "demo",
        "input": "Hi",
        "instructions": "Be brief.",
        "tools": [{"type": "function", **tool}],
        "temperature": 0.5,
        "max_output_tokens": 50,
    }
    with watching.served(client):
        answer = client.http.post("/v1/responses", json=body)
    assert answer.status_code == 200, answer.text
    (context,) = watching.contexts
    assert context.adapter == {
        "extra": {
            "instructions": "Be brief.",
            "tools": [tool],
            "generation": {"temperature": 0.5, "max_tokens": 50},
        }
    }


def test_history_goes_to_a_provider_as_it_is(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    """As LangBot's local-agent builds its messages: `content_json` where there is one, else the text.

    A text run has its tools called before; a provider refuses their answers without the calls.
    """
    name = uuid4().hex
    provider.script(text("Squats."), text("More squats."), name=name)

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        page = await host.history.page()
        told = [
            msgspec.convert(one.content_json, Message)
            if one.content_json
            else Message(role=one.role, content=one.content)
            for one in reversed(page.items)
        ]
        asked = Message(role="user", content=context.input.text)
        answer = await host.models.invoke(context.resources.models[0].model_id, [*told, asked])
        yield results.message(context.run_id, text_in(answer.content))

    model = scripted(f"script:{name}").name
    with bound(client.user, says):
        first = client.start("legs", model)
        client.wait_for(first["run_id"], "completed")
        second = client.start("more", model, conversation_id=first["conversation_id"])
        assert client.wait_for(second["run_id"], "completed", "failed")["status"] == "completed"
    sent = provider.requests_for(f"script:{name}")[1].body["messages"]
    assert [one["role"] for one in sent] == ["user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["tool_call_id"] == sent[1]["tool_calls"][0]["id"]
    assert '"results":' in sent[2]["content"]
