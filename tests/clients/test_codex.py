"""Codex CLI, unmodified: what it sends, its shell, and a session that is resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.clients.conftest import Play
from tests.support.fakes.fake_exa import FakeExa, found, switched_on
from tests.support.fakes.fake_model import text, tool_calls

CLIENT = "codex"
AGENT = "0192f0c1-8a3b-7c44-9d55-1a2b3c4d5e6f"


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


@pytest.fixture
def exa(settings: Settings) -> Iterator[FakeExa]:
    with FakeExa() as fake, switched_on(fake, settings):
        yield fake


def test_as_installed_its_agents_are_called_and_the_web_is_searched(play: Play, exa: FakeExa) -> None:
    """Two turns with nothing switched off: a tool of its namespace, then the search, which is ours."""
    close = json.dumps({"target": AGENT})
    exa.answers["news"] = found({"title": "News", "url": "https://example.com/a", "text": "All quiet."})
    seen = play(
        "as_installed",
        tool_calls(("call_1", "multi_agent_v1__close_agent", close)),
        text("There is none."),
        tool_calls(("call_2", "web_search_exa", '{"query": "news"}')),
        text("All is quiet."),
        agent=AGENT,
    )
    assert seen.got == {"said": ["There is none.", "All is quiet."], "errors": []}
    called, answer, said = seen.lines[2][-4:-1]
    assert called == f"assistant calls multi_agent_v1__close_agent {close}"
    assert AGENT in answer
    assert said == "assistant: There is none."
    assert seen.lines[3][-2] == 'assistant calls web_search_exa {"query": "news"}'
    assert "All quiet." in seen.lines[3][-1]
    assert exa.asked[0].body["contents"] == {"text": True, "maxAgeHours": -1}
    for offered in seen.tools:
        assert {"exec_command", "multi_agent_v1__spawn_agent", "web_search_exa"} <= {*offered}
    [spawn] = [
        tool["function"]["description"]
        for tool in seen.sent[0]["tools"]
        if tool["function"]["name"] == "multi_agent_v1__spawn_agent"
    ]
    assert spawn.startswith("Tools for spawning and managing sub-agents.")


def test_a_search_that_is_not_switched_on_is_refused_by_its_name(play: Play) -> None:
    seen = play("as_installed", text("Hello."), once=True)
    assert (seen.sent, seen.got["said"]) == ([], [])
    assert "The web search is not switched on here." in seen.got["errors"][-1]
