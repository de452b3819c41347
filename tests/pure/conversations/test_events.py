"""The stored form of events gives the events again, however they were batched."""

from __future__ import annotations

from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conversations import events
from conversations.events import LaterFact, RunEvent
from conversations.log.batches import Batch
from conversations.log.fold import keeps_all
from conversations.runs.event_timeline import make_rows

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


# --- what the release after this one has written ------------------------------------------------------

LATER = b'{"type":"mood.changed","mood":{"value":"calm"}}'
BATCH = (
    b'[[5,{"type":"message.delta","message_id":"m","text":"x"}],[6,' + LATER + b"],"
    b'[7,{"type":"message.deltas","message_id":"m","texts":["y","z"],"later":[0,1]}]]'
)


def test_a_fact_of_a_later_release_keeps_its_place_and_its_json() -> None:
    found = events.decode(4, BATCH)
    assert [event.seq for event in found] == [4, 5, 6, 7]
    assert found[1] == RunEvent(5, 6, LaterFact("mood.changed", LATER))
    assert found[1].type == "mood.changed"
    assert found[3].fact == events.MessageDelta("m", "z")
    assert [event.seq for event in events.decode_joined(4, BATCH)] == [4, 5, 7]
    assert events.encode(found) == BATCH
    assert keeps_all(Batch(UUID(int=1), 4, 7, BATCH))


def test_staff_see_a_fact_of_a_later_release() -> None:
    rows = list(make_rows(events.decode(4, BATCH)))
    assert [(row.seqs, row.type) for row in rows][1] == ("5", "mood.changed")
    assert rows[1].text == '{"mood":{"value":"calm"}}'


def test_a_member_of_a_later_release_is_passed_over_and_missed() -> None:
    batch = b'[[5,{"type":"message.delta","message_id":"m","text":"x","mood":"calm"}]]'
    found = events.decode(1, batch)
    assert found == [RunEvent(1, 5, events.MessageDelta("m", "x"))]
    assert not keeps_all(Batch(UUID(int=1), 1, 1, batch))
    spaced = b' [ [5, {"text": "x", "type": "message.delta", "message_id": "m"}]]'
    assert keeps_all(Batch(UUID(int=1), 1, 1, spaced))


@pytest.mark.parametrize("entry", [b'{"type":"message.delta","message_id":"m"}', b'{"text":"x"}', b"1"])
def test_what_is_broken_is_no_fact_of_a_later_release(entry: bytes) -> None:
    with pytest.raises(msgspec.ValidationError):
        events.decode(1, b"[[5," + entry + b"]]")
