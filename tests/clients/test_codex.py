"""Codex CLI, unmodified: what it sends, its shell, and a session that is resumed."""

from __future__ import annotations

import json

from tests.clients.conftest import Play
from tests.fake_model import text, tool_calls

CLIENT = "codex"


def test_a_session_is_resumed(play: Play) -> None:
    seen = play("two_turns", text("Hello, Ada."), text("You are Ada."), off=True)
    assert seen.lines[1][-3:] == ["user: I am Ada.", "assistant: Hello, Ada.", "user: Who am I?"]
    assert seen.got == {"said": ["Hello, Ada.", "You are Ada."], "errors": []}


def test_a_command_is_run_and_its_output_told(play: Play) -> None:
    arguments = json.dumps({"cmd": "echo hello"})
    seen = play(
        "tool_and_answer",
        tool_calls(("call_1", "exec_command", arguments)),
        text("Done."),
        off=True,
    )
    assert seen.got == {"said": ["Done."], "ran": ["hello"], "errors": []}
    assert "hello" in seen.lines[1][-1]


def test_its_default_settings_are_refused_by_the_name_of_what_is_not_offered_here(play: Play) -> None:
    seen = play("as_installed", text("Hello."))
    assert (seen.sent, seen.got["said"]) == ([], [])
    assert "tools of the type namespace are not offered here" in seen.got["refused"]
