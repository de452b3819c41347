"""How documents are cut and put together again, and what is rubbish."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.runtimes.plugins.envelopes import (
    LARGEST,
    Reply,
    Request,
    TooLarge,
    TooManyValues,
    read,
    read_without_blocking,
    write,
)
from agents.runtimes.plugins.framing import (
    FramingError,
    LineJoiner,
    PieceJoiner,
    escape_non_ascii,
    lines,
    pieces,
)

_TEXTS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)


@given(_TEXTS, st.integers(1, 4000))
def test_lines_put_together_are_the_document(text: str, times: int) -> None:
    document = write({"seq_id": 1, "action": "a", "data": {"text": text * times}})
    reader = LineJoiner()
    whole = [found for line in lines(document) if (found := reader.feed(line.strip())) is not None]
    assert [json.loads(one) for one in whole] == [json.loads(document)]


@given(_TEXTS, st.integers(1, 8000))
def test_pieces_put_together_are_the_document(text: str, times: int) -> None:
    document = write({"seq_id": 1, "code": 0, "data": {"text": text * times}})
    together = PieceJoiner()
    whole = [found for piece in pieces(document) if (found := together.feed(piece)) is not None]
    assert [json.loads(one) for one in whole] == [json.loads(document)]


@given(_TEXTS)
def test_escaped_text_says_the_same(text: str) -> None:
    document = json.dumps({"a": text}, ensure_ascii=False)
    assert escape_non_ascii(document).isascii()
    assert json.loads(escape_non_ascii(document)) == {"a": text}


def test_a_program_that_prints_between_lines_is_passed_over() -> None:
    reader = LineJoiner()
    assert reader.feed(b"Welcome!") is None
    assert reader.feed(b"") is None
    assert reader.feed(b'{"seq_id": 1, "code": 0}') == b'{"seq_id": 1, "code": 0}'


def test_what_begins_as_no_document_is_dropped_and_the_next_is_read() -> None:
    together = PieceJoiner()
    assert together.feed("this is no JSON") is None
    assert together.feed('{"seq_id": 1, "code": 0}') == '{"seq_id": 1, "code": 0}'


def test_a_piece_that_looks_like_a_document_is_only_a_piece() -> None:
    forged = '{"seq_id": 7, "action": "invoke_llm", "data": {}}'
    together = PieceJoiner()
    assert together.feed('{"seq_id": 1, "code": 0, "data": {"x": [') is None
    assert together.feed(forged) is None
    assert together.feed("]}}") == '{"seq_id": 1, "code": 0, "data": {"x": [' + forged + "]}}"


@given(
    st.dictionaries(
        st.text(max_size=8),
        st.recursive(st.none() | st.text('"\\\\{}[]ab', max_size=9), st.lists, max_leaves=20),
        max_size=4,
    ),
    st.integers(1, 9),
)
def test_a_document_is_whole_at_its_last_piece_and_not_before(value: dict[str, Any], size: int) -> None:
    document, together = json.dumps(value), PieceJoiner()
    cut = [document[start : start + size] for start in range(0, len(document), size)]
    assert [together.feed(piece) for piece in cut] == [None] * (len(cut) - 1) + [document]


@pytest.mark.parametrize("rubbish", ["{hello}", "{]", "{}}}}", '{"a": 1}{"b": 2}'])
def test_what_only_looks_like_a_document_does_not_spoil_the_next(rubbish: str) -> None:
    together = PieceJoiner()
    assert read(together.feed(rubbish) or "") is None
    assert together.feed('{"seq_id": 1, "code": 0}') == '{"seq_id": 1, "code": 0}'


def test_a_document_of_too_many_values_is_not_decoded() -> None:
    document = '{"seq_id": 1, "code": 0, "data": {"x": [' + "[]," * 1_000_000 + "[]]}}"
    with pytest.raises(TooManyValues):
        asyncio.run(read_without_blocking(document))


def test_a_document_without_end_breaks_the_framing() -> None:
    together, reader = PieceJoiner(), LineJoiner()
    data = json.dumps({"type": "chunk_data", "data": "x" * 1024 * 1024}).encode()
    reader.feed(b'{"type": "chunk_start", "total_size": 1}')
    for _ in range(15):
        together.feed("{" + "x" * 1024 * 1024)
        reader.feed(data)
    reader.feed(data)
    with pytest.raises(FramingError):
        together.feed("{" + "x" * 2 * 1024 * 1024)
    with pytest.raises(FramingError):
        reader.feed(data)


def test_more_than_sixteen_mebibytes_is_not_sent() -> None:
    with pytest.raises(TooLarge):
        write({"seq_id": 1, "action": "a", "data": {"x": "x" * LARGEST}})


@pytest.mark.parametrize(
    "rubbish",
    [
        "",
        "[]",
        "null",
        "{}",
        '{"seq_id": "1", "code": 0}',
        '{"seq_id": 1}',
        "[" * 100_000,
        '{"seq_id": 1, "co',
    ],
)
def test_rubbish_reads_as_nothing(rubbish: str) -> None:
    assert read(rubbish) is None


def test_requests_and_replies_read_whatever_else_they_hold() -> None:
    asked = read(
        '{"seq_id": 3, "action": "x", "data": null, "context": [], "stream_flow_control": 1, "z": 1}'
    )
    assert asked == Request(3, "x", {}, {}, True)
    reply = read(
        '{"seq_id": 3, "code": 1, "message": null, "data": {"a": "\\ud800"}, "chunk_status": "end"}'
    )
    assert isinstance(reply, Reply)
    assert (reply.ok, reply.message, reply.ended, reply.payload) == (False, "", True, {"a": "\ud800"})
