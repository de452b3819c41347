"""A provider that repeats the key it was sent: nothing that comes out of a wire holds it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from agents.providers.base import ModelEvent, ModelRequest, RawChunk, ReasoningText, TextDelta
from agents.providers.redaction import Redactor
from tests.support.fakes.fake_model import DONE, Answer, FakeModel, Finish, text, tool_calls
from tests.support.fakes.wires import KEY, QUESTION, WIRES, Got, stream

ECHO = f"You sent Authorization: Bearer {KEY}, did you not?"
SHOWN = "You sent Authorization: Bearer {}***, did you not?"
SMALL = "ababac"
"""A key that begins in itself."""
PIECES = st.builds(
    lambda kind, text: kind(text),
    st.sampled_from([TextDelta, ReasoningText]),
    st.text("abc.", min_size=1, max_size=7),
)


@pytest.fixture(scope="module")
def fake() -> Iterator[FakeModel]:
    with FakeModel() as made:
        yield made


def answered(fake: FakeModel, answer: Answer, *, raw: bool = False) -> Got:
    """What the answer comes to, with nothing of the key in any event."""
    fake.script(answer, name=str(id(answer)))
    wire = WIRES["openai.chat_completions"].wire
    got = stream(wire, fake.base_url, f"script:{id(answer)}", ModelRequest(messages=QUESTION, raw=raw))
    assert got.failure is None
    assert not [event for event in got.events if KEY.encode() in msgspec.json.encode(event)]
    return got


def redacted(key: str, pieces: list[str], kind: Any = TextDelta) -> str:
    redactor = Redactor(key)
    shown: list[ModelEvent] = [event for one in pieces for event in redactor.redact([kind(one)])]
    return "".join(event.text for event in [*shown, *redactor.flush()] if isinstance(event, kind))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 20, 1000])
def test_an_echo_of_the_key_in_the_text_is_masked_however_it_is_cut(fake: FakeModel, size: int) -> None:
    pieces = [ECHO[at : at + size] for at in range(0, len(ECHO), size)]
    got = answered(fake, text(*pieces))
    assert got.text in {SHOWN.format(KEY[:shown]) for shown in range(3)}


def test_an_echo_in_reasoning_in_a_call_in_the_reason_or_in_a_header_is_masked(fake: FakeModel) -> None:
    thought = Answer(({"reasoning_content": ECHO[:40]}, {"reasoning_content": ECHO[40:]}, DONE))
    assert "***, did you not?" in answered(fake, thought).thoughts
    called = answered(fake, tool_calls(("call-1", "search", f'{{"query":"{KEY}"}}')))
    assert called.finished.tool_calls[0].arguments == '{"query":"***"}'
    ended = answered(fake, Answer(({"content": "Hi"}, Finish(KEY), DONE)))
    assert ended.finished.finish_reason == "***"
    headed = answered(fake, Answer(text("Hi").steps, headers={"x-request-id": f"Bearer {KEY}"}))
    assert msgspec.to_builtins(headed.events[0])["upstream_request_id"] == "Bearer ***"


def test_an_echo_in_a_raw_piece_is_masked(fake: FakeModel) -> None:
    got = answered(fake, text(ECHO), raw=True)
    assert [event for event in got.events if isinstance(event, RawChunk) and "***" in event.raw]


@given(st.lists(st.text("abc", max_size=5)), st.lists(st.text("abc", max_size=5)))
def test_no_cut_of_a_text_shows_the_key(before: list[str], after: list[str]) -> None:
    shown = redacted(SMALL, [*before, *SMALL, *after, "!"])
    assert SMALL not in shown
    assert "***" in shown


@given(st.lists(st.text("abc.", max_size=7)))
def test_a_text_without_the_key_stays_as_it_is(pieces: list[str]) -> None:
    assume(SMALL not in "".join(pieces))
    assert redacted(SMALL, [*pieces, "!"]) == "".join(pieces) + "!"


def test_a_text_that_ends_within_the_key_shows_less_than_half_of_it() -> None:
    assert redacted(KEY, ["see ", KEY[:25]]) == "see ***"
    assert redacted(KEY, ["see ", KEY[:5]]) == "see " + KEY[:5]


def test_reasoning_and_text_wait_for_themselves_alone() -> None:
    redactor = Redactor(KEY)
    events: list[ModelEvent] = [TextDelta("a sk-te"), ReasoningText("hm"), TextDelta("!")]
    shown = [event for one in events for event in redactor.redact([one])]
    assert shown == [TextDelta("a "), TextDelta("sk-te"), ReasoningText("hm"), TextDelta("!")]


@given(st.lists(st.lists(PIECES, max_size=4)))
def test_events_that_arrive_together_are_shown_as_they_are_one_by_one(
    groups: list[list[ModelEvent]],
) -> None:
    together, alone = Redactor(SMALL), Redactor(SMALL)
    for group in groups:
        each = [shown for event in group for shown in alone.redact([event])]
        assert list(together.redact(group)) == each
    assert together.flush() == alone.flush()


def test_a_short_key_is_no_key_to_search_for() -> None:
    assert redacted("local", ["a local model"]) == "a local model"
