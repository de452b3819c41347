"""However a stream is cut, only whole lines are logged, and what a hook takes out is in none of them."""

from __future__ import annotations

import re
from importlib.metadata import EntryPoint
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import events
from conversations.events import Fact
from conversations.log import redacted_facts, redaction_hook
from conversations.log.redacted_facts import FactRedactor
from conversations.log.redaction_hook import RedactionFailed, find_redact, redact_value

TEXT = "Call 0123-456-789 or\n0123-456-789 twice: 0123-456-789\n\nor not 0123"


def redact(text: str) -> str:
    return re.sub(r"\d{4}-\d{3}-\d{3}", "[number]", text)


def words(facts: list[Fact]) -> str:
    return "".join(fact.text for fact in facts if isinstance(fact, events.MessageDelta))


@given(st.lists(st.integers(0, len(TEXT)), max_size=20))
def test_a_number_that_a_stream_cuts_is_seen_whole(cuts: list[int]) -> None:
    at = [0, *sorted(cuts), len(TEXT)]
    redactor, logged = FactRedactor(redact), list[Fact]()
    for begin, end in pairwise(at):
        logged.extend(redactor.feed(events.MessageDelta("m", TEXT[begin:end])))
        assert "0123-456-789" not in words(logged)
    body = events.MessageBody("m", "assistant", TEXT)
    *rest, completed = redactor.feed(events.MessageCompleted(body))
    assert words([*logged, *rest]) == redact(TEXT)
    assert completed == events.MessageCompleted(events.MessageBody("m", "assistant", redact(TEXT)))
    assert list(redactor.flush()) == []


def test_thoughts_end_their_line_where_the_answer_begins_and_two_answers_do_not() -> None:
    redactor = FactRedactor(redact)
    assert list(redactor.feed(events.ReasoningDelta("r", "I thi"))) == []
    assert list(redactor.feed(events.MessageDelta("a", "0123-"))) == [
        events.ReasoningDelta("r", "I thi")
    ]
    assert list(redactor.feed(events.MessageDelta("b", "0123-"))) == []
    assert list(redactor.feed(events.MessageDelta("a", "456-789\n"))) == [
        events.MessageDelta("a", "[number]\n")
    ]
    stage = events.StageCompleted("s", 1, "of 0123-456-789")
    assert list(redactor.feed(stage)) == [
        events.MessageDelta("b", "0123-"),
        events.StageCompleted("s", 1, "of [number]"),
    ]


def test_a_line_without_end_is_cut_at_a_space(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redacted_facts, "LONGEST_LINE", 10)
    redactor = FactRedactor(redact)
    assert list(redactor.feed(events.MessageDelta("a", "eight of 0123"))) == [
        events.MessageDelta("a", "eight of ")
    ]
    assert list(redactor.flush()) == [events.MessageDelta("a", "0123")]


def test_calls_and_results_are_redacted_and_a_providers_own_forms_are_not_logged() -> None:
    number, gone = {"to": ["0123-456-789"]}, {"to": ["[number]"]}
    redactor = FactRedactor(redact)
    started = events.ToolCallStarted("c", "t", number, reasoning=[{"thinking": "0123-456-789"}])
    problem = events.Problem("bad", "no 0123-456-789")
    facts: list[Fact] = [
        started,
        events.ToolCallCompleted("c", "t", True, 1, result=number),
        events.ToolCallCompleted("d", "t", False, 1, error=problem),
        events.StateUpdated("thread", "k", number),
        events.UpstreamRaw("openai", "0123-456-789"),
        events.RunCompleted("interrupt", interrupts=[number]),
    ]
    assert [one for fact in facts for one in redactor.feed(fact)] == [
        events.ToolCallStarted("c", "t", gone),
        events.ToolCallCompleted("c", "t", True, 1, result=gone),
        events.ToolCallCompleted("d", "t", False, 1, error=events.Problem("bad", "no [number]")),
        events.StateUpdated("thread", "k", gone),
        events.RunCompleted("interrupt", interrupts=[gone]),
    ]


def test_without_a_hook_there_is_nothing_to_apply() -> None:
    redaction_hook.clear_cache()
    assert find_redact() is None


@pytest.mark.parametrize("value", ["no.such.module:redact", "builtins:len", "os:chdir"])
def test_a_hook_that_cannot_do_its_work_lets_nothing_pass(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    entry = EntryPoint("mine", value, redaction_hook.GROUP)
    monkeypatch.setattr(redaction_hook, "entry_points", lambda group: [entry])
    redaction_hook.clear_cache()
    try:
        found = find_redact()
        assert found is not None
        with pytest.raises(RedactionFailed):
            redact_value(found, {"a": ["/nowhere/at/all"]})
    finally:
        redaction_hook.clear_cache()


def test_what_a_hook_returns_can_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction_hook, "_hooks", lambda: (("mine", lambda _: "a\x00\ud800b"),))
    redactor = find_redact()
    assert redactor is not None
    assert redactor("0123") == "a\ufffd\ufffdb"
