"""What one turn of the loop writes goes out at once and in order, up to a bound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import uvloop

from config.process.corked_transport import _MOST, CorkedTransport


class Sent(asyncio.Transport):
    """A transport that keeps what it is to send, call by call."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[bytes] = []
        self.closed = False

    def writelines(self, list_of_data: Any) -> None:
        self.calls.append(b"".join(list_of_data))

    def is_closing(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True

    abort = close

    def get_write_buffer_size(self) -> int:
        return 0


def played(play: Callable[[CorkedTransport, Sent], Awaitable[None]]) -> list[bytes]:
    async def main() -> list[bytes]:
        below = Sent()
        await play(CorkedTransport(below, asyncio.get_running_loop()), below)
        return below.calls

    return asyncio.Runner(loop_factory=uvloop.new_event_loop).run(main())


def test_the_pieces_of_one_turn_are_sent_together_and_those_of_the_next_apart() -> None:
    async def play(transport: CorkedTransport, below: Sent) -> None:
        transport.write(b"head ")
        transport.writelines([b"body ", b"end"])
        assert (below.calls, transport.get_write_buffer_size()) == ([], 13)
        await asyncio.sleep(0)
        transport.write(b"next")
        await asyncio.sleep(0)

    assert played(play) == [b"head body end", b"next"]


def test_a_close_sends_what_is_kept_and_an_abort_drops_it() -> None:
    async def close(transport: CorkedTransport, _below: Sent) -> None:
        transport.write(b"last")
        transport.close()
        transport.write(b"too late")
        await asyncio.sleep(0)

    async def abort(transport: CorkedTransport, _below: Sent) -> None:
        transport.write(b"lost")
        transport.abort()
        await asyncio.sleep(0)

    assert played(close) == [b"last"]
    assert played(abort) == []


def test_more_than_the_bound_is_not_kept() -> None:
    async def play(transport: CorkedTransport, below: Sent) -> None:
        for _ in range(5):
            transport.write(b"x" * (_MOST // 2))
        assert [len(call) for call in below.calls] == [_MOST // 2 * 3]
        await asyncio.sleep(0)

    assert [len(call) for call in played(play)] == [_MOST // 2 * 3, _MOST // 2 * 2]
