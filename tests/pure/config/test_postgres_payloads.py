"""A notification of any size becomes payloads that PostgreSQL takes, and comes out as it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from config.coordination.postgres_exchange import CARRIED, PostgresExchange, Reassembly, split

SENDER = 4711
sizes = st.integers(0, 40_000)


@given(st.lists(st.builds(lambda size, seed: (seed * (size + 1))[:size], sizes, st.binary(min_size=1))))
def test_messages_come_out_as_they_went_in(messages: list[bytes]) -> None:
    told: list[bytes] = []
    parts = Reassembly(lambda _, message: told.append(message))
    for number, message in enumerate(messages):
        payloads = split(message, number) if message else split(b"\x80", number)
        assert all(0 < len(payload) < 8_000 for payload in payloads)
        assert len(payloads) == 1 or len(set(payloads)) == len(payloads)  # equal ones are sent once
        for payload in payloads:
            parts.add("channel", payload, SENDER)
    assert told == [message or b"\x80" for message in messages]


def test_parts_of_another_message_are_no_parts_of_this_one() -> None:
    told: list[bytes] = []
    parts = Reassembly(lambda _, message: told.append(message))
    first, second = split(b"a" * 10_000, 1), split(b"b" * 10_000, 2)
    parts.add("channel", first[0], SENDER)
    for payload in second:
        parts.add("channel", payload, SENDER + 1)
    parts.add("channel", first[1], SENDER)
    assert told[0] == b"b" * 10_000
    assert b"a" * 10_000 not in told


def test_a_long_text_is_left_to_the_reader() -> None:
    exchange = PostgresExchange()
    assert [exchange.carries(CARRIED), exchange.carries(CARRIED + 1)] == [True, False]
