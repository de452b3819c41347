"""What seed 004 lets a client say, and what the model is sent of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from agents.dialects import agent_api
from tests.agents.dialects.agent_api import oracle
from tests.agents.dialects.agent_api.exchange import TOOL, frames, process, said
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text

pytestmark = pytest.mark.once

Told = Callable[..., dict[str, Any]]


@pytest.fixture
def told(client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel) -> Told:
    """Send an input; the body that the provider is asked with."""

    def ask(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
        name = uuid4().hex
        provider.script(text("fine"), name=name)
        lines = frames(process(client, *messages, model=scripted(f"script:{name}").name, **more))
        assert lines[-1]["status"] == "completed"
        [asked] = provider.requests_for(f"script:{name}")
        body: dict[str, Any] = asked.body
        return body

    return ask


def data(kind: str, role: str, **value: Any) -> dict[str, Any]:
    return {"type": kind, "role": role, "content": [{"type": "data", "data": value}]}


def test_each_role_is_the_models_own(told: Told) -> None:
    asked = told(said("be brief", "system"), said("one"), said("two", "assistant"), said("three"))
    system, *others = asked["messages"]
    assert (system["role"], "be brief" in json.dumps(asked["messages"])) == ("system", True)
    spoken = [(one["role"], one["content"]) for one in others if one["role"] != "system"]
    assert spoken == [("user", "one"), ("assistant", "two"), ("user", "three")]


@pytest.mark.parametrize("kind", ["function_call", "plugin_call", "component_call", "mcp_call"])
def test_a_call_and_its_output_are_told_as_such(told: Told, kind: str) -> None:
    call = data(kind, "assistant", call_id="c1", name="get_weather", arguments='{"city": "Ulm"}')
    output = data(f"{kind}_output", "tool", call_id="c1", output="21 °C")
    asked = told(said("weather?"), call, output, tools=[TOOL])
    made, answer = asked["messages"][-2:]
    assert made["tool_calls"] == [
        {
            "id": "c1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city": "Ulm"}'},
        }
    ]
    assert (answer["role"], answer["tool_call_id"], answer["content"]) == ("tool", "c1", "21 °C")


def test_what_is_no_word_of_the_conversation_is_not_told(told: Told) -> None:
    """A client that sends back whole outputs brings these along."""
    unsaid = [
        data("mcp_list_tools", "assistant", server_label="files", tools=[{"name": "XX"}]),
        data("mcp_approval_request", "assistant", id="a1", name="XX", arguments="{}"),
        said("XX", "assistant") | {"type": "error"},
        {"type": "heartbeat", "role": "assistant"},
        said("XX", "assistant") | {"type": "reasoning"},
    ]
    asked = told(said("one"), *unsaid, said("two"))
    assert "XX" not in json.dumps(asked)
    spoken = [one["content"] for one in asked["messages"] if one["role"] != "system"]
    assert spoken == ["one", "two"]


def test_a_model_is_optional_here(client: Client) -> None:
    lines = frames(client.http.post("/process", json={"input": [said("chest?")]}))
    assert lines[-1]["status"] == "completed"
    run = client.run(lines[-1]["id"].removeprefix("response_"))
    assert run["model"] == "global:demo"  # tests/conftest.py says which


@pytest.mark.parametrize("stop", ["END", ["END", "STOP"]])
def test_every_parameter_of_the_answer_reaches_the_provider(told: Told, stop: Any) -> None:
    given = {
        "top_p": 0.5,
        "temperature": 0.25,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "max_tokens": 77,
        "seed": 7,
    }
    asked = told(said("hi"), **given, stop=stop, n=1)
    assert {name: asked.get(name) for name in given} == given
    assert asked["stop"] == ([stop] if isinstance(stop, str) else stop)


def test_a_function_is_offered_as_it_was_given(told: Told) -> None:
    asked = told(said("hi"), tools=[TOOL])
    offered = {tool["function"]["name"]: tool["function"] for tool in asked["tools"]}
    assert offered["get_weather"] == TOOL["function"]


def test_a_whole_content_is_put_into_a_message_as_the_seed_does() -> None:
    """Seed 004, builders §2: `message_builder.add_content(content)`."""
    for builders, models in ((agent_api, agent_api), (oracle.builders, oracle.models)):
        response = builders.ResponseBuilder(session_id="session_123")
        assert [response.created().status, response.in_progress().status] == ["created", "in_progress"]
        message = response.create_message_builder(role="assistant", message_type="message")
        message.add_content(models.TextContent(text="Hello", index=0))
        assert [one.text for one in message.complete().content] == ["Hello"]
        whole = response.completed()
        assert (whole.status, [one.id for one in whole.output]) == ("completed", [message.message_id])
