"""How a provider's stream is read on: a short one without a rest, a long one at others' pace."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from agents.providers import http
from agents.providers.base import ProviderError


def response(*pieces: bytes) -> Any:
    """A response whose body comes in these pieces."""
    left = [*pieces]

    async def readany() -> bytes:
        return left.pop(0) if left else b""

    return SimpleNamespace(content=SimpleNamespace(readany=readany), close=lambda: None)


def read(*pieces: bytes, rest: http.Rest | None) -> list[bytes]:
    async def play() -> list[bytes]:
        http.rest_between_reads.set(rest)
        return [piece async for piece in http.read(response(*pieces))]

    return asyncio.run(play())


@pytest.mark.parametrize(("pieces", "rests"), [(3, 0), (4, 1), (7, 4)])
def test_only_what_is_not_short_rests_between_reads(pieces: int, rests: int) -> None:
    rested = list[None]()

    async def rest() -> None:
        rested.append(None)

    body = [b"piece"] * pieces
    assert read(*body, rest=rest) == body
    assert len(rested) == rests


def test_where_nobody_says_how_nothing_rests() -> None:
    assert read(*[b"piece"] * 9, rest=None) == [b"piece"] * 9


def test_a_rest_that_is_cancelled_stops_the_reading() -> None:
    async def rest() -> None:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        read(*[b"piece"] * 9, rest=rest)


def test_a_connection_that_broke_during_a_rest_is_an_interruption() -> None:
    pieces = [b"piece"] * 4

    async def readany() -> bytes:
        if not pieces:
            raise ConnectionResetError
        return pieces.pop()

    async def play() -> None:
        http.rest_between_reads.set(lambda: asyncio.sleep(0))
        body = SimpleNamespace(content=SimpleNamespace(readany=readany), close=lambda: None)
        async for _ in http.read(body):  # type: ignore[arg-type]
            pass

    with pytest.raises(ProviderError) as refusal:
        asyncio.run(play())
    assert refusal.value.code == "provider_stream_interrupted"


@pytest.mark.parametrize("breaks", [False, True])
def test_what_comes_after_the_end_is_read_without_a_rest(breaks: bool) -> None:
    pieces = [b"comment"] * 9

    async def readany() -> bytes:
        if not pieces and breaks:
            raise ConnectionResetError
        return pieces.pop() if pieces else b""

    async def rest() -> None:
        raise AssertionError

    async def play() -> None:
        http.rest_between_reads.set(rest)
        await http.let_end(SimpleNamespace(content=SimpleNamespace(readany=readany)))  # type: ignore[arg-type]

    asyncio.run(play())
    assert not pieces
