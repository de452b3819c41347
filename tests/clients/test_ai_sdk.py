"""Vercel's AI SDK, unmodified: Responses, which is its default, and Chat Completions."""

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
from tests.support.fakes.fake_model import text

CLIENT = "ai-sdk"
either_api = pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
ASKED = "user: Is it warm in Ulm?"


@either_api
def test_a_second_turn_sees_the_first_answer(play: Play, chat: bool) -> None:
    """Over Responses the answer is sent back as a reference to it."""
    seen = play("two_turns", text("Ahoy, Ada."), text("You are Ada."), chat=chat)
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, False]
    assert ["judge" in told for told in seen.systems] == [False, True]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


@either_api
def test_a_question_that_is_taken_back(play: Play, chat: bool) -> None:
    seen = play("edited", text("Hello, Ada."), text("Ada."), text("A model."), chat=chat)
    assert seen.lines[2] == ["user: I am Ada.", "assistant: Hello, Ada.", "user: Who are you?"]
    assert seen.got == "A model."


def test_a_second_turn_without_a_store(play: Play) -> None:
    seen = play("not_stored", text("Hello, Ada."), text("You are Ada."))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Hello, Ada.", "user: Who am I?"]
    assert seen.got == ["Hello, Ada.", "You are Ada."]


@either_api
def test_streams(play: Play, chat: bool) -> None:
    assert play("stream", text("one ", "two"), chat=chat).got == ["one two", 19, "stop"]


@either_api
def test_a_tool_its_answer_and_a_turn_after_it(play: Play, chat: bool) -> None:
    seen = play("tool_and_answer", WEATHER_CALL, text("Yes."), text("Still."), chat=chat)
    assert seen.lines == [
        [ASKED],
        [ASKED, *WARM_IN_ULM],
        [ASKED, *WARM_IN_ULM, "assistant: Yes.", "user: And now?"],
    ]
    assert seen.got == ["Yes.", "Still."]


@either_api
def test_a_forced_tool_any_tool_and_none(play: Play, chat: bool) -> None:
    seen = play("forced_tool", WEATHER_CALL, WEATHER_CALL, HI, chat=chat)
    assert [body.get("tool_choice") for body in seen.sent[:2]] == [FORCED, "required"]
    assert seen.tools[:2] == [["get_weather"]] * 2
    assert not seen.tools[2] or seen.sent[2]["tool_choice"] == "none"
    assert seen.got == ["get_weather", "get_weather", "Hi."]


@either_api
def test_a_structured_answer_and_then_words(play: Play, chat: bool) -> None:
    seen = play("structured", text(CITY_TEXT), HI, chat=chat)
    assert sorted(one_form(seen.sent[0])["properties"]) == ["name", "people"]
    assert "response_format" not in seen.sent[1]
    assert seen.got == [CITY, "Hi."]


@either_api
def test_an_image_stays_in_the_conversation(play: Play, chat: bool) -> None:
    seen = play("image", text("A cat."), text("Black."), chat=chat, image=image_url())
    shown = "user: What is it? [image_url]"
    assert seen.lines == [[shown], [shown, "assistant: A cat.", "user: What colour?"]]
    assert seen.got == ["A cat.", "Black."]


@either_api
def test_errors_can_be_read_and_the_next_request_works(play: Play, chat: bool) -> None:
    printed, right = play("wrong_then_right", HI, chat=chat).got
    assert printed.startswith(UNKNOWN_MODEL)
    assert right == "Hi."
