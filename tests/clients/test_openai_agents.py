"""openai-agents, unmodified, over both of OpenAI's APIs."""

from __future__ import annotations

from tests.clients.conftest import Play
from tests.clients.shared import (
    CITY,
    CITY_TEXT,
    FORCED,
    HI,
    UNKNOWN_MODEL,
    WARM_IN_ULM,
    WEATHER_CALL,
    one_form,
)
from tests.support.fakes.fake_model import text, tool_calls

CLIENT = "openai-agents"
ASKED = "user: Is it warm in Ulm?"


def test_a_second_turn_with_other_instructions(play: Play) -> None:
    seen = play("two_turns", text("Ahoy, Ada."), text("You are Ada."))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, False]
    assert ["judge" in told for told in seen.systems] == [False, True]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


def test_a_session_from_which_a_turn_is_taken_back(play: Play) -> None:
    seen = play("session", text("Hello, Ada."), text("Hello, Bob."))
    assert seen.lines == [["user: I am Ada."], ["user: I am Bob."]]
    assert seen.got == ["Hello, Ada.", "Hello, Bob."]


def test_the_server_keeps_the_conversation(play: Play) -> None:
    seen = play("previous_response", text("Hello, Ada."), text("You are Ada."))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Hello, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, True]


def test_streams(play: Play) -> None:
    assert play("stream", text("one ", "two")).got == ["one two", "one two"]


def test_a_tool_and_its_answer(play: Play) -> None:
    seen = play("tool_and_answer", WEATHER_CALL, text("Yes."))
    assert seen.lines == [[ASKED], [ASKED, *WARM_IN_ULM]]
    assert seen.got == "Yes."


def test_a_forced_tool(play: Play) -> None:
    seen = play("forced_tool", WEATHER_CALL, text("Warm."))
    assert (seen.sent[0]["tool_choice"], seen.tools[0]) == (FORCED, ["get_weather"])
    assert seen.sent[1].get("tool_choice", "auto") == "auto"
    assert seen.got == "Warm."


def test_a_structured_answer_and_then_words(play: Play) -> None:
    seen = play("structured", text(CITY_TEXT), text("A city."))
    assert sorted(one_form(seen.sent[0])["properties"]) == ["name", "people"]
    assert "response_format" not in seen.sent[1]
    assert seen.lines[1] == ["user: A city.", f"assistant: {CITY_TEXT}", "user: In words."]
    assert seen.got == [CITY, "A city."]


def test_another_agent_takes_over(play: Play) -> None:
    hand_over = tool_calls(("call_1", "transfer_to_poet", "{}"))
    seen = play("handoff", hand_over, text("A rose."))
    assert ["verse" in told for told in seen.systems] == [False, True]
    assert seen.got == ["Poet", "A rose."]


def test_errors_can_be_read_and_the_next_request_works(play: Play) -> None:
    printed, right = play("wrong_then_right", HI).got
    assert printed.startswith(f"Error code: 404 - {UNKNOWN_MODEL}")
    assert right == "Hi."


def test_chat_a_second_turn_with_other_instructions(play: Play) -> None:
    seen = play("chat_two_turns", text("Ahoy, Ada."), text("You are Ada."))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["judge" in told for told in seen.systems] == [False, True]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


def test_chat_a_tool_and_its_answer(play: Play) -> None:
    seen = play("chat_tool_and_answer", WEATHER_CALL, text("Yes."))
    assert seen.lines == [[ASKED], [ASKED, *WARM_IN_ULM]]
    assert seen.got == "Yes."
