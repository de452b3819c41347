"""litellm, unmodified: completion(), its bridge to Responses, and responses()."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.clients.conftest import Play
from tests.clients.shared import (
    CITY,
    CITY_TEXT,
    FORCED,
    HI,
    UNKNOWN_MODEL,
    WARM,
    WEATHER_CALL,
    one_form,
)
from tests.support.fakes.fake_model import text

CLIENT = "litellm"
either_way = pytest.mark.parametrize("bridge", ["", "responses/"], ids=["chat", "bridge"])
ASKED = "user: Is it warm in Ulm?"


@either_way
def test_a_second_turn_with_another_system_message(play: Play, bridge: str) -> None:
    seen = play("two_turns", text("Ahoy, Ada."), text("You are Ada."), bridge=bridge)
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, False]
    assert ["judge" in told for told in seen.systems] == [False, True]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


@either_way
def test_streams(play: Play, bridge: str) -> None:
    assert play("stream", text("one ", "two"), bridge=bridge).got == "one two"


@either_way
def test_a_tool_and_its_answer(play: Play, bridge: str) -> None:
    seen = play("tool_and_answer", WEATHER_CALL, text("Yes."), bridge=bridge)
    assert seen.lines == [[ASKED], [ASKED, *WARM]]
    name, arguments, answer = seen.got
    assert (name, json.loads(arguments), answer) == ("get_weather", {"city": "Ulm"}, "Yes.")


@pytest.mark.parametrize(
    ("bridge", "choice"),
    [("", FORCED), ("", "required"), ("responses/", "required"), ("responses/", FORCED)],
)
def test_a_forced_tool_and_then_none(play: Play, bridge: str, choice: Any) -> None:
    """The bridge sends a named choice as Chat Completions does: Parley takes it, OpenAI does not."""
    seen = play("forced_tool", WEATHER_CALL, HI, bridge=bridge, choice=choice)
    assert (seen.sent[0]["tool_choice"], seen.tools[0]) == (choice, ["get_weather"])
    assert not seen.tools[1] or seen.sent[1]["tool_choice"] == "none"
    assert seen.got == ["get_weather", "Hi."]


@either_way
def test_a_structured_answer_and_then_words(play: Play, bridge: str) -> None:
    seen = play("structured", text(CITY_TEXT), HI, bridge=bridge)
    assert sorted(one_form(seen.sent[0])["properties"]) == ["name", "people"]
    assert "response_format" not in seen.sent[1]
    assert seen.got == [CITY, "Hi."]


@either_way
def test_errors_can_be_read_and_the_next_request_works(play: Play, bridge: str) -> None:
    printed, right = play("wrong_then_right", HI, bridge=bridge).got
    assert UNKNOWN_MODEL in printed
    assert right == "Hi."


def test_responses_a_second_turn_that_the_server_keeps(play: Play) -> None:
    seen = play("responses_two_turns", text("Ahoy, Ada."), text("You are Ada."))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"]
    assert ["pirate" in told for told in seen.systems] == [True, False]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


def test_responses_a_tool_and_its_answer(play: Play) -> None:
    seen = play("responses_tool_and_answer", WEATHER_CALL, text("Yes."))
    assert seen.lines == [[ASKED], [ASKED, *WARM]]
    assert seen.got == ["get_weather", "Yes."]
