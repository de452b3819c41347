"""pydantic-ai, unmodified, over both of OpenAI's APIs."""

from __future__ import annotations

import pytest

from tests.clients.conftest import Play
from tests.clients.shared import (
    CITY,
    CITY_TEXT,
    HI,
    UNKNOWN_MODEL,
    WARM_IN_ULM,
    WEATHER_CALL,
    image_url,
    one_form,
)
from tests.support.fakes.fake_model import text, tool_calls

CLIENT = "pydantic-ai"
either_api = pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
ASKED = "user: Is it warm in Ulm?"


@either_api
def test_a_second_turn_with_other_instructions(play: Play, responses: bool) -> None:
    seen = play("two_turns", text("Ahoy, Ada."), text("You are Ada."), responses=responses)
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, False]
    assert ["judge" in told for told in seen.systems] == [False, True]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


@either_api
def test_a_question_that_is_taken_back(play: Play, responses: bool) -> None:
    seen = play("edited", text("Hello, Ada."), text("Hello, Bob."), responses=responses)
    assert seen.lines == [["user: I am Ada."], ["user: I am Bob."]]
    assert seen.got == "Hello, Bob."


@either_api
def test_streams(play: Play, responses: bool) -> None:
    assert play("stream", text("one ", "two"), responses=responses).got == "one two"


@either_api
def test_a_tool_and_its_answer(play: Play, responses: bool) -> None:
    seen = play("tool_and_answer", WEATHER_CALL, text("Yes."), responses=responses)
    assert seen.lines == [[ASKED], [ASKED, *WARM_IN_ULM]]
    assert seen.got == ["Yes.", ["Ulm"]]


@either_api
def test_structured_answers_in_either_way(play: Play, responses: bool) -> None:
    called = tool_calls(("call_1", "final_result", CITY_TEXT))
    seen = play("structured", called, text(CITY_TEXT), responses=responses)
    assert (seen.sent[0]["tool_choice"], seen.tools[0]) == ("required", ["final_result"])
    assert sorted(one_form(seen.sent[1])["properties"]) == ["name", "people"]
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
    assert UNKNOWN_MODEL in printed
    assert right == "Hi."
