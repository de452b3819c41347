"""OpenAI's Python SDK, unmodified: both of its APIs, and what the model was sent."""

from __future__ import annotations

import json

from tests.clients.conftest import Play
from tests.clients.shared import (
    CITY,
    CITY_TEXT,
    FORCED,
    HI,
    RIVER,
    RIVER_TEXT,
    UNKNOWN_MODEL,
    WARM,
    WEATHER_CALL,
    image_url,
    one_form,
)
from tests.support.fakes.fake_model import text

CLIENT = "openai"


def test_a_second_turn_goes_on_and_its_instructions_replace_the_first_ones(play: Play) -> None:
    seen = play("two_turns", text("Ahoy, Ada."), text("You are Ada."))
    assert seen.lines == [
        ["user: I am Ada."],
        ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"],
    ]
    assert [("pirate" in told, "judge" in told) for told in seen.systems] == [
        (True, False),
        (False, True),
    ]
    assert seen.got == ["Ahoy, Ada.", "You are Ada."]


def test_a_client_that_keeps_the_whole_conversation_itself(play: Play) -> None:
    seen = play("whole_history", text("Hello, Ada."), text("You are Ada."))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Hello, Ada.", "user: Who am I?"]
    assert seen.got == ["Hello, Ada.", "You are Ada."]


def test_another_question_after_an_older_answer_does_not_see_the_first_one(play: Play) -> None:
    seen = play("branches", text("Ulm."), text("Lima."), text("Abéché."))
    assert seen.lines == [
        ["user: Pick a city."],
        ["user: Pick a city.", "assistant: Ulm.", "user: And one in Peru?"],
        ["user: Pick a city.", "assistant: Ulm.", "user: And one in Chad?"],
    ]
    assert seen.got == "Abéché."


def test_streams(play: Play) -> None:
    seen = play("stream", text("one ", "two"), text("three"))
    assert seen.lines[1] == ["user: Count.", "assistant: one two", "user: Again."]
    assert seen.got == ["one two", "three", "one two"]


def test_a_tool_and_its_answer(play: Play) -> None:
    seen = play("tool_and_answer", WEATHER_CALL, text("Yes."))
    assert seen.lines[1] == [
        "user: Is it warm in Ulm?",
        'assistant calls get_weather {"city": "Ulm"}',
        "tool: 21 °C",
    ]
    assert "get_weather" in seen.tools[0]
    name, arguments, answer = seen.got
    assert (name, json.loads(arguments), answer) == ("get_weather", {"city": "Ulm"}, "Yes.")


def test_a_forced_tool_and_then_none(play: Play) -> None:
    seen = play("forced_tool", WEATHER_CALL, text("21 °C."))
    assert (seen.sent[0]["tool_choice"], seen.tools[0]) == (FORCED, ["get_weather"])
    assert seen.sent[0]["parallel_tool_calls"] is False
    assert not seen.tools[1] or seen.sent[1]["tool_choice"] == "none"
    assert seen.lines[1] == ["user: Ulm?", *WARM]
    assert seen.got == ["get_weather", "21 °C."]


def test_two_forms_of_structured_answers(play: Play) -> None:
    seen = play("structured", text(CITY_TEXT), text(RIVER_TEXT))
    assert [sorted(one_form(body)["properties"]) for body in seen.sent] == [
        ["name", "people"],
        ["length_km", "name"],
    ]
    assert seen.got == [CITY, RIVER]


def test_an_image_stays_in_the_conversation(play: Play) -> None:
    seen = play("image", text("A cat."), text("Black."), image=image_url())
    shown = "user: What is it? [image_url]"
    assert seen.lines == [[shown], [shown, "assistant: A cat.", "user: What colour?"]]
    assert seen.got == ["A cat.", "Black."]


def test_errors_can_be_read_and_the_next_request_works(play: Play) -> None:
    seen = play("wrong_then_right", HI)
    wrong, right = seen.got
    assert [one["kind"] for one in wrong] == ["NotFoundError"] + ["UnprocessableEntityError"] * 3
    assert wrong[0]["printed"].startswith(f"Error code: 404 - {UNKNOWN_MODEL}")
    assert wrong[0]["code"] == "model_not_found"
    assert all(one["printed"].startswith("Error code: 422 - ") for one in wrong[1:])
    assert right == "Hi."
    assert seen.lines == [["user: Hello."]]


def test_what_is_not_to_be_stored_is_gone(play: Play) -> None:
    seen = play("not_stored", HI)
    assert seen.got == ["Hi.", "NotFoundError", "NotFoundError"]
    assert len(seen.sent) == 1


def test_models_are_listed_and_a_listed_one_is_used(play: Play) -> None:
    assert play("models", HI).got == [True, True, "Hi."]


def test_chat_a_second_turn_with_another_system_message(play: Play) -> None:
    seen = play("chat_two_turns", text("Ahoy, Ada."), text("You are Ada."))
    assert seen.lines == [
        ["user: I am Ada."],
        ["user: I am Ada.", "assistant: Ahoy, Ada.", "user: Who am I?"],
    ]
    assert [("pirate" in told, "judge" in told) for told in seen.systems] == [
        (True, False),
        (False, True),
    ]
    assert seen.got == [["Ahoy, Ada.", "stop", 19], ["You are Ada.", "stop", 19]]


def test_chat_an_edited_question_stands_alone(play: Play) -> None:
    seen = play("chat_edited", text("Hello, Ada."), text("Hello, Bob."))
    assert seen.lines == [["user: I am Ada."], ["user: I am Bob."]]
    assert seen.got == "Hello, Bob."


def test_chat_streams(play: Play) -> None:
    seen = play("chat_stream", text("one ", "two"))
    assert seen.sent[0]["stop"] == ["four"]
    assert seen.got == ["one two", 19]


def test_chat_a_tool_and_its_answer(play: Play) -> None:
    seen = play("chat_tool_and_answer", WEATHER_CALL, text("Yes."))
    assert seen.lines[1] == ["user: Is it warm in Ulm?", *WARM]
    reason, name, arguments, answer = seen.got
    assert (reason, name, json.loads(arguments), answer) == (
        "tool_calls",
        "get_weather",
        {"city": "Ulm"},
        "Yes.",
    )


def test_chat_a_forced_tool_and_then_none(play: Play) -> None:
    seen = play("chat_forced_tool", WEATHER_CALL, HI)
    assert (seen.sent[0]["tool_choice"], seen.tools[0]) == (FORCED, ["get_weather"])
    assert not seen.tools[1] or seen.sent[1]["tool_choice"] == "none"
    assert seen.got == ["get_weather", "Hi."]


def test_chat_two_forms_of_structured_answers(play: Play) -> None:
    seen = play("chat_structured", text(CITY_TEXT), text(RIVER_TEXT))
    assert [sorted(one_form(body)["properties"]) for body in seen.sent] == [
        ["name", "people"],
        ["length_km", "name"],
    ]
    assert seen.got == [CITY, RIVER]


def test_chat_an_image_stays_in_the_conversation(play: Play) -> None:
    seen = play("chat_image", text("A cat."), text("Black."), image=image_url())
    shown = "user: What is it? [image_url]"
    assert seen.lines == [[shown], [shown, "assistant: A cat.", "user: What colour?"]]
    assert seen.got == ["A cat.", "Black."]


def test_chat_errors_can_be_read_and_the_next_request_works(play: Play) -> None:
    seen = play("chat_wrong_then_right", HI)
    wrong, right = seen.got
    assert wrong[0]["printed"].startswith(f"Error code: 404 - {UNKNOWN_MODEL}")
    assert ["n" in one["printed"] for one in wrong[1:]] == [True, True]
    assert right == "Hi."
