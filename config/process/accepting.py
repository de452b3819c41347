"""Accepting the connections of a burst: as many in a turn of the loop as have come.

libuv accepts one connection of each listening socket in a turn. Of a burst the others, readers of
accepted runs among them, would wait in the kernel, where none can be refused. More sockets accept more,
but each of them is also tried for a lone connection: eight cost nothing, 128 cost a quarter of it. So
when one turn has accepted from all of the few, the rest is accepted by hand.
"""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from typing import Any, Final

from config.process.server_protocols import HttpProtocol, TurnAway

AT_ONCE: Final = 8
"""The listening sockets that the server has, all of the same port."""
_MOST: Final = 128


class Acceptor:
    """The maker of a server's protocols, by which it sees what a turn of the loop has accepted."""

    def __init__(self, listener: socket.socket, turn_away: TurnAway) -> None:
        self._turn_away = turn_away
        self.listeners = [listener, *(listener.dup() for _ in range(AT_ONCE - 1))]
        self._rest = listener.dup()
        self._rest.setblocking(False)
        self._accepted = 0
        self._opening: set[asyncio.Task[Any]] = set()

    def make_protocol(self, **arguments: Any) -> HttpProtocol:
        """Return the protocol of a new connection, from uvicorn's arguments."""
        loop = asyncio.get_running_loop()
        if not self._accepted:
            loop.call_soon(self._end_turn)
        self._accepted += 1
        if self._accepted == AT_ONCE:
            loop.call_soon(self._accept_rest, loop, arguments)
        return HttpProtocol(turn_away=self._turn_away, **arguments)

    def close(self) -> None:
        """Accept no more by hand; uvicorn closes the listeners."""
        self._rest.close()

    def _end_turn(self) -> None:
        self._accepted = 0

    def _accept_rest(self, loop: asyncio.AbstractEventLoop, arguments: dict[str, Any]) -> None:
        make = partial(self.make_protocol, **arguments)
        for _ in range(_MOST):
            try:
                accepted, _ = self._rest.accept()
            except OSError:  # nobody waits any more; or there are too many files, which uvloop reports
                return
            accepted.setblocking(False)
            opening = loop.create_task(_open(loop, make, accepted))
            self._opening.add(opening)
            opening.add_done_callback(self._opening.discard)


async def _open(loop: asyncio.AbstractEventLoop, make: Any, accepted: socket.socket) -> None:
    try:
        await loop.connect_accepted_socket(make, accepted)
    except OSError:  # it has gone again
        accepted.close()
