"""The tool loop: a model calls tools, reads what they found, and is asked again, on the real stack."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from pytest_django import Settings

from agents.json_schemas import helpers
from agents.providers.tool_names import ToolNames
from agents.tools import entry_points, registry
from agents.tools.base import Tool, ToolFailure, tool_context
from conversations.models import Message, Run
from tests.support.client import Client, ScriptedModel, read_sse
from tests.support.fakes.fake_model import Answer, FakeModel, text, tool_calls
from tests.support.properties.deep_schemas import doubling

pytestmark = pytest.mark.once

ECHO = {
    "type": "object",
    "properties": {"word": {"type": "string"}},
    "required": ["word"],
    "additionalProperties": False,
}
WEATHER = {"name": "get_weather", "description": "Weather", "parameters": {"type": "object"}}


class Effects:
    """A tool with a visible effect; it keeps what it was called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.together = 0
        self._now = 0

    async def call(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((arguments["word"], tool_context().call_id))
        self._now += 1
        self.together = max(self.together, self._now)
        await asyncio.sleep(0.05)
        self._now -= 1
        if arguments["word"] == "fail":
            raise ToolFailure("no_such_word", "This word is not known.")
        if arguments["word"] == "break":
            raise RuntimeError("secret-of-the-tool")
        return {"said": arguments["word"] * (60_000 if arguments["word"] == "long" else 1)}


@pytest.fixture
def effects(monkeypatch: pytest.MonkeyPatch) -> Effects:
    made = Effects()
    tool = Tool("test.echo", "Echoes.", ECHO, made.call, idempotent=False, timeout_s=2)
    known = {**registry._by_name(), tool.name: tool}
    monkeypatch.setattr(registry, "_by_name", lambda: known)
    return made


@pytest.fixture
def talk(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> Callable[..., tuple[Run, list[dict[str, Any]], list[dict[str, Any]]]]:
    """Run a conversation with a model that answers so; the run, its events, what the model was sent."""

    def run(*answers: Answer, **more: Any) -> tuple[Run, list[dict[str, Any]], list[dict[str, Any]]]:
        name = uuid4().hex
        provider.script(*answers, name=name)
        model = scripted(f"script:{name}").name
        given = {
            "threadId": str(uuid4()),
            "runId": uuid4().hex,
            "messages": [{"id": "1", "role": "user", "content": "go"}],
            "forwardedProps": {"model": model},
        } | more
        accepted = client.http.post("/api/v1/agent/runs", json=given).json()
        run_id = accepted["taskId"]
        with client.http.stream("GET", f"/api/v1/agent/runs/{run_id}/events") as response:
            seen = [frame.data for frame in read_sse(response)]
        asked = [request.body for request in provider.requests_for(f"script:{name}")]
        return Run.objects.get(pk=run_id), seen, asked

    return run


def echo(call_id: str, word: str) -> tuple[str, str, str]:
    return call_id, "test.echo", json.dumps({"word": word})


def results(seen: list[dict[str, Any]]) -> list[Any]:
    return [json.loads(event["content"]) for event in seen if event["type"] == "TOOL_CALL_RESULT"]


def test_a_tool_is_called_once_and_the_model_reads_its_answer(
    effects: Effects, talk: Callable[..., Any]
) -> None:
    run, seen, asked = talk(tool_calls(echo("c1", "hi")), text("Done."))
    assert effects.calls == [("hi", "c1")]
    assert (run.status, run.finish_reason) == ("completed", "stop")
    assert results(seen) == [{"said": "hi"}]
    call, answer = asked[1]["messages"][-2:]
    assert [made["id"] for made in call["tool_calls"]] == ["c1"]
    assert (answer["role"], answer["tool_call_id"], answer["content"]) == ("tool", "c1", '{"said":"hi"}')
    assert run.input_tokens > 0
    stored = Message.objects.filter(run_id=run.pk).exclude(role="activity").order_by("seq")
    assert [row.role for row in stored] == ["user", "tool", "assistant"]


def test_parallel_calls_run_at_the_same_time_and_keep_their_order(
    effects: Effects, talk: Callable[..., Any]
) -> None:
    _, seen, asked = talk(tool_calls(*(echo(f"c{n}", f"w{n}") for n in range(4))), text("Done."))
    assert effects.together == 4
    assert [m["tool_call_id"] for m in asked[1]["messages"][-4:]] == ["c0", "c1", "c2", "c3"]
    assert sorted(found["said"] for found in results(seen)) == ["w0", "w1", "w2", "w3"]


@pytest.mark.parametrize(
    ("word", "code"), [("fail", "no_such_word"), ("break", "tool_error"), (7, "invalid_arguments")]
)
def test_a_tool_that_fails_is_told_to_the_model_and_the_run_goes_on(
    effects: Effects, talk: Callable[..., Any], word: Any, code: str
) -> None:
    call = ("c1", "test.echo", json.dumps({"word": word}))
    run, seen, asked = talk(tool_calls(call), text("Sorry."))
    assert run.status == "completed"
    assert [found["error"]["code"] for found in results(seen)] == [code]
    told = json.loads(asked[1]["messages"][-1]["content"])["error"]
    assert told["code"] == code
    if code == "invalid_arguments":
        assert '$.word: 7 is not of type "string"' in told["message"]
        assert effects.calls == []
    assert "secret-of-the-tool" not in str(seen) + str(asked)


def test_arguments_that_take_too_long_to_check_are_refused_in_words(
    talk: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(helpers, "LIMIT_S", 1.0)
    deep = Tool("test.deep", "Deep.", doubling(40), Effects().call, idempotent=True, timeout_s=2)
    monkeypatch.setattr(registry, "_by_name", lambda: {deep.name: deep})
    run, seen, _ = talk(tool_calls(("c1", "test.deep", '{"a": "x"}')), text("Sorry."))
    assert run.status == "completed"
    assert results(seen)[0]["error"] == {
        "code": "invalid_arguments",
        "message": "The arguments could not be checked against the tool's schema: "
        "its schema takes too long to check.",
    }


def test_arguments_that_are_no_json_are_refused_in_words(
    effects: Effects, talk: Callable[..., Any]
) -> None:
    run, seen, _ = talk(tool_calls(("c1", "test.echo", '{"word": ')), text("Sorry."))
    assert run.status == "completed"
    assert [found["error"]["code"] for found in results(seen)] == ["invalid_arguments"]
    assert effects.calls == []


def test_a_tool_that_was_not_offered_is_refused(effects: Effects, talk: Callable[..., Any]) -> None:
    run, seen, _ = talk(tool_calls(("c1", "rm.rf", "{}")), text("Sorry."))
    assert run.status == "completed"
    assert [found["error"]["code"] for found in results(seen)] == ["tool_not_offered"]


def test_a_long_answer_is_cut_and_whole_in_its_artifact(
    effects: Effects, talk: Callable[..., Any]
) -> None:
    _, seen, asked = talk(tool_calls(echo("c1", "long")), text("Done."))
    (shown,) = results(seen)
    assert shown["artifact"]["size_bytes"] == 240_011
    assert len(shown["head"]) == 12_000
    told = json.loads(asked[1]["messages"][-1]["content"])
    assert told == shown
    assert "the first 12,000 of 240,011 characters" in told["note"]


def test_a_model_that_never_stops_calling_is_stopped(
    effects: Effects, talk: Callable[..., Any], settings: Settings
) -> None:
    settings.TOOL_STEPS = 3
    run, _, asked = talk(*(tool_calls(echo(f"c{n}", "again")) for n in range(9)))
    assert (run.status, run.error_code, len(asked)) == ("failed", "tool_limit_exceeded", 3)
    assert len(effects.calls) == 3


def test_ours_are_run_and_the_clients_are_left_when_both_are_called(
    effects: Effects, talk: Callable[..., Any]
) -> None:
    both = tool_calls(echo("c1", "hi"), ("c2", "get_weather", '{"city": "北京"}'))
    run, seen, asked = talk(both, tools=[WEATHER])
    assert (run.finish_reason, len(asked)) == ("tool_calls", 1)
    assert results(seen) == [{"said": "hi"}]
    started = [event["toolCallName"] for event in seen if event["type"] == "TOOL_CALL_START"]
    assert started == ["test.echo", "get_weather"]


@pytest.mark.parametrize("name", ["查天气", "get weather", "a" * 65, "7", "weather/now?", "x" * 200])
def test_a_clients_tool_of_any_name_is_called_and_answered_by_it(
    talk: Callable[..., Any], name: str
) -> None:
    """Providers take 64 letters, digits, _ and -; seed 000 has no rule for a tool's name."""
    names = ToolNames([name, "get_weather"])
    tools = [WEATHER, WEATHER | {"name": name}]
    called = tool_calls(("c1", names.to_provider(name), "{}"))
    run, seen, (asked,) = talk(called, tools=tools)
    offered = [tool["function"]["name"] for tool in asked["tools"]]
    assert {"get_weather", names.to_provider(name)} <= set(offered)
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", one) for one in offered)
    assert run.finish_reason == "tool_calls"
    assert [event["toolCallName"] for event in seen if event["type"] == "TOOL_CALL_START"] == [name]
    asking = {"id": "c1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    again = [
        {"id": "1", "role": "user", "content": "go"},
        {"id": "2", "role": "assistant", "toolCalls": [asking]},
        {"id": "3", "role": "tool", "toolCallId": "c1", "content": "sunny"},
    ]
    _, seen, (asked,) = talk(text("It is sunny."), tools=tools, messages=again)
    (call,) = next(said["tool_calls"] for said in asked["messages"] if said.get("tool_calls"))
    assert call["function"] == {"name": names.to_provider(name), "arguments": "{}"}
    assert "It is sunny." in "".join(event.get("delta", "") for event in seen)


def test_as_many_tools_as_a_body_holds_are_taken_and_a_limit_is_named(client: Client) -> None:
    def refused(**more: Any) -> dict[str, Any]:
        message = {"id": "1", "role": "user", "content": "go"}
        given = {"threadId": str(uuid4()), "runId": "r", "messages": [message]}
        response = client.http.post("/api/v1/agent/runs", json=given | more)
        answer: dict[str, Any] = response.json()
        return {} if response.status_code == 202 else answer

    many = [{"name": f"tool {place}"} for place in range(1_001)]
    assert refused(tools=many[:1_000], forwardedProps={"model": "demo"}) == {}
    assert refused(tools=many)["errors"] == [
        {"loc": ["body", "tools"], "msg": "may have at most 1,000 items", "type": "too_long"}
    ]
    assert refused(tools=[{"name": "x" * 201}])["detail"] == (
        "tools[0].name has 201 characters: at most 200 are taken."
    )


def test_a_model_that_takes_no_tools_is_offered_none(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> None:
    name = uuid4().hex
    provider.script(text("Hi."), name=name)
    accepted = client.start(model=scripted(f"script:{name}").name, enable_exercise_search=False)
    client.watch(accepted["run_id"])
    assert "tools" not in provider.requests_for(f"script:{name}")[0].body


def test_a_package_adds_a_tool_by_an_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    tool = Tool("theirs", "Theirs.", {"type": "object"}, Effects().call, idempotent=True, timeout_s=1)

    class Entry:
        def __init__(self, name: str, found: Any) -> None:
            self.name = name
            self._found = found

        def load(self) -> Any:
            if isinstance(self._found, Exception):
                raise self._found
            return self._found

    entries = [Entry("a", tool), Entry("b", ImportError("no")), Entry("c", "no tool"), Entry("d", tool)]
    monkeypatch.setattr(entry_points, "entry_points", lambda group: entries)
    registry.clear_cache()
    try:
        assert registry.find("theirs") is tool
        assert registry.all_tools()[-1] is tool
    finally:
        registry.clear_cache()
