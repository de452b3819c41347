"""langchain-openai, unmodified: its default mode, which is Chat Completions, and Responses."""

from __future__ import annotations

import pytest

from tests.clients.conftest import Play
from tests.clients.shared import (
    CITY,
    CITY_TEXT,
    FORCED,
    HI,
    UNKNOWN_MODEL,
    WARM_IN_ULM,
    WEATHER_CALL,
    image_url,
    one_form,
)
from tests.support.fakes.fake_model import text, tool_calls

CLIENT = "langchain-openai"
either_api = pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
ASKED = "user: Is it warm in Ulm?"


@either_api
def test_a_second_turn_with_another_system_message(play: Play, responses: bool) -> None:
    seen = play("two_turns", text("Ahoy, Ada."), text("You are Ada."), responses=responses)
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, False]
    assert ["judge" in told for told in seen.systems] == [False, True]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


def test_the_server_keeps_the_conversation(play: Play) -> None:
    answers = text("Hello, Ada."), text("You are Ada.")
    seen = play("previous_response", *answers, responses=True)
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Hello, Ada.", "user: Who am I?"]
    assert seen.got == ["Hello, Ada.", "You are Ada."]


@either_api
def test_streams_with_usage(play: Play, responses: bool) -> None:
    assert play("stream", text("one ", "two"), responses=responses).got == ["one two", 19]


@either_api
def test_a_tool_and_its_answer(play: Play, responses: bool) -> None:
    seen = play("tool_and_answer", WEATHER_CALL, text("Yes."), responses=responses)
    assert seen.lines == [[ASKED], [ASKED, *WARM_IN_ULM]]
    assert seen.got == ["get_weather", {"city": "Ulm"}, "Yes."]


@either_api
def test_a_tool_that_must_be_called(play: Play, responses: bool) -> None:
    seen = play("forced_tool", WEATHER_CALL, WEATHER_CALL, HI, responses=responses)
    assert [body.get("tool_choice") for body in seen.sent[:2]] == [FORCED, "required"]
    assert seen.tools[:2] == [["get_weather"]] * 2
    assert seen.got == ["get_weather", "get_weather", "Hi."]


@either_api
def test_structured_answers_in_either_way(play: Play, responses: bool) -> None:
    called = tool_calls(("call_1", "City", CITY_TEXT))
    seen = play("structured", text(CITY_TEXT), called, responses=responses)
    assert sorted(one_form(seen.sent[0])["properties"]) == ["name", "people"]
    assert (seen.tools[1], seen.sent[1]["tool_choice"]["function"]["name"]) == (["City"], "City")
    assert seen.got == [CITY, CITY]


@either_api
def test_an_image_stays_in_the_conversation(play: Play, responses: bool) -> None:
    answers = text("A cat."), text("Black.")
    seen = play("image", *answers, image=image_url(), responses=responses)
    shown = "user: What is it? [image_url]"
    assert seen.lines == [[shown], [shown, "assistant: A cat.", "user: What colour?"]]
    assert seen.got == ["A cat.", "Black."]


@either_api
def test_errors_can_be_read_and_the_next_request_works(play: Play, responses: bool) -> None:
    printed, right = play("wrong_then_right", HI, responses=responses).got
    assert printed.startswith(f"Error code: 404 - {UNKNOWN_MODEL}")
    assert right == "Hi."
