"""Coarse timers: one timer of the event loop for thousands of streams, late by a quarter of a second.

A timer of uvloop takes half a KiB, and each stream would need two: for its run's deadline and for the
silence of its provider.
"""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import Final, Protocol
from weakref import WeakKeyDictionary

TICK_S: Final = 0.25


class Timed(Protocol):
    """What has to be looked at again and again."""

    def look(self, now: float) -> None:
        """Do what is due at this time of the loop."""


_watched: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, dict[Timed, None]]] = WeakKeyDictionary()


def watch(timed: Timed) -> None:
    """Look at it four times a second on the running loop, until `unwatch`."""
    loop = asyncio.get_running_loop()
    mine = _watched.get(loop)
    if mine is None:
        mine = _watched[loop] = {}
        _schedule(loop)
    mine[timed] = None


def unwatch(timed: Timed) -> None:
    """Look at it no more; idempotent."""
    _watched.get(asyncio.get_running_loop(), {}).pop(timed, None)


def _schedule(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_later(TICK_S, _look_at_all, loop, context=Context())


def _look_at_all(loop: asyncio.AbstractEventLoop) -> None:
    mine = _watched[loop]
    if not mine:
        del _watched[loop]
        return
    _schedule(loop)  # first: one that fails is looked at again, and holds up none of the others for ever
    now = loop.time()
    for timed in tuple(mine):
        if timed in mine:
            timed.look(now)
