"""A value that is read often and changes seldom: read again at most every so many seconds.

Each event loop remembers its own, and callers that come while it is being read share that read,
so a burst of starting runs costs one statement. Nothing is remembered of a read that failed.
`keep_warm` reads ahead what is in use, so that a run that comes alone does not wait for it either.
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
_all: list[Remembered[Any]] = []


class Remembered(Generic[T]):
    """What `read` returned, for at most `seconds` since that read began."""

    def __init__(self, read: Callable[[], Coroutine[Any, Any, T]], *, seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._reading: dict[asyncio.AbstractEventLoop, asyncio.Task[T]] = {}
        self._held: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[float, T]] = WeakKeyDictionary()
        self._asked_at: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
        _all.append(self)

    async def get(self) -> T:
        loop = asyncio.get_running_loop()
        now = self._asked_at[loop] = monotonic()
        held = self._held.get(loop)
        if held is not None and now < held[0]:
            return held[1]
        return await asyncio.shield(self._reading.get(loop) or self._start(loop))

    async def read_ahead(self) -> None:
        """Read again what this loop asked for in the last minute and would expire before long."""
        loop, now = asyncio.get_running_loop(), monotonic()
        held = self._held.get(loop)
        in_use = now < self._asked_at.get(loop, float("-inf")) + _IN_USE_S
        if in_use and (held is None or held[0] < now + 2 * _TICK_S):
            await asyncio.shield(self._reading.get(loop) or self._start(loop))

    def forget(self) -> None:
        """Read again next time, also where a read is under way; safe to call from any thread."""
        self._held, self._reading = WeakKeyDictionary(), {}

    def _start(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[T]:
        reading = self._reading
        task = reading[loop] = loop.create_task(self._refresh(loop))

        def done(task: asyncio.Task[T]) -> None:
            reading.pop(loop, None)
            if not task.cancelled():
                task.exception()  # whoever waits for it gets it; one that nobody waits for is no news

        task.add_done_callback(done)
        return task

    async def _refresh(self, loop: asyncio.AbstractEventLoop) -> T:
        held, began = self._held, monotonic()
        value = await self._read()
        held[loop] = (began + self._seconds, value)
        return value


async def keep_warm() -> None:
    """Read ahead for the running loop, for ever; an outage of the database is waited out."""
    while True:
        await asyncio.sleep(_TICK_S)
        for remembered in _all:
            with suppress(Exception):  # who needs the value reads it then, and sees the error
                await remembered.read_ahead()
