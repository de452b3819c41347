"""CopilotKit's own runtime, unmodified, as docs/clients/copilotkit.md says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.dialects.ag_ui.conftest import scripted_runs  # noqa: F401 (a fixture)
from tests.agents.dialects.ag_ui.messages import WEATHER, user
from tests.clients.conftest import Play
from tests.clients.environments import PROGRAMS, is_played
from tests.support.client import Client
from tests.support.fakes.fake_model import text
from tests.support.paths import ROOT

CLIENT = "copilotkit"
Through = Callable[..., dict[str, Any]]


@pytest.fixture
def through(play: Play) -> Through:
    """What a browser made of a conversation without a model of the test's own."""

    def talk(**given: Any) -> dict[str, Any]:
        got: dict[str, Any] = play("talk", **({"threadId": str(uuid4())} | given)).got
        return got

    return talk


def spoken(messages: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    return [(message["role"], message.get("content")) for message in messages]


def test_turns_with_full_history_and_a_replay_from_our_log(through: Through, client: Client) -> None:
    thread_id = str(uuid4())
    turns = [user("hello"), user("练胸有什么动作？")]
    seen = through(threadId=thread_id, turns=turns, forwardedProps={"model": "demo"})
    assert "failure" not in seen
    assert [kinds[0] for kinds in seen["runs"]] == ["RUN_STARTED"] * 2
    assert [kinds[-1] for kinds in seen["runs"]] == ["RUN_FINISHED"] * 2
    assert spoken(seen["replayed"]) == spoken(seen["messages"])
    stored = client.history(thread_id)["messages"]
    assert [said["content"] for said in stored if said["role"] == "user"] == [
        turn["content"] for turn in turns
    ]


def test_an_answer_that_is_asked_for_again_and_a_question_that_is_edited(play: Play) -> None:
    again, other = {"keep": 1}, {"keep": 0, "message": user("Pick a colour.")}
    turns = [user("Pick a number."), again, user("Why?"), other]
    answers = [text(said) for said in ("Seven.", "Eight.", "Because.", "Red.")]
    seen = play("talk", *answers, threadId=str(uuid4()), turns=turns)
    asked = "user: Pick a number."
    assert seen.lines == [
        [asked],
        [asked],
        [asked, "assistant: Eight.", "user: Why?"],
        ["user: Pick a colour."],
    ]
    assert "failure" not in seen.got
    shown = [("user", "Pick a colour."), ("assistant", "Red.")]
    assert (spoken(seen.got["messages"]), spoken(seen.got["replayed"])) == (shown, shown)


def test_frontend_tools_reach_the_browser(through: Through) -> None:
    asked = user('Please get_weather {"city": "Oslo"}')
    seen = through(turns=[asked], tools=[WEATHER], forwardedProps={"model": "demo"})
    calls = [call for said in seen["messages"] for call in said.get("toolCalls", [])]
    assert [call["function"]["name"] for call in calls] == ["get_weather"]


def test_the_browsers_answer_to_a_frontend_tool_goes_on(through: Through) -> None:
    turns = [user('Please get_weather {"city": "Oslo"}'), {"answer": "12 °C, rain"}]
    seen = through(turns=turns, tools=[WEATHER], forwardedProps={"model": "demo"})
    assert "failure" not in seen
    assert "12 °C, rain" in seen["messages"][-1]["content"]
    assert [kinds[-1] for kinds in seen["runs"]] == ["RUN_FINISHED"] * 2


@pytest.mark.usefixtures("scripted_runs")
def test_reasoning_tools_state_and_activities_arrive(through: Through) -> None:
    props = {"model": "demo", "script": "everything"}
    seen = through(turns=[user("go")], forwardedProps=props)
    assert "failure" not in seen
    said = {message["role"]: message.get("content") for message in seen["messages"]}
    assert said["reasoning"] == "let me think"
    assert said["activity"]["artifact_id"] == "chart"
    assert said["assistant"] == "Here it is."
    assert seen["state"] == {"count": 1, "items": ["a", "b"], "deep": {"er": True}}
    assert [m["role"] for m in seen["replayed"]] == [m["role"] for m in seen["messages"]]


@pytest.mark.parametrize(
    ("resume", "told"),
    [
        ({"status": "resolved", "payload": {"approved": True}}, "buy milk"),
        ({"status": "resolved", "payload": {"approved": False, "reason": "no"}}, "approval_refused"),
        ({"status": "cancelled"}, "approval_refused"),
    ],
)
def test_an_interrupt_is_answered(through: Through, resume: dict[str, Any], told: str) -> None:
    turns = [user("approve demo.note buy milk"), {"resume": resume}]
    seen = through(turns=turns, forwardedProps={"model": "demo"})
    assert "failure" not in seen
    assert seen["interrupts"] == []
    [answer] = [message["content"] for message in seen["messages"] if message["role"] == "tool"]
    assert told in answer
    assert spoken(seen["replayed"]) == spoken(seen["messages"])


@pytest.mark.skipif(not is_played(CLIENT), reason="a request that is broken off cannot be sent again")
@pytest.mark.usefixtures("scripted_runs")
def test_stop_ends_the_run_here(through: Through, client: Client) -> None:
    thread_id = str(uuid4())
    props = {"model": "demo", "script": "endless"}
    through(threadId=thread_id, turns=[user("speak")], stopAfter=8, forwardedProps=props)
    run_id = _newest_run(client)
    client.wait_for(run_id, "cancelled")


def _newest_run(client: Client) -> str:
    from conversations.models import Run

    newest: Run = Run.objects.filter(owner=client.user).latest("created_at")
    return newest.id.hex


def test_the_page_of_the_docs_shows_what_is_tested_here() -> None:
    page = (ROOT / "docs" / "clients" / "copilotkit.md").read_text()
    for said in ("class DurableRunner extends InMemoryAgentRunner", '"X-On-Disconnect": "cancel"'):
        assert said in page
        assert said in (PROGRAMS / "copilotkit.mjs").read_text()
