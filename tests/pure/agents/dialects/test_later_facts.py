"""Facts that the release after this one writes: every dialect passes over them."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import requests
from agents.dialects.base import Frame, RunHead
from agents.dialects.recognition import DIALECTS
from conversations.events import LaterFact, RunEvent
from tests.support.properties.effort import examples
from tests.support.properties.strategies import AT, UNENDED_RUNS

HEAD = RunHead(UUID(int=1), UUID(int=2), "r")
LATER = LaterFact("mood.changed", b'{"type":"mood.changed","mood":"calm"}')


def frames(name: str, run: list[RunEvent]) -> list[Frame]:
    encoder = DIALECTS[name].encoder(HEAD)
    return [frame for event in run for frame in encoder.feed(event)]


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=examples(20), deadline=None)
@given(run=UNENDED_RUNS, place=st.integers(0, 50))
def test_a_reader_gets_the_frames_that_it_knows(name: str, run: list[RunEvent], place: int) -> None:
    place = min(place, len(run))
    before, moved = run[:place], [RunEvent(one.seq + 1, one.at, one.fact) for one in run[place:]]
    later = RunEvent(place + 1, AT, LATER)
    assert frames(name, [*before, later, *moved]) == frames(name, [*before, *moved])


def test_a_member_of_a_request_that_a_later_release_stored_is_passed_over() -> None:
    """A run may be accepted by a web process of that release and executed by a worker of this one."""
    known = (
        b'"messages":[{"role":"user","content":"x"}],"model":"demo","dialect":"text","request_id":"r"'
    )
    assert requests.load(b"{" + known + b',"mood":{"value":"calm"}}') == requests.load(
        b"{" + known + b"}"
    )
