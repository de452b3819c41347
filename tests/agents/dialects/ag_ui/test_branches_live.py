"""Unmodified AG-UI clients that ask again, edit and go back: what the model is sent, what is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.dialects.ag_ui.conftest import Open
from tests.agents.dialects.ag_ui.messages import Seen, sound, user
from tests.support.chat import Chat
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text


class Person:
    """Somebody who talks through a real client, and changes their mind."""

    def __init__(self, chat: Chat, open_agent: Open) -> None:
        self.chat = chat
        self._agent = open_agent(threadId=chat.thread_id, url=f"{chat.client.url}/api/v1/agent/ag-ui")
        self.seen: Seen = {}

    def run(self, answer: str, **given: Any) -> list[str]:
        """Run the client; the texts that the model was sent."""
        model = self.chat.script(text(answer))
        params = {"forwardedProps": {"model": model}} | given.pop("params", {})
        self.seen = sound(self._agent.run(params=params, **given))
        return [said for _, said in self.chat.told()]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return list(self.seen["messages"])


@pytest.fixture
def person(
    open_agent: Open, client: Client, provider: FakeModel, scripted: Callable[..., ScriptedModel]
) -> Person:
    return Person(Chat(client, provider, scripted), open_agent)


def spoken(seen: Seen) -> list[str]:
    return [message["content"] for message in seen["messages"]]


def test_a_story_with_second_thoughts(person: Person, open_agent: Open, client: Client) -> None:
    assert person.run("a1", add=[user("one", "u1")]) == ["one"]
    assert person.run("a2", add=[user("two", "u2")]) == ["one", "a1", "two"]
    first = person.messages
    assert person.run("a3", show=first[:3]) == ["one", "a1", "two"]
    assert spoken(person.seen) == ["one", "a1", "two", "a3"]
    assert person.run("a4", add=[user("three", "u3")]) == ["one", "a1", "two", "a3", "three"]
    edited = [*first[:2], first[2] | {"content": "TWO"}]
    assert person.run("a5", show=edited) == ["one", "a1", "TWO"]
    assert person.run("a6", show=[user("ONE", "u9")]) == ["ONE"]
    assert person.run("a7", add=[user("and?", "u10")]) == ["ONE", "a6", "and?"]
    assert person.run("a8", show=first, add=[user("back", "u11")]) == ["one", "a1", "two", "a2", "back"]
    leading = {"id": "s", "role": "system", "content": "be brief"}
    assert person.run("a9", show=[leading, *person.messages], add=[user("now?", "u12")]) == [
        "be brief", "one", "a1", "two", "a2", "back", "a8", "now?",
    ]  # fmt: skip
    connect = f"{client.url}/api/v1/agent/threads/{person.chat.thread_id}/connect"
    again = sound(open_agent(threadId=person.chat.thread_id).run(connect=connect))
    assert spoken(again) == [*spoken(person.seen)]
    assert [message["id"] for message in again["messages"]] == [
        message["id"] for message in person.messages
    ]


def test_a_client_that_comes_back_from_a_snapshot_has_changed_nothing(
    person: Person, open_agent: Open, client: Client
) -> None:
    person.run("a1", add=[user("one")])
    person.run("a2", show=person.messages[:1])
    connect = f"{client.url}/api/v1/agent/threads/{person.chat.thread_id}/connect"
    shown = sound(open_agent(threadId=person.chat.thread_id).run(connect=connect))["messages"]
    other = Person(person.chat, open_agent)
    assert other.run("a3", show=shown, add=[user("two")]) == ["one", "a2", "two"]
    detail = client.http.get(f"/api/v1/agent/threads/{person.chat.thread_id}").json()
    assert len(detail["branches"]) == 2
