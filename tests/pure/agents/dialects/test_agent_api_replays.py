"""Random runs, cut at every boundary: who comes back with `Last-Event-ID` gets exactly the rest."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given, settings

from agents.api.streaming import FROM_THE_START
from agents.dialects.base import Frame
from agents.dialects.recognition import DIALECTS
from conversations import events
from conversations.events import RunEvent
from tests.agents.dialects.agent_api.runs import HEAD, RUNS, frames, resumed
from tests.support.properties.effort import examples


def place_of(seen: Sequence[Frame]) -> int:
    """The `Last-Event-ID` of a client that has these frames."""
    return next((frame.id for frame in reversed(seen) if frame.id is not None), FROM_THE_START)


def missed(whole: Sequence[Frame], seen: int) -> Sequence[Frame]:
    """What comes after the last frame that had an id: a part of an event comes again with its rest."""
    while seen and whole[seen - 1].id is None:
        seen -= 1
    return whole[seen:]


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=examples(25), deadline=None)
@given(RUNS)
def test_a_run_cut_at_every_boundary_replays_exactly(name: str, run: list[RunEvent]) -> None:
    dialect = DIALECTS[name]
    whole = frames(dialect, run)
    for cut in range(len(whole) + 1):
        assert resumed(dialect, run, place_of(whole[:cut])) == missed(whole, cut)


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=examples(50), deadline=None)
@given(RUNS)
def test_what_is_read_live_is_what_is_read_again_from_the_log(name: str, run: list[RunEvent]) -> None:
    """Stored and decoded, the events give the same bytes."""
    stored = events.decode(1, events.encode(run))
    for wire in (HEAD.wire, {"protocolVersion": "1.0", "threadId": "t"}):
        head = msgspec.structs.replace(HEAD, wire=wire)
        assert frames(DIALECTS[name], stored, head) == frames(DIALECTS[name], run, head)
