"""Unmodified AG-UI clients of both generations that change their mind: what the model was sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.agents.dialects.ag_ui.conftest import Open, clients, generation, open_agent  # noqa: F401 (fixtures)
from tests.agents.dialects.ag_ui.messages import WEATHER, sound, user
from tests.agents.dialects.ag_ui.node import RealClient
from tests.clients.conftest import Told
from tests.clients.shared import WARM, WEATHER_CALL, image_url
from tests.clients.stories import said, system
from tests.support.client import Client
from tests.support.fakes.fake_model import Answer, text

Message = dict[str, Any]


class Talk:
    """A client's conversation with a model that gives these answers."""

    def __init__(self, agent: RealClient, model: Told) -> None:
        self._agent, self._model = agent, model
        self.messages: list[Message] = []

    def run(self, messages: list[Message], **params: Any) -> dict[str, Any]:
        """A run of what the client shows now; what it shows afterwards is in `messages`."""
        given = {"forwardedProps": {"model": self._model.name}} | params
        seen = sound(self._agent.run(show=messages, params=given))
        self.messages = seen["messages"]
        return seen

    def say(self, content: Any) -> dict[str, Any]:
        return self.run([*self.messages, user(content)])

    @property
    def lines(self) -> list[list[str]]:
        return [said(body) for body in self._model.sent]

    @property
    def systems(self) -> list[str]:
        return [system(body) for body in self._model.sent]

    @property
    def shown(self) -> list[str]:
        return spoken(self.messages)


def spoken(messages: list[Message]) -> list[str]:
    return [f"{m['role']}: {m['content']}" for m in messages if m.get("content")]


@pytest.fixture
def thread_id() -> str:
    return str(uuid4())


@pytest.fixture
def talk(
    open_agent: Open,  # noqa: F811
    client: Client,
    model: Callable[..., Told],
    thread_id: str,
) -> Callable[..., Talk]:
    def begin(*answers: Answer) -> Talk:
        url = f"{client.url}/api/v1/agent/ag-ui"
        return Talk(open_agent(url=url, threadId=thread_id), model(*answers))

    return begin


def test_an_answer_is_asked_for_again_and_the_next_turn_follows_the_new_one(
    talk: Callable[..., Talk],
) -> None:
    one = talk(text("Seven."), text("Eight."), text("Because."))
    one.say("Pick a number.")
    one.run(one.messages[:1])
    one.say("Why?")
    asked = "user: Pick a number."
    assert one.lines == [[asked], [asked], [asked, "assistant: Eight.", "user: Why?"]]
    assert one.shown == [asked, "assistant: Eight.", "user: Why?", "assistant: Because."]


def test_an_edited_question_under_a_new_id_begins_anew(talk: Callable[..., Talk]) -> None:
    one = talk(text("Hello, Ada."), text("Ada."), text("Hello, Bob."), text("Bob."))
    one.say("I am Ada.")
    one.say("Who am I?")
    one.run([user("I am Bob.")])
    one.say("Who am I now?")
    assert one.lines[2:] == [
        ["user: I am Bob."],
        ["user: I am Bob.", "assistant: Hello, Bob.", "user: Who am I now?"],
    ]


def test_an_edited_question_under_its_own_id_begins_anew(talk: Callable[..., Talk]) -> None:
    one = talk(text("Hello, Ada."), text("Hello, Bob."))
    one.say("I am Ada.")
    one.run([one.messages[0] | {"content": "I am Bob."}])
    assert one.lines == [["user: I am Ada."], ["user: I am Bob."]]
    assert one.shown == ["user: I am Bob.", "assistant: Hello, Bob."]


def test_a_question_in_the_middle_is_taken_back(talk: Callable[..., Talk]) -> None:
    one = talk(text("Ulm."), text("Lima."), text("Abéché."))
    one.say("Pick a city.")
    first = one.messages
    one.say("And one in Peru?")
    one.run([*first, user("And one in Chad?")])
    assert one.lines[2] == ["user: Pick a city.", "assistant: Ulm.", "user: And one in Chad?"]


def test_a_system_message_is_changed_and_one_is_added_in_front(talk: Callable[..., Talk]) -> None:
    one = talk(text("Hello."), text("Ahoy."), text("Order!"))
    one.say("Hello.")
    system_message = {"id": str(uuid4()), "role": "system", "content": "Talk like a pirate."}
    one.run([system_message, *one.messages, user("Again.")])
    changed = one.messages[0] | {"content": "Talk like a judge."}
    one.run([changed, *one.messages[1:], user("Once more.")])
    assert ["pirate" in told for told in one.systems] == [False, True, False]
    assert ["judge" in told for told in one.systems] == [False, False, True]
    assert one.lines[2] == [
        "user: Hello.",
        "assistant: Hello.",
        "user: Again.",
        "assistant: Ahoy.",
        "user: Once more.",
    ]


def test_a_run_names_the_run_that_it_goes_on_from(talk: Callable[..., Talk]) -> None:
    one = talk(text("Ulm."), text("Lima."), text("Abéché."))
    first = str(uuid4())
    one.run([user("Pick a city.")], runId=first)
    shown = one.messages
    one.say("And one in Peru?")
    one.run([*shown, user("And one in Chad?")], parentRunId=first)
    assert one.lines[2] == ["user: Pick a city.", "assistant: Ulm.", "user: And one in Chad?"]


def test_a_second_window_is_shown_the_branch_that_was_last_continued(
    talk: Callable[..., Talk],
    open_agent: Open,  # noqa: F811
    client: Client,
    thread_id: str,
) -> None:
    one = talk(text("Seven."), text("Eight."))
    one.say("Pick a number.")
    one.run(one.messages[:1])
    address = f"{client.url}/api/v1/agent/threads/{thread_id}/connect"
    other = sound(open_agent(threadId=thread_id).run(connect=address))
    assert spoken(other["messages"]) == ["user: Pick a number.", "assistant: Eight."]
    assert [m["content"] for m in client.history(thread_id)["messages"]] == ["Pick a number.", "Eight."]


def test_a_frontend_tool_and_its_answer(talk: Callable[..., Talk]) -> None:
    one = talk(WEATHER_CALL, text("Yes."))
    seen = one.run([user("Is it warm in Ulm?")], tools=[WEATHER])
    (call,) = seen["called"]
    told = {"id": str(uuid4()), "role": "tool", "toolCallId": call["id"], "content": "21 °C"}
    one.run([*one.messages, told], tools=[WEATHER])
    assert one.lines[1] == ["user: Is it warm in Ulm?", *WARM]
    assert one.shown[-1] == "assistant: Yes."


def test_an_image_stays_in_the_conversation(talk: Callable[..., Talk]) -> None:
    one = talk(text("A cat."), text("Black."))
    source = {"type": "data", "value": image_url().partition(",")[2], "mimeType": "image/png"}
    one.say([{"type": "text", "text": "What is it?"}, {"type": "image", "source": source}])
    one.say("What colour?")
    shown = "user: What is it? [image_url]"
    assert one.lines == [[shown], [shown, "assistant: A cat.", "user: What colour?"]]
