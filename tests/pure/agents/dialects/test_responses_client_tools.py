"""Tools of OpenAI's wire that are no plain function: of a namespace, and custom ones, there and back."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agents.dialects.openai_responses import dialect as responses
from agents.dialects.openai_responses import input_items
from agents.requests import AskedCall, RunRequest, ToolChoice
from config.errors import InvalidRequest
from conversations import events
from tests.agents.dialects.agent_api.runs import HEAD, RUN, frames
from tests.support.properties import strategies

SPAWN = {
    "type": "function",
    "name": "spawn",
    "description": "Make one.",
    "parameters": {"type": "object"},
}
CLOSE = {"type": "function", "name": "close", "parameters": {"type": "object"}}
AGENTS = {"type": "namespace", "name": "agents", "description": "Helpers.", "tools": [SPAWN, CLOSE]}
PATCH = {
    "type": "custom",
    "name": "apply_patch",
    "description": "Change files.",
    "format": {"type": "grammar", "syntax": "lark", "definition": 'start: "x"'},
}


def parsed(**body: Any) -> RunRequest:
    return responses.parse({"model": "demo", "input": "Hi."} | body, request_id="r")


def refused(**body: Any) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as caught:
        parsed(**body)
    return caught.value


def test_a_namespace_is_offered_as_functions_that_bear_its_name() -> None:
    spawn, close = parsed(tools=[AGENTS]).tools
    assert (spawn.name, spawn.description) == ("agents__spawn", "Helpers.\n\nMake one.")
    assert (close.name, close.description) == ("agents__close", "Helpers.")


def test_a_custom_tool_is_offered_as_a_function_of_one_text() -> None:
    [patch] = parsed(tools=[PATCH]).tools
    assert (patch.name, patch.strict, [*patch.parameters["properties"]]) == (
        "apply_patch",
        True,
        ["input"],
    )
    assert patch.description == (
        'Change files.\n\nThe input must follow this grammar (lark):\nstart: "x"'
    )
    [inner] = parsed(tools=[AGENTS | {"tools": [PATCH | {"format": {"type": "text"}}]}]).tools
    assert (inner.name, inner.description) == ("agents__apply_patch", "Helpers.\n\nChange files.")


@pytest.mark.parametrize("plain_first", [True, False])
def test_two_tools_of_one_name_are_refused(plain_first: bool) -> None:
    plain = {"type": "function", "name": "agents__spawn", "parameters": {}}
    error = refused(tools=[plain, AGENTS] if plain_first else [AGENTS, plain])
    assert error.detail.endswith("another tool of the request is called so.")


def test_more_tools_than_are_taken_are_refused_in_namespaces_too() -> None:
    many = [CLOSE | {"name": f"f{number}"} for number in range(600)]
    spaces = [AGENTS | {"name": name, "tools": many} for name in "ab"]
    assert refused(tools=spaces).error_code == "tool_not_supported"


def test_a_choice_of_one_of_them() -> None:
    both = [AGENTS, PATCH]
    spawn = parsed(tools=both, tool_choice={"type": "function", "name": "spawn", "namespace": "agents"})
    assert spawn.tool_choice == ToolChoice(True, "agents__spawn")
    patch = parsed(tools=both, tool_choice={"type": "custom", "name": "apply_patch"})
    assert patch.tool_choice == ToolChoice(True, "apply_patch")
    for other in ({"type": "function", "name": "apply_patch"}, {"type": "custom", "name": "spawn"}):
        assert refused(tools=both, tool_choice=other).error_code == "invalid_tool_choice"
    allowed: Any = {"type": "allowed_tools", "mode": "auto"}
    some = allowed | {"tools": [{"type": "namespace", "name": "agents"}]}
    assert [tool.name for tool in parsed(tools=both, tool_choice=some).tools] == [
        "agents__spawn",
        "agents__close",
    ]
    one = allowed | {"tools": [{"type": "custom", "name": "apply_patch"}]}
    assert [tool.name for tool in parsed(tools=both, tool_choice=one).tools] == ["apply_patch"]


def test_a_choice_in_the_words_of_chat_completions_is_taken_and_repeated_in_those_of_this_wire() -> None:
    choice = {"type": "function", "function": {"name": "close"}}
    asked = parsed(tools=[CLOSE], tool_choice=choice)
    assert asked.tool_choice == ToolChoice(True, "close")
    assert asked.wire["echo"]["tool_choice"] == {"type": "function", "name": "close"}
    odd = choice | {"function": {"name": "close", "arguments": "{}"}}
    assert refused(tools=[CLOSE], tool_choice=choice | {"more": 1}).error_code == "invalid_tool_choice"
    assert refused(tools=[CLOSE], tool_choice=odd).error_code == "invalid_tool_choice"


def test_a_search_that_may_not_fetch_is_asked_for() -> None:
    assert parsed(tools=[{"type": "web_search", "external_web_access": False}]).search == "kept"
    assert parsed(tools=[{"type": "web_search", "external_web_access": True}]).search == "any"


SAID: list[dict[str, Any]] = [
    {"type": "function_call", "call_id": "1", "namespace": "agents", "name": "spawn", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "1", "output": "made"},
    {"type": "custom_tool_call", "call_id": "2", "name": "apply_patch", "input": 'a "b"'},
    {"type": "custom_tool_call_output", "call_id": "2", "output": "done"},
]


def test_earlier_calls_are_told_under_the_names_that_are_offered() -> None:
    spawn, made, patch, done = parsed(tools=[AGENTS, PATCH], input=SAID).messages
    assert spawn.tool_calls == (AskedCall("1", "agents__spawn", "{}"),)
    assert patch.tool_calls == (AskedCall("2", "apply_patch", '{"input":"a \\"b\\""}'),)
    assert (made.tool_call_id, made.content, done.tool_call_id) == ("1", "made", "2")


def test_what_was_said_is_listed_as_it_was_sent() -> None:
    asked = parsed(tools=[AGENTS, PATCH], input=SAID)
    listed = [
        msgspec.to_builtins(item)
        for said in asked.messages
        for item in input_items.to_input_items(RUN, said, wire=asked.wire, sign=lambda *_: "")
    ]
    assert [
        {key: item[key] for key in said} for item, said in zip(listed[::2], SAID[::2], strict=True)
    ] == SAID[::2]
    assert [item["output"] for item in listed[1::2]] == ["made", "done"]


def test_their_calls_go_out_as_they_were_offered() -> None:
    asked = parsed(tools=[AGENTS, PATCH, CLOSE])
    head = replace(HEAD, wire=asked.wire)
    given = strategies.numbered(
        [
            events.ToolCallStarted("c1", "agents__spawn", {"a": 1}, "frontend"),
            events.ToolCallStarted("c2", "apply_patch", {"input": "*** Begin"}, "frontend"),
            events.ToolCallStarted("c3", "close", {}, "frontend"),
            events.RunCompleted("tool_calls"),
        ]
    )
    lines = [json.loads(frame.data) for frame in frames(responses, given, head)]
    spawn, patch, close = lines[-1]["response"]["output"]
    assert (spawn["type"], spawn["namespace"], spawn["name"]) == ("function_call", "agents", "spawn")
    assert (patch["type"], patch["name"], patch["input"]) == (
        "custom_tool_call",
        "apply_patch",
        "*** Begin",
    )
    assert "arguments" not in patch
    assert (close["name"], "namespace" in close) == ("close", False)
    typed = [line for line in lines if line["type"].startswith("response.custom_tool_call_input")]
    assert [line.get("delta", line.get("input")) for line in typed] == ["*** Begin"] * 2
