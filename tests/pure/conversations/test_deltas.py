"""Deltas that arrive together are logged, measured and folded as they are one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.base import Finished, ModelEvent, ReasoningText, TextDelta
from agents.runners.chat import _Step
from agents.worker.size_limits import RunSize
from conversations import events
from conversations.events import Fact, MessageDelta, ReasoningDelta, RunEvent, Usage
from conversations.log.deltas import Deltas, DeltaType
from conversations.log.event_log import LeaseLost, RunLog, Writer
from conversations.log.fact_order import FactOrdering
from conversations.log.transcript import Transcript

RUN = UUID(int=7)
KINDS = st.sampled_from([MessageDelta, ReasoningDelta])
TEXTS = st.lists(st.text(min_size=1, max_size=5), min_size=1, max_size=6)
GROUPS = st.lists(st.builds(Deltas.of, KINDS, st.sampled_from(["m", "n"]), TEXTS), max_size=6)


class NoWriter(Writer):
    """A writer that writes nothing, and counts who hurried it."""

    def __init__(self) -> None:
        self.hurried = 0

    def wake(self, run_log: RunLog, *, hurry: bool) -> None:
        self.hurried += hurry


def logged(groups: list[Deltas], append: Callable[[RunLog, Deltas], object]) -> tuple[Any, ...]:
    writer = NoWriter()
    run_log = RunLog(RUN, 1, 4, writer)
    for group in groups:
        append(run_log, group)
    return [(one.seq, one.fact) for one in run_log.pending], run_log.last_seq, writer.hurried


def one_by_one(run_log: RunLog, group: Deltas) -> None:
    for fact in group.each():
        run_log.append(fact)


@given(GROUPS)
def test_they_are_logged_as_they_are_one_by_one(groups: list[Deltas]) -> None:
    assert logged(groups, RunLog.append_deltas) == logged(groups, one_by_one)


def test_they_are_of_one_moment_and_the_last_is_returned() -> None:
    run_log = RunLog(RUN, 1, 4, NoWriter())
    last = run_log.append_deltas(Deltas.of(MessageDelta, "m", ["a", "b"]))
    assert last is run_log.pending[-1]
    assert len({one.at for one in run_log.pending}) == 1


def test_nothing_is_logged_for_a_lost_run() -> None:
    run_log = RunLog(RUN, 1, 4, NoWriter(), lost=True)
    with pytest.raises(LeaseLost):
        run_log.append_deltas(Deltas.of(MessageDelta, "m", ["a"]))
    assert run_log.pending == []


@given(GROUPS)
def test_they_are_folded_as_they_are_one_by_one(groups: list[Deltas]) -> None:
    together, alone, seq = Transcript(RUN), Transcript(RUN), 0
    for group in groups:
        numbered = group.numbered(seq + 1, 1_700 + seq)
        for event in numbered:
            alone.feed(event)
        together.feed_deltas(group, numbered[-1])
        seq += len(numbered)
    assert together == alone


@pytest.mark.parametrize("kind", [MessageDelta, ReasoningDelta])
def test_they_are_measured_as_they_are_one_by_one(kind: DeltaType, settings: Any) -> None:
    settings.RUN_ANSWER_KB, settings.RUN_LOG_KB = 1, 4
    together, alone = RunSize(), RunSize()
    group = Deltas.of(kind, "m", ["aé", "\U0001f4aa", "x" * 500])
    assert together.add_deltas(group)
    for fact in group.each():
        alone.add(fact, state=None)
    assert together.log == alone.log
    before = together.log
    assert not together.add_deltas(Deltas.of(kind, "m", ["x" * 300, "x" * 300]))
    assert together.log == before
    settings.RUN_ANSWER_KB = 100
    assert not RunSize().add_deltas(Deltas.of(kind, "m", ["x"] * 64))  # 64 bytes an event, and its text


@pytest.mark.parametrize(
    ("group", "takes"),
    [
        (Deltas.of(MessageDelta, "new", ["a", "b"]), True),
        (Deltas.of(MessageDelta, "new", ["a", ""]), False),
        (Deltas.of(MessageDelta, "whole", ["a"]), False),
        (Deltas.of(ReasoningDelta, "whole", ["a", ""]), True),
    ],
)
def test_they_are_taken_together_if_each_would_be(group: Deltas, takes: bool) -> None:
    ordering = FactOrdering(lambda _: "")
    whole = events.MessageCompleted(events.MessageBody("whole", "assistant", "said"))
    assert list(ordering.admit(whole))
    each = [list(ordering.admit(fact)) for fact in group.each()]
    assert ordering.takes(group) is takes
    assert takes is (each == [[fact] for fact in group.each()])


def test_what_a_model_says_at_once_is_said_in_its_order() -> None:
    step = _Step("m", "Look: ")
    group: list[ModelEvent] = [
        *(ReasoningText("hm"), ReasoningText("m")),
        *(TextDelta("a"), TextDelta("b")),
        *(ReasoningText("so"), TextDelta("c"), Finished("stop", Usage(1))),
    ]
    said: list[Fact | Deltas] = list(step.take(group))
    assert said == [
        Deltas.of(ReasoningDelta, "m", ["hm", "m"]),
        Deltas.of(MessageDelta, "m", ["a", "b"]),
        Deltas.of(ReasoningDelta, "m", ["so"]),
        Deltas.of(MessageDelta, "m", ["c"]),
    ]
    assert (step.delivered, step.finished.usage) == ("Look: abc", Usage(1))
    assert RunEvent(1, 2, MessageDelta("m", "a")) == said[1].numbered(1, 2)[0]  # type: ignore[union-attr]
