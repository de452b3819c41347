"""assistant-ui's core for AG-UI, unmodified: what its Reload button and its pencil do."""

from __future__ import annotations

from uuid import uuid4

from tests.clients.conftest import Play
from tests.clients.shared import WARM, WEATHER_CALL
from tests.support.fakes.fake_model import text

CLIENT = "assistant-ui"


def test_a_second_turn(play: Play) -> None:
    answers = text("Hello, Ada."), text("You are Ada.")
    seen = play("two_turns", *answers, threadId=str(uuid4()))
    assert seen.lines[1] == ["user: I am Ada.", "assistant: Hello, Ada.", "user: Who am I?"]
    assert seen.got == {
        "shown": [
            "user: I am Ada.",
            "assistant: Hello, Ada.",
            "user: Who am I?",
            "assistant: You are Ada.",
        ],
        "errors": [],
    }


def test_reload_asks_the_question_again_and_the_next_turn_follows_the_new_answer(play: Play) -> None:
    answers = text("Seven."), text("Eight."), text("Because.")
    seen = play("reload", *answers, threadId=str(uuid4()))
    asked = "user: Pick a number."
    assert seen.lines == [[asked], [asked], [asked, "assistant: Eight.", "user: Why?"]]
    assert seen.got == {
        "shown": [asked, "assistant: Eight.", "user: Why?", "assistant: Because."],
        "errors": [],
    }


def test_an_edited_question_begins_anew(play: Play) -> None:
    answers = text("Hello, Ada."), text("Ada."), text("Hello, Bob."), text("Bob.")
    seen = play("edit", *answers, threadId=str(uuid4()))
    assert seen.lines[2:] == [
        ["user: I am Bob."],
        ["user: I am Bob.", "assistant: Hello, Bob.", "user: Who am I now?"],
    ]
    assert seen.got == {
        "shown": [
            "user: I am Bob.",
            "assistant: Hello, Bob.",
            "user: Who am I now?",
            "assistant: Bob.",
        ],
        "errors": [],
    }


def test_a_frontend_tool_and_its_answer(play: Play) -> None:
    seen = play("frontend_tool", WEATHER_CALL, text("Yes."), threadId=str(uuid4()))
    assert seen.lines[1] == ["user: Is it warm in Ulm?", *WARM, "user: So?"]
    assert seen.got["called"] == "get_weather"
    assert (seen.got["errors"], seen.got["shown"]) == ([], ["assistant: Yes."])
