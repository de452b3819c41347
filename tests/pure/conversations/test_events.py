"""The stored form of events gives the events again, however they were batched."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conversations import events
from conversations.events import RunEvent

FACTS = st.one_of(
    st.builds(events.MessageDelta, st.sampled_from(["a", "b"]), st.text()),
    st.builds(events.ReasoningDelta, st.sampled_from(["a", "b"]), st.text()),
    st.builds(events.StageStarted, st.text()),
    st.builds(events.RunFailed, st.text(), st.text(), st.booleans()),
)


@given(st.lists(st.tuples(st.integers(0, 2**42), FACTS), min_size=1), st.integers(1, 1000))
def test_what_is_encoded_is_decoded_with_every_seq_and_time(
    facts: list[tuple[int, events.Fact]], first: int
) -> None:
    some = [RunEvent(seq, at, fact) for seq, (at, fact) in enumerate(facts, first)]
    assert events.decode(first, events.encode(some)) == some


def test_deltas_of_one_message_are_stored_as_one_entry() -> None:
    some = [RunEvent(n, 100 + n, events.MessageDelta("m", f"t{n} ")) for n in range(1, 4)]
    assert events.encode(some) == (
        b'[[101,{"type":"message.deltas","message_id":"m","texts":["t1 ","t2 ","t3 "],"later":[0,1,2]}]]'
    )


def test_a_lone_delta_and_one_of_another_message_stand_for_themselves() -> None:
    some = [
        RunEvent(1, 5, events.MessageDelta("m", "x")),
        RunEvent(2, 6, events.MessageDelta("n", "y")),
        RunEvent(3, 6, events.ReasoningDelta("n", "z")),
    ]
    assert events.encode(some).count(b'.delta"') == 3
