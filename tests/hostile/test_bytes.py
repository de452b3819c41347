"""What cuts and parses bytes of strangers: an error of ours or none, in linear time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.providers.base import ProviderError
from agents.providers.sse import EventSplitter
from agents.runtimes.plugins import framing
from agents.runtimes.plugins.envelopes import read
from config.errors import InvalidRequest, UnsupportedMedia
from config.http import multipart
from conversations.attachments import images
from tests.support.pictures import picture
from tests.support.properties.effort import examples

TRIES = 60
CPU_S_PER_MIB = 1.0
LEAST_CPU_S = 0.5


def cpu_s(work: Callable[[], object]) -> float:
    begun = time.thread_time()
    work()
    return time.thread_time() - begun


def check_linear(work: Callable[[bytes], object], body: bytes) -> None:
    """The work on so many bytes takes no longer than any linear work does."""
    assert cpu_s(lambda: work(body)) <= max(LEAST_CPU_S, CPU_S_PER_MIB * len(body) / 2**20)


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    return (body[start : start + size] for start in range(0, len(body), size))


def repeated(*units: bytes) -> st.SearchStrategy[bytes]:
    """Up to half a MiB of such units and of anything."""
    unit = st.sampled_from(units) | st.binary(min_size=1, max_size=8)
    run = st.builds(
        lambda some, size: some * (size // len(some) + 1), unit, st.sampled_from((1, 50, 5_000, 500_000))
    )
    return st.lists(run, max_size=4).map(lambda runs: b"".join(runs)[: 2**19])


SIZES = st.sampled_from((64, 1_000, 65_536))


# --- images ---------------------------------------------------------------------------------------

SAMPLES = {kind: picture(kind, (40, 30)) for kind in ("JPEG", "PNG", "WEBP", "GIF")}


def clean(body: bytes) -> bytes | None:
    """What is stored of an upload; None if it is refused."""
    with TemporaryDirectory() as folder:
        original, target = Path(folder, "original"), Path(folder, "target")
        original.write_bytes(body)
        try:
            images.clean(original, target)
        except UnsupportedMedia:
            return None
        return target.read_bytes()


@st.composite
def damaged_images(draw: st.DrawFn) -> bytes:
    """A picture with some of its bytes replaced, twice or more often, and something behind its end."""
    body = SAMPLES[draw(st.sampled_from(sorted(SAMPLES)))]
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(4, len(body)))
        end = draw(st.integers(start, min(len(body), start + 8)))
        body = body[:start] + draw(st.binary(max_size=8)) + body[end:]
    return body + draw(st.just(b"") | repeated(b"\xff", b"\x00", b"\xff\xd8\xff\xe1\x00\x02", b"IDAT"))


@settings(max_examples=examples(TRIES), database=None)
@given(damaged_images())
def test_a_damaged_image_is_refused_or_cleaned_once_and_for_all(body: bytes) -> None:
    kept = clean(body)
    check_linear(clean, body)
    if kept is not None:
        assert len(kept) <= len(body) + 64
        assert clean(kept) == kept


@pytest.mark.parametrize("kind", SAMPLES)
@pytest.mark.parametrize(
    "unit", [b"\x00", b"\xff", b"\xff\xe1\x00\x02", b"\x00\x00\x00\x00IDAT", b"\x21\xfe\x00"]
)
def test_a_long_tail_behind_the_beginning_takes_linear_time(kind: str, unit: bytes) -> None:
    for part in (2, 3):
        check_linear(
            clean, SAMPLES[kind][: len(SAMPLES[kind]) * part // 4] + unit * (2**20 // len(unit))
        )


# --- multipart ------------------------------------------------------------------------------------

FILE = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'


async def _parts(body: bytes, size: int) -> list[multipart.Part | bytes]:
    async def arriving() -> AsyncIterator[bytes]:
        for piece in pieces(body, size):
            yield piece

    return [part async for part in multipart.parts(arriving(), "multipart/form-data; boundary=b")]


def upload(body: bytes, size: int = 65_536) -> bytes | None:
    """The bytes of all parts; None for a broken body."""
    try:
        return b"".join(part for part in asyncio.run(_parts(body, size)) if isinstance(part, bytes))
    except InvalidRequest:
        return None


@settings(max_examples=examples(TRIES), database=None)
@given(repeated(b"\r\n", b"--b", b"\r\n--b\r\n", b"\r", b"-", b"\x00", b"Content-Disposition: "), SIZES)
def test_what_is_uploaded_comes_out_whole_however_it_arrives(body: bytes, size: int) -> None:
    if b"\r\n--b" not in body:
        assert upload(FILE + body + b"\r\n--b--\r\n", size) == body
    check_linear(upload, FILE + body)


@settings(max_examples=examples(TRIES), database=None)
@given(
    repeated(b"--b\r\n", b"--b--", FILE, b"\r\n\r\n", b"a: b\r\n", b'; name="', b"\\", b"\xff"), SIZES
)
def test_a_broken_upload_is_refused_with_an_error_of_ours(body: bytes, size: int) -> None:
    upload(body, size)
    check_linear(upload, body)


# --- events of a provider -------------------------------------------------------------------------


def cut(body: bytes, size: int = 65_536) -> list[bytes] | None:
    """The data of the events; None beyond the limit."""
    cutter = EventSplitter(limit=2**18)
    try:
        return [data for piece in pieces(body, size) for data in cutter.feed(piece)]
    except ProviderError:
        return None


@settings(max_examples=examples(TRIES), database=None)
@given(
    repeated(b"data: ", b"data:", b"\n", b"\r", b"\r\n", b"\n\n", b"\xef\xbb\xbf", b": ", b"id"), SIZES
)
def test_any_stream_is_cut_in_linear_time(body: bytes, size: int) -> None:
    found = cut(body, size)
    assert found is None or sum(map(len, found)) <= len(body)
    check_linear(cut, body)


# --- frames of a plugin ---------------------------------------------------------------------------


def lines(body: bytes) -> None:
    reader = framing.LineJoiner()
    try:
        for line in body.split(b"\n"):
            found = reader.feed(line)
            if found is not None:
                read(found)
    except framing.FramingError:
        return


def messages(body: bytes, size: int = 65_536) -> None:
    together = framing.PieceJoiner()
    try:
        for piece in pieces(body, size):
            found = together.feed(piece.decode("utf-8", "replace"))
            if found is not None:
                read(found)
    except framing.FramingError:
        return


FRAMES = repeated(
    b'{"type":"chunk_start"}\n',
    b'{"type":"chunk_data","data":"x"}\n',
    b'{"type":"chunk_end"}\n',
    b'{"seq_id":1,"code":0,"data":{}}\n',
    b'{"seq_id":1,',
    b"{",
    b"}",
    b"[",
    b'{"a":',
    b'"',
    b"\\",
    b"\n",
    b" ",
)


@settings(max_examples=examples(TRIES), database=None)
@given(FRAMES)
def test_any_lines_of_a_plugin_are_read_in_linear_time(body: bytes) -> None:
    check_linear(lines, body)


@settings(max_examples=examples(TRIES), database=None)
@given(FRAMES)
def test_any_messages_of_a_plugin_are_read_in_linear_time(body: bytes) -> None:
    check_linear(messages, body)


@pytest.mark.parametrize("piece", ["{}", '"}', "}", "[{}]", '\\"{', "\\\\", '"' * 99, "{" * 99 + "}"])
def test_a_piece_costs_the_same_however_long_the_message_already_is(piece: str) -> None:
    together = framing.PieceJoiner()
    together.feed('{"a": [' + piece * (2**22 // len(piece)))

    def feed() -> None:  # whoever looked at the whole for each would look at 16 GiB
        for _ in range(4_000):
            together.feed(piece)

    assert cpu_s(feed) < LEAST_CPU_S


@settings(max_examples=examples(TRIES), database=None)
@given(st.text(st.characters(), max_size=200), st.integers(1, 2_000))
def test_a_document_of_any_text_survives_both_framings(text: str, times: int) -> None:
    document = json.dumps({"seq_id": 1, "code": 0, "data": {"text": text * times}})
    together, reader = framing.PieceJoiner(), framing.LineJoiner()
    whole = [found for piece in framing.pieces(document) if (found := together.feed(piece))]
    marked = [read for line in framing.lines(document) if (read := reader.feed(line.strip()))]
    assert whole == [document]
    assert marked == [document.encode()]
