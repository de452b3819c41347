"""Random events for property tests: every fact, with texts of every length and script."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from conversations import events
from conversations.events import Fact, RunEvent
from conversations.log.fact_order import FactOrdering
from conversations.log.transcript import Transcript

AT = 1_760_000_000_000
_UNITS = ["x", "word ", "你好，", "句。", "🏋️‍♀️", ".\n", "é\t", "a\u2028b", "\x00", "<b>", "\u200b", "   "]


def texts() -> st.SearchStrategy[str]:
    """Texts of 0 to about 1,500 characters: prose, CJK, emoji, separators, anything."""
    repeated = st.builds(lambda unit, count: unit * count, st.sampled_from(_UNITS), st.integers(0, 300))
    mixed = st.lists(st.sampled_from(_UNITS), max_size=300).map("".join)
    return st.one_of(st.text(max_size=30), repeated, mixed)


def _said(longest: int = 64) -> st.SearchStrategy[str]:
    return st.text(min_size=1, max_size=longest)


_IDS = st.sampled_from(["a", "b", "c"])
_STAGES = st.sampled_from(["intent", "execution", "review"])
_COUNTS = st.integers(0, 2**31 - 1)
_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=8), _JSON, max_size=3)
_PROBLEMS = st.builds(events.Problem, _said(), _said())
_CONTENTS = st.builds(
    events.MessageContent,
    st.sampled_from(["image", "audio", "video", "file"]),
    st.text(max_size=9),
    st.text(max_size=9),
    st.text(max_size=4),
    st.text(max_size=9),
    st.just("") | _IDS,
) | st.builds(
    events.MessageContent,
    st.just("data"),
    value=st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=2),
)
_BODIES = st.builds(
    events.MessageBody,
    _IDS,
    st.sampled_from(["assistant", "reasoning"]),
    texts(),
    OBJECTS,
    st.none() | OBJECTS,
    st.lists(_CONTENTS, max_size=2),
)
_COSTS = st.none() | st.decimals(0, 999, places=10)
_USED = st.builds(events.Usage, _COUNTS, _COUNTS, _COUNTS, _COUNTS, _COUNTS, _COSTS, _COUNTS)

MESSAGE_DELTAS = st.builds(events.MessageDelta, _IDS, texts())
FACTS: dict[type, st.SearchStrategy[Any]] = {
    events.RunQueued: st.builds(events.RunQueued, _COUNTS),
    events.RunStarted: st.builds(events.RunStarted, st.integers(1, 9), _COUNTS),
    events.ModelRouted: st.builds(
        events.ModelRouted,
        st.text(max_size=9),
        st.text(max_size=9),
        st.none() | _COUNTS,
        st.none() | _said(),
    ),
    events.ModelCompleted: st.builds(
        events.ModelCompleted,
        st.text(max_size=9),
        st.text(max_size=9),
        st.none() | _COUNTS,
        _USED,
        _said(),
        _said(),
        _IDS,
    ),
    events.StageStarted: st.builds(events.StageStarted, _STAGES),
    events.StageCompleted: st.builds(events.StageCompleted, _STAGES, _COUNTS),
    events.ReasoningDelta: st.builds(events.ReasoningDelta, _IDS, texts()),
    events.MessageDelta: MESSAGE_DELTAS,
    events.MessageCompleted: st.builds(events.MessageCompleted, _BODIES),
    events.ToolCallStarted: st.builds(events.ToolCallStarted, _IDS, _said(), OBJECTS),
    events.ToolCallCompleted: st.one_of(
        st.builds(events.ToolCallCompleted, _IDS, _said(), st.just(True), _COUNTS, OBJECTS),
        st.builds(
            events.ToolCallCompleted, _IDS, _said(), st.just(False), _COUNTS, st.none(), _PROBLEMS
        ),
        st.builds(events.ToolCallCompleted, _IDS, _said(), st.booleans(), _COUNTS),
    ),
    events.ArtifactCreated: st.builds(events.ArtifactCreated, _IDS, _said(), _said(), _said(), _COUNTS),
    events.StateUpdated: st.builds(events.StateUpdated, _said(), _said(), _JSON),
    events.ActionRequested: st.builds(
        events.ActionRequested, _said(), st.none() | OBJECTS, st.none() | OBJECTS
    ),
    events.UpstreamRaw: st.builds(
        events.UpstreamRaw, _said(), texts(), st.none() | _said(), st.booleans()
    ),
    events.RunCompleted: st.builds(
        events.RunCompleted,
        _said(),
        _USED,
        metadata=OBJECTS,
    ),
    events.RunFailed: st.builds(events.RunFailed, _said(), _said(), st.booleans()),
}
TERMINALS = FACTS[events.RunCompleted] | FACTS[events.RunFailed]
UNENDED: st.SearchStrategy[list[Fact]] = st.lists(
    st.one_of([made for kind, made in FACTS.items() if kind not in events.TERMINAL]), max_size=25
)


def numbered(facts: Sequence[Fact], *, after: int = 0) -> list[RunEvent]:
    """The facts as consecutive events, ten milliseconds apart."""
    return [RunEvent(seq, AT + 10 * seq, fact) for seq, fact in enumerate(facts, after + 1)]


UNENDED_RUNS = UNENDED.map(numbered)
RUNS = st.builds(lambda facts, terminal: numbered([*facts, terminal]), UNENDED, TERMINALS)


def admitted(*facts: Fact) -> list[Fact]:
    """What of these facts of a runner goes to the log, and what is put before it."""
    transcript, log = Transcript(UUID(int=0)), list[Fact]()
    order = FactOrdering(transcript.text_of)
    for fact in facts:
        for said in order.admit(fact):
            log.append(said)
            transcript.feed(RunEvent(len(log), 0, said))
    return log


LOGGED_RUNS = st.builds(
    lambda facts, terminal: numbered([*admitted(*facts), terminal]), UNENDED, TERMINALS
)
