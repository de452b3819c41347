"""Whatever a runner says, the log has each thing begun before it goes on, and closed once."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from conversations import events
from conversations.events import Fact
from tests.support.properties.strategies import admitted


def whole(message_id: str, content: str) -> events.MessageCompleted:
    return events.MessageCompleted(events.MessageBody(message_id, "assistant", content))


def answer(call_id: str) -> events.ToolCallCompleted:
    return events.ToolCallCompleted(call_id, "tool", True, 1, {})


def test_words_that_were_not_streamed_are() -> None:
    said = events.MessageDelta("m", "Hel")
    assert admitted(said, whole("m", "Hello")) == [
        said,
        events.MessageDelta("m", "lo"),
        whole("m", "Hello"),
    ]
    assert admitted(whole("m", "Hi")) == [events.MessageDelta("m", "Hi"), whole("m", "Hi")]


def test_streamed_words_win_over_others() -> None:
    said = events.MessageDelta("m", "Hello")
    assert admitted(said, whole("m", "Bye")) == [said, whole("m", "Hello")]


def test_nothing_is_said_in_a_message_that_is_whole() -> None:
    first = admitted(whole("m", "Hi"))
    assert admitted(whole("m", "Hi"), events.MessageDelta("m", "!"), whole("m", "Hi!")) == first


def test_a_call_is_begun_before_it_is_answered_and_answered_once() -> None:
    started = events.ToolCallStarted("c", "tool")
    assert admitted(answer("c"), answer("c"), started) == [started, answer("c")]


def test_a_stage_is_entered_and_left_once() -> None:
    entered, left = events.StageStarted("s"), events.StageCompleted("s", 1)
    assert admitted(left, entered, entered, left, left, entered) == [entered, left, entered]


ids = st.sampled_from("ab")
facts = st.one_of(
    st.builds(events.MessageDelta, ids, st.text(max_size=3)),
    st.builds(whole, ids, st.text(max_size=6)),
    st.builds(events.ToolCallStarted, ids, st.just("tool")),
    st.builds(answer, ids),
    st.builds(events.StageStarted, ids),
    st.builds(events.StageCompleted, ids, st.just(1)),
)


@given(st.lists(facts, max_size=30))
def test_what_was_streamed_of_a_message_is_what_it_says_in_the_end(some: list[Fact]) -> None:
    said: dict[str, str] = {}
    for fact in admitted(*some):
        match fact:
            case events.MessageDelta(message_id, text):
                said[message_id] = said.get(message_id, "") + text
            case events.MessageCompleted(body):
                assert said.get(body.message_id, "") == body.content
    assert _balanced(admitted(*some))


def _balanced(some: Iterable[Fact]) -> bool:
    open_stages: set[str] = set()
    called: set[str] = set()
    for fact in some:
        match fact:
            case events.StageStarted(stage):
                assert stage not in open_stages
                open_stages.add(stage)
            case events.StageCompleted(stage):
                open_stages.remove(stage)
            case events.ToolCallStarted(call_id):
                assert call_id not in called
                called.add(call_id)
            case events.ToolCallCompleted(call_id):
                assert call_id in called
    return True
