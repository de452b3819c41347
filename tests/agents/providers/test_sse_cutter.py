"""A provider's byte stream, cut into the data of its events (WHATWG HTML §9.2.6)."""

from __future__ import annotations

import re
import time
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.providers.base import ProviderError
from agents.providers.sse import EventSplitter

LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])
WORDS = st.text(st.characters(exclude_characters="\r\n", codec="utf-8"), max_size=20)
FIELDS = st.one_of(
    WORDS.map("data: {}".format),
    WORDS.map("data:{}".format),
    WORDS.map(": {}".format),
    st.just(":"),
    WORDS.map("event: {}".format),
    WORDS.map("id: {}".format),
    st.just("retry: 3000"),
    st.just("database: no field of ours"),
)
LINES = st.lists(st.one_of(FIELDS, st.just("")), max_size=20)


def data_by_the_standard(stream: str) -> list[bytes]:
    """The data of every whole event, read all at once as the standard says."""
    found, data = [], []
    *lines, _rest = re.split("\r\n|\n|\r", stream)
    for line in lines:
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line == "" and data:
            found.append("\n".join(data).encode())
            data = []
    return found


def cut_in(pieces: list[bytes]) -> list[bytes]:
    """What a fresh cutter gives for these reads."""
    cutter = EventSplitter()
    return [data for piece in pieces for data in cutter.feed(piece)]


@st.composite
def streams(draw: st.DrawFn) -> str:
    """Lines with ends that may differ from line to line, up to the end of an event."""
    body = "".join(line + draw(LINE_ENDS) for line in draw(LINES))
    return f"{body}: end\n\n"


@st.composite
def reads(draw: st.DrawFn) -> tuple[str, list[bytes]]:
    """A stream, and the same as reads that may cut characters and line ends in two."""
    stream = draw(streams())
    whole = stream.encode()
    places = sorted(draw(st.sets(st.integers(0, len(whole)), max_size=12)) | {0, len(whole)})
    pieces = [whole[start:end] for start, end in pairwise(places)]
    return stream, pieces


@given(reads())
def test_a_byte_order_mark_at_the_beginning_is_no_data(read: tuple[str, list[bytes]]) -> None:
    _, pieces = read
    mark = "\ufeff".encode()
    assert cut_in([mark[:1], mark[1:] + pieces[0], *pieces[1:]]) == cut_in(pieces)


@given(reads())
def test_however_a_stream_is_split_its_events_are_the_same(cut: tuple[str, list[bytes]]) -> None:
    stream, pieces = cut
    assert cut_in(pieces) == data_by_the_standard(stream)


@given(streams())
@example("data: 卧推 🏋️\r\ndata: é\r\r\ndata: a\r\n\r\n: end\n\n")
def test_a_stream_that_arrives_byte_by_byte_gives_the_same_events(stream: str) -> None:
    assert cut_in([bytes([byte]) for byte in stream.encode()]) == data_by_the_standard(stream)


@pytest.mark.parametrize(
    ("pieces", "events"),
    [
        ([b"data: a\n\n"], [b"a"]),
        ([b"data:a\n\n"], [b"a"]),
        ([b"data:  a\n\n"], [b" a"]),
        ([b"data:\n\n"], [b""]),
        ([b"data: a\ndata: b\n\n"], [b"a\nb"]),
        ([b"data: a\n\ndata: b\n\n"], [b"a", b"b"]),
        ([b"event: x\nid: 7\nretry: 1\ndata: a\n\n"], [b"a"]),
        ([b": keep-alive\n\n", b": keep-alive\n\ndata: a\n\n"], [b"a"]),
        ([b": comment\ndata: a\n: comment\ndata: b\n\n"], [b"a\nb"]),
        ([b"\n\n\ndata: a\n\n\n\n"], [b"a"]),
        ([b"data: a\r\n\r\n"], [b"a"]),
        ([b"data: a\r\n", b"\r\n"], [b"a"]),
        ([b"data: a\r", b"\n\r", b"\n"], [b"a"]),
        ([b"data: a\rdata: b\r\rdata"], [b"a\nb"]),
        ([b"data: \xe5\x8d", b"\xa7\xe6\x8e\xa8\n\n"], ["卧推".encode()]),
        ([b"data: half an event\n"], []),
        ([b"data: a\n\ndata: cut"], [b"a"]),
        ([b"", b"data: a\n", b"", b"\n"], [b"a"]),
        ([b"datas: a\n\n"], []),
    ],
)
def test_reads_give_these_events(pieces: list[bytes], events: list[bytes]) -> None:
    assert cut_in(pieces) == events


def test_a_lone_cr_at_the_end_of_a_read_waits_for_what_follows_it() -> None:
    cutter = EventSplitter()
    assert list(cutter.feed(b"data: a\r\r")) == []
    assert list(cutter.feed(b"data: b\r")) == [b"a"]
    assert list(cutter.feed(b"\n\r\n")) == [b"b"]


def test_an_event_is_given_as_soon_as_its_last_byte_is_there() -> None:
    cutter = EventSplitter()
    assert list(cutter.feed(b"data: a\n")) == []
    assert list(cutter.feed(b"\n")) == [b"a"]


def test_a_line_without_an_end_is_refused_beyond_the_limit() -> None:
    cutter = EventSplitter(limit=100)
    assert list(cutter.feed(b"data: " + b"x" * 94)) == []
    with pytest.raises(ProviderError):
        list(cutter.feed(b"x"))


def test_an_event_of_endless_lines_is_refused_beyond_the_limit() -> None:
    cutter = EventSplitter(limit=100)
    assert [list(cutter.feed(b"data: xxxx\n")) for _ in range(9)] == [[]] * 9
    with pytest.raises(ProviderError):
        list(cutter.feed(b"data: xxxx\n"))


def test_many_events_together_may_be_larger_than_the_limit() -> None:
    cutter = EventSplitter(limit=100)
    assert list(cutter.feed(b"data: xxxx\n\n" * 100)) == [b"xxxx"] * 100


def test_an_event_in_many_reads_is_read_once() -> None:
    cutter = EventSplitter()
    cutter.feed(b"data: ")
    begun = time.thread_time()
    assert not any(cutter.feed(b"x" * 512) for _ in range(8_192))
    assert cutter.feed(b"\n\n") == [b"x" * 512 * 8_192]
    assert time.thread_time() - begun < 1.0
