"""OpenAI's Node SDK, unmodified: both of its APIs."""

from __future__ import annotations

import json

from tests.clients.conftest import Play
from tests.clients.shared import FORCED, HI, UNKNOWN_MODEL, WARM, WEATHER_CALL
from tests.support.fakes.fake_model import text

CLIENT = "openai-node"
ASKED = "user: Is it warm in Ulm?"


def test_a_second_turn_goes_on_and_its_instructions_replace_the_first_ones(play: Play) -> None:
    seen = play("two_turns", text("Ahoy, Ada."), text("You are Ada."))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, False]
    assert ["judge" in told for told in seen.systems] == [False, True]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


def test_streams(play: Play) -> None:
    assert play("stream", text("one ", "two"), text("three")).got == ["one two", "three"]


def test_a_tool_and_its_answer(play: Play) -> None:
    seen = play("tool_and_answer", WEATHER_CALL, text("Yes."))
    assert seen.lines == [[ASKED], [ASKED, *WARM]]
    name, arguments, answer = seen.got
    assert (name, json.loads(arguments), answer) == ("get_weather", {"city": "Ulm"}, "Yes.")


def test_a_tool_that_must_be_called_and_then_none(play: Play) -> None:
    seen = play("forced_tool", WEATHER_CALL, HI)
    assert (seen.sent[0]["tool_choice"], seen.tools[0]) == ("required", ["get_weather"])
    assert not seen.tools[1] or seen.sent[1]["tool_choice"] == "none"
    assert seen.got == ["get_weather", "Hi."]


def test_errors_can_be_read_and_the_next_request_works(play: Play) -> None:
    printed, right = play("wrong_then_right", HI).got
    assert printed.startswith(f"NotFoundError: 404 {UNKNOWN_MODEL}")
    assert printed.endswith("(model_not_found)")
    assert right == "Hi."


def test_models_are_listed_and_a_listed_one_is_used(play: Play) -> None:
    assert play("models", HI).got == [True, "Hi."]


def test_chat_a_second_turn_with_another_system_message(play: Play) -> None:
    seen = play("chat_two_turns", text("Ahoy, Ada."), text("You are Ada."))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, False]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


def test_chat_streams(play: Play) -> None:
    assert play("chat_stream", text("one ", "two")).got == "one two"


def test_chat_its_own_tool_loop(play: Play) -> None:
    seen = play("chat_tool_and_answer", WEATHER_CALL, text("Yes."))
    assert seen.lines == [[ASKED], [ASKED, *WARM]]
    assert seen.got == ["Yes.", ["Ulm"]]


def test_chat_a_forced_tool_and_then_none(play: Play) -> None:
    seen = play("chat_forced_tool", WEATHER_CALL, HI)
    assert (seen.sent[0]["tool_choice"], seen.tools[0]) == (FORCED, ["get_weather"])
    assert seen.got == ["get_weather", "Hi."]
