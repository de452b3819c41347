"""What command-line agents print, read as what was meant."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents.runners.base import RunFailure
from agents.runtimes.harness.output_lines import (
    ProgramDone,
    ProgramFailed,
    ProgramSession,
    TextDelta,
    ToolFinished,
    ToolStarted,
    WholeText,
    parse_line,
)
from agents.runtimes.harness.printed_answer import PrintedAnswer
from conversations import events

_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
_LINES = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            ["assistant", "user", "result", "message", "item.completed", "turn.failed"]
        )
    },
    optional={
        key: _VALUES | st.fixed_dictionaries({"content": _VALUES})
        for key in (
            "message",
            "item",
            "usage",
            "result",
            "error",
            "session_id",
            "content",
            "event",
            "stats",
        )
    },
)


def meant(**line: Any) -> list[Any]:
    return list(parse_line(json.dumps(line).encode()))


def test_the_three_dialects_are_read() -> None:
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}}
    assert meant(type="system", subtype="init", session_id="s") == [ProgramSession("s")]
    assert meant(type="stream_event", event=delta) == [TextDelta("a")]
    parts = [
        {"type": "text", "text": "a"},
        {"type": "tool_use", "id": "t", "name": "n", "input": {"b": 1}},
    ]
    assert meant(type="assistant", message={"content": parts}) == [
        WholeText("a"),
        ToolStarted("t", "n", {"b": 1}),
    ]
    result = {"type": "tool_result", "tool_use_id": "t", "content": [{"text": "x"}, {"text": "y"}]}
    assert meant(type="user", message={"content": [result]}) == [ToolFinished("t", True, "xy")]
    assert meant(type="result", result="a", usage={"input_tokens": 1, "output_tokens": 2}) == [
        ProgramDone("a", 1, 2)
    ]
    assert meant(type="result", is_error=True, result="no") == [ProgramFailed("no")]
    assert meant(type="thread.started", thread_id="s") == [ProgramSession("s")]
    call = {"id": "c", "type": "mcp_tool_call", "server": "s", "tool": "t", "arguments": {"a": 1}}
    assert meant(type="item.started", item=call) == [ToolStarted("c", "t", {"a": 1})]
    assert meant(type="item.completed", item={"type": "agent_message", "text": "a"}) == [WholeText("a")]
    assert meant(type="turn.failed", error={"message": "no"}) == [ProgramFailed("no")]
    assert meant(type="message", role="assistant", content="a", delta=True) == [TextDelta("a")]


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(_LINES)
def test_lines_of_any_shape_break_nothing(line: dict[str, Any]) -> None:
    answer = PrintedAnswer("m")
    list(answer.add_line(json.dumps(line).encode(), as_text=False))


@pytest.mark.parametrize("line", [b"", b"no JSON", b"[" * 100_000, b"7", b'{"type": 7}', b"\xff\xfe"])
def test_rubbish_says_nothing(line: bytes) -> None:
    assert list(parse_line(line)) == []


def test_a_whole_text_after_its_pieces_is_said_once() -> None:
    answer = PrintedAnswer("m")
    said = [
        fact
        for line in (
            {"type": "message", "role": "assistant", "content": "Hel", "delta": True},
            {"type": "assistant", "message": {"content": [{"type": "text", "text": "Hello"}]}},
            {"type": "assistant", "message": {"content": [{"type": "text", "text": "again"}]}},
        )
        for fact in answer.add_line(json.dumps(line).encode(), as_text=False)
    ]
    assert said == [events.MessageDelta("m", text) for text in ("Hel", "lo", "\n\nagain")]


def test_an_answer_without_a_word_is_a_failure() -> None:
    with pytest.raises(RunFailure) as failed:
        list(PrintedAnswer("m").finish())
    assert failed.value.code == "harness.empty_answer"
