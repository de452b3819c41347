"""A cache for values that are read often and change rarely, with an expiry in seconds.

Each event loop has its own cached value, and concurrent callers share one read, so a burst of starting
runs costs one statement. Failed reads are not cached. `keep_warm` reads values in use before they
expire, so that a single run does not wait either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from time import monotonic
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
_TICK_S: Final = 0.2
_IN_USE_S: Final = 60.0
_values: list[CachedValue[Any]] = []


class CachedValue(Generic[T]):
    """The result of `read`, cached for `seconds` from the start of the read."""

    def __init__(self, read: Callable[[], Coroutine[Any, Any, T]], *, seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._reading: dict[asyncio.AbstractEventLoop, asyncio.Task[T]] = {}
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[float, T]] = WeakKeyDictionary()
        self._asked_at: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
        _values.append(self)

    async def get(self) -> T:
        loop = asyncio.get_running_loop()
        now = self._asked_at[loop] = monotonic()
        held = self._held.get(loop)
        if held is not None and now < held[0]:
            return held[1]
        return await asyncio.shield(self._reading.get(loop) or self._start(loop))

    async def get_anew(self) -> T:
        """Return the value as it is now, for a caller that knows of a change; callers share a read."""
        loop = asyncio.get_running_loop()
        self._asked_at[loop] = monotonic()
        return await asyncio.shield(self._reading.get(loop) or self._start(loop))

    async def read_ahead(self) -> None:
        """Read the value again if this loop used it in the last minute and it expires soon."""
        loop, now = asyncio.get_running_loop(), monotonic()
        held = self._held.get(loop)
        in_use = now < self._asked_at.get(loop, float("-inf")) + _IN_USE_S
        if in_use and (held is None or held[0] < now + 2 * _TICK_S):
            await asyncio.shield(self._reading.get(loop) or self._start(loop))

    def clear(self) -> None:
        """Invalidate the value, including reads in progress; safe in any operating-system thread."""
        self._held, self._reading = WeakKeyDictionary(), {}

    def _start(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        reading = self._reading
        task = reading[loop] = loop.create_task(self._refresh(loop))

        def done(task: asyncio.Task[T]) -> None:
            reading.pop(loop, None)
            if not task.cancelled():
                task.exception()  # marks it as retrieved; callers that wait get it anyway

        task.add_done_callback(done)
        return task

    async def _refresh(self, loop: asyncio.AbstractEventLoop) -> T:
        held, began = self._held, monotonic()
        value = await self._read()
        held[loop] = (began + self._seconds, value)
        return value


async def keep_warm() -> None:
    """Read ahead for the running loop, for ever; survive outages of the database."""
    while True:
        await asyncio.sleep(_TICK_S)
        for value in _values:
            with suppress(Exception):  # the next caller reads the value and gets the error
                await value.read_ahead()
