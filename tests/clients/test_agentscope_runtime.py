"""agentscope-runtime's own client of the Agent API, unmodified; its objects too."""

from __future__ import annotations

import json

from tests.clients.conftest import Play
from tests.clients.shared import WARM, WEATHER_CALL
from tests.support.fakes.fake_model import text

CLIENT = "agentscope-runtime"


def test_a_session_goes_on_and_another_begins_anew(play: Play) -> None:
    seen = play("two_turns", text("Hello, Ada."), text("You are Ada."), text("I do not know."))
    assert seen.lines == [
        ["user: I am Ada."],
        ["user: I am Ada.", "assistant: Hello, Ada.", "user: Who am I?"],
        ["user: Who am I?"],
    ]
    assert seen.got == ["Hello, Ada.", "You are Ada.", "I do not know."]


def test_an_asynchronous_stream(play: Play) -> None:
    assert play("asynchronous", text("one ", "two")).got == "one two"


def test_a_tool_and_its_answer(play: Play) -> None:
    seen = play("tool_and_answer", WEATHER_CALL, text("Yes."))
    assert seen.lines[1] == ["user: Is it warm in Ulm?", *WARM]
    name, arguments, answer = seen.got
    assert (name, json.loads(arguments), answer) == ("get_weather", {"city": "Ulm"}, "Yes.")
