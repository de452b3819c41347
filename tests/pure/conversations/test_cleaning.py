"""Whatever a runner says can be stored and sent (promise P3)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import events
from conversations.log.storable_text import clean

ANY_TEXT = st.text(st.characters(exclude_categories=[]), max_size=20)
ANY_JSON = st.recursive(
    ANY_TEXT | st.integers() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(ANY_TEXT, inner),
    max_leaves=8,
)


@given(ANY_TEXT)
def test_a_cleaned_delta_is_utf8_without_nul_and_keeps_the_rest(text: str) -> None:
    cleaned = clean(events.MessageDelta("m", text))
    assert isinstance(cleaned, events.MessageDelta)
    cleaned.text.encode()
    assert "\x00" not in cleaned.text
    assert len(cleaned.text) == len(text)
    if text.isprintable():
        assert cleaned.text == text


@given(st.dictionaries(ANY_TEXT, ANY_JSON))
def test_a_cleaned_tool_result_can_be_encoded(result: dict[str, Any]) -> None:
    fact = clean(events.ToolCallCompleted("c", "t", True, 1, result))
    stored = events.encode([events.RunEvent(1, 1, fact)])
    assert b"\\u0000" not in stored.replace(b"\\\\", b"")


def test_what_needs_no_cleaning_is_passed_on_as_it_is() -> None:
    for text in ("练胸 💪", "\\u0000", 'a "quoted" \\ word'):
        fact = events.ToolCallStarted("c", "t", {"query": text})
        assert clean(fact) is fact


@pytest.mark.parametrize("bad", ["\x00", "\ud800"])
def test_every_text_of_a_fact_is_cleaned(bad: str) -> None:
    fact = clean(events.ToolCallCompleted("c", f"t{bad}", True, 1, {f"a{bad}": [{"b": f"c{bad}"}]}))
    assert fact == events.ToolCallCompleted("c", "t\ufffd", True, 1, {"a\ufffd": [{"b": "c\ufffd"}]})


@pytest.mark.parametrize(
    "said",
    [
        {"type": "message.delta"},
        42,
        None,
        events.MessageDelta("a", None),  # type: ignore[arg-type]
        events.MessageDelta(7, "a"),  # type: ignore[arg-type]
        events.ToolCallCompleted("c", "t", True, 1.5, {}),  # type: ignore[arg-type]
        events.ToolCallCompleted("c", "t", True, 1, ["a"]),  # type: ignore[arg-type]
        events.StateUpdated("thread", "", object()),
    ],
)
def test_what_nobody_could_read_again_is_no_fact(said: Any) -> None:
    with pytest.raises((TypeError, AttributeError, ValueError)):
        clean(said)


def test_ids_are_cleaned_too() -> None:
    assert clean(events.MessageDelta("a\ud800", "b")) == events.MessageDelta("a\ufffd", "b")
