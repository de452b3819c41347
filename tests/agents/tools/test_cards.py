"""Cards that a model shows by the reserved tool `parley.show`: its message's hints, no tool noise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from agents.models import ToolPolicy
from agents.tools import offered_tools
from conversations.cards.model_hints import SHOW
from conversations.models import Message, Run
from prompts import app_settings
from prompts.models import AppSetting
from tests.support.client import Client, ScriptedModel, read_sse
from tests.support.fakes.fake_model import Answer, FakeModel, text, tool_calls

pytestmark = pytest.mark.once

CARD = {"title": "Plan", "items": [{"title": "Squat", "description": "3 × 5"}]}


@pytest.fixture
def granted() -> Iterator[None]:
    """Staff let models show cards."""
    ToolPolicy.objects.create(tool=SHOW)
    offered_tools.clear_cache()
    yield
    ToolPolicy.objects.filter(tool=SHOW).delete()
    offered_tools.clear_cache()


@pytest.fixture
def visible() -> Iterator[None]:
    app_settings.change("show_tool_visible", True, by=None)
    app_settings.clear_cache()
    yield
    AppSetting.objects.filter(pk="show_tool_visible").delete()
    app_settings.clear_cache()


@pytest.fixture
def talk(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> Callable[..., Any]:
    def run(*answers: Answer) -> tuple[Run, list[Any], list[Any], list[Any]]:
        name = uuid4().hex
        provider.script(*answers, name=name)
        body: dict[str, Any] = {
            "threadId": str(uuid4()),
            "runId": uuid4().hex,
            "messages": [{"id": "1", "role": "user", "content": "go"}],
            "forwardedProps": {"model": scripted(f"script:{name}").name},
        }
        run_id = client.http.post("/api/v1/agent/runs", json=body).json()["taskId"]
        with client.http.stream("GET", f"/api/v1/agent/runs/{run_id}/events") as response:
            seen = [frame.data for frame in read_sse(response)]
        asked = [request.body for request in provider.requests_for(f"script:{name}")]
        said = [one for one in client.history(body["threadId"])["messages"] if one["role"] != "user"]
        return (
            Run.objects.get(pk=run_id),
            seen,
            asked,
            [one for one in said if one["role"] != "activity"],
        )

    return run


def showing(card: Any, call_id: str = "c1") -> tuple[str, str, str]:
    return call_id, "parley_show", json.dumps(card)


def spoken(*calls: tuple[str, str, str], words: str) -> Answer:
    """Words, then calls, in one breath."""
    called = tool_calls(*calls)
    return Answer((called.steps[0], *text(words).steps[1:2], *called.steps[1:]))


def titles(said: list[Any]) -> list[tuple[str, str | None]]:
    """The text of each message and the title of its card."""
    return [
        (one["content"], one["uiSchema"] and one["uiSchema"]["root"]["children"][0]["content"])
        for one in said
    ]


@pytest.mark.usefixtures("granted")
def test_a_card_goes_with_the_words_that_follow_it_and_nothing_tells_of_a_tool(
    talk: Callable[..., Any],
) -> None:
    run, seen, asked, said = talk(tool_calls(showing(CARD)), text("Here it is."))
    assert (run.status, run.finish_reason) == ("completed", "stop")
    assert titles(said) == [("Here it is.", "Plan")]
    assert not [event for event in seen if event["type"].startswith("TOOL_CALL")]
    assert [json.loads(m["content"]) for m in asked[1]["messages"] if m["role"] == "tool"] == [
        {"shown": True}
    ]


@pytest.mark.usefixtures("granted")
def test_a_card_goes_with_the_words_of_the_same_breath(talk: Callable[..., Any]) -> None:
    _, _, _, said = talk(spoken(showing(CARD), words="My plan:"), text("Any questions?"))
    assert titles(said) == [("My plan:", "Plan"), ("Any questions?", None)]


@pytest.mark.usefixtures("granted")
def test_cards_without_words_are_said_in_words(talk: Callable[..., Any]) -> None:
    both = tool_calls(showing(CARD), showing({"title": "Rest", "body": "Two minutes."}, "c2"))
    _, _, _, said = talk(both, text())
    assert titles(said) == [("Plan\n- Squat: 3 × 5", "Plan"), ("Rest\nTwo minutes.", "Rest")]


@pytest.mark.usefixtures("granted")
@pytest.mark.parametrize("wrong", [{}, {"title": ""}, {"titel": "Plan"}, {"items": "Squat"}, []])
def test_hints_that_are_wrong_are_told_to_the_model_which_mends_them(
    talk: Callable[..., Any], wrong: Any
) -> None:
    _, _, asked, said = talk(
        tool_calls(showing(wrong)), tool_calls(showing(CARD, "c2")), text("Here it is.")
    )
    told = json.loads(asked[1]["messages"][-1]["content"])
    assert told["error"]["code"] == "invalid_arguments"
    assert titles(said) == [("Here it is.", "Plan")]


@pytest.mark.usefixtures("granted", "visible")
def test_the_calls_are_events_where_they_are_to_be_seen(talk: Callable[..., Any]) -> None:
    run, seen, _, said = talk(tool_calls(showing(CARD)), text("Here it is."))
    assert [e["toolCallName"] for e in seen if e["type"] == "TOOL_CALL_START"] == ["parley.show"]
    assert titles([one for one in said if one["role"] == "assistant"]) == [("Here it is.", "Plan")]
    assert Message.objects.filter(run_id=run.pk, role="tool").count() == 1


def test_without_a_policy_no_model_is_offered_it(talk: Callable[..., Any]) -> None:
    _, seen, asked, _ = talk(tool_calls(showing(CARD)), text("Well."))
    assert "parley_show" not in {tool["function"]["name"] for tool in asked[0]["tools"]}
    (result,) = [json.loads(e["content"]) for e in seen if e["type"] == "TOOL_CALL_RESULT"]
    assert result["error"]["code"] == "tool_not_offered" if "error" in result else result


def test_the_demo_shows_what_it_finds(client: Client) -> None:
    started = client.start("Show me exercises for my chest, bench press")
    assert client.watch(started["run_id"])[-1].event == "completed"
    (said,) = [
        one
        for one in client.history(started["conversation_id"])["messages"]
        if one["role"] == "assistant"
    ]
    assert said["uiSchema"]["root"]["children"][0]["content"] == "From the exercise library"
    stored = Message.objects.get(run_id=started["run_id"], role="assistant")
    assert stored.content == said["content"]
