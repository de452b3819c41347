"""Runs for the tests of both item-based wires: random ones, and what their readers get of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from agents.api.streaming import open_cursor
from agents.dialects.base import Dialect, Frame, RunHead
from conversations import events
from conversations.events import Fact, RunEvent
from conversations.log.batches import make_batch
from conversations.runs.client_queries import RunRow
from tests.support.properties import strategies

RUN = UUID("0192f0c1-8a3b-7c44-9d55-1a2b3c4d5e6f")
EARLIER = UUID("0192f0c1-8a3b-7c44-9d55-1a2b3c4d5e60")
THREAD = UUID("7c9e6679-7425-40de-944b-e07fc1f90ae7")
AT_MS = 1_700_000_000_000
HEAD = RunHead(RUN, THREAD, "request-1", "demo", created_at_ms=AT_MS, wire={"session_id": "session_123"})

KINDS = st.sampled_from(["function", "frontend", "mcp", "plugin", "component"])
_IDS = st.sampled_from(["a", "b", "c"])
_MORE = st.one_of(
    st.builds(events.ToolCallStarted, _IDS, st.text(max_size=9), strategies.OBJECTS, KINDS),
    st.builds(events.ActionRequested, st.just("tool.approve"), strategies.OBJECTS, strategies.OBJECTS),
    st.builds(
        events.ActionRequested,
        st.just("tool.approve"),
        st.fixed_dictionaries({"tool_call_id": _IDS, "tool_name": st.text(max_size=5)}),
    ),
    st.builds(
        events.StateUpdated,
        st.just("mcp"),
        st.text(max_size=5),
        st.lists(st.fixed_dictionaries({"name": st.text(max_size=5)}), max_size=2),
    ),
    st.builds(
        events.ToolCallCompleted,
        _IDS,
        st.text(max_size=5),
        st.booleans(),
        st.integers(0, 9),
        parameters=strategies.OBJECTS,
        asked_in=st.just(EARLIER.hex),
        approval_id=st.none() | _IDS,
        kind=KINDS,
        server_label=st.text(max_size=5),
    ),
    strategies.MESSAGE_DELTAS,
    strategies.FACTS[events.ReasoningDelta],
    strategies.FACTS[events.MessageCompleted],
)
_INTERRUPTS = st.lists(st.fixed_dictionaries({"id": _IDS, "toolCallId": _IDS}), max_size=2)
_ENDS = st.one_of(
    strategies.TERMINALS,
    st.builds(events.RunCompleted, st.sampled_from(["stop", "length"]), interrupts=_INTERRUPTS),
    st.builds(events.RunFailed, st.sampled_from(["cancelled", "worker_lost"]), st.just("It ended.")),
)
_FACTS = st.lists(
    _MORE | strategies.UNENDED.flatmap(lambda some: st.sampled_from(some or [events.RunStarted(1, 2)])),
    max_size=25,
)


def _run(queued: bool, facts: list[Fact], end: Fact, after: list[Fact]) -> list[RunEvent]:
    begun: list[Fact] = [events.RunQueued(0)] if queued else []
    return strategies.numbered([*begun, *facts, end, *after])


RUNS = st.builds(_run, st.booleans(), _FACTS, _ENDS, st.lists(_MORE, max_size=2))


def frames(dialect: Dialect, run: Sequence[RunEvent], head: RunHead = HEAD) -> list[Frame]:
    encoder = dialect.encoder(head)
    return [frame for event in run for frame in encoder.feed(event)]


def resumed(dialect: Dialect, run: Sequence[RunEvent], after: int) -> list[Frame]:
    """What a reader gets that comes back with this `Last-Event-ID`."""
    row = RunRow(RUN, THREAD, RUN, "", "request-1", "completed", "demo", None, None, AT_MS, HEAD.wire)
    cursor = open_cursor(row, dialect, after=after)
    return [frame for event in run for frame in cursor.take(make_batch(RUN, [event]))]


def told(facts: list[Fact]) -> list[RunEvent]:
    """A run that began as runs do, and these facts."""
    return strategies.numbered([events.RunQueued(0), events.RunStarted(1, 2), *facts])


def stored(texts: Sequence[Any]) -> list[str]:
    return [text for text in texts if text]
