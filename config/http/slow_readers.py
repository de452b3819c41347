"""A reader that takes nothing for SLOW_READER_S is cut: nothing is held for one who does not read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any

import structlog
from django.conf import settings

log = structlog.get_logger(__name__)

Leaving = Callable[[], Coroutine[Any, Any, object]]
"""What is done when a reader leaves before the end."""


class Patience:
    """Cancels the running task, which sends a stream, when the client takes nothing; one timer each."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._since: float | None = None
        self._timer = self._loop.call_later(settings.SLOW_READER_S, self._look)

    def begin(self) -> None:
        """Count from now: the client has to take a piece."""
        self._since = self._loop.time()

    def end(self) -> None:
        """The client has taken it."""
        self._since = None

    def stop(self) -> None:
        """The stream is over."""
        self._timer.cancel()

    def _look(self) -> None:
        limit = settings.SLOW_READER_S
        left = limit if self._since is None else self._since + limit - self._loop.time()
        if left > 0:
            self._timer = self._loop.call_later(left, self._look)
        elif self._task is not None:
            log.info("slow reader cut")
            self._task.cancel()


async def patiently(pieces: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
    """The pieces, to a client that takes each within SLOW_READER_S; they are closed with the stream."""
    patience = Patience()
    try:
        async with aclosing(pieces):
            async for piece in pieces:
                patience.begin()
                yield piece
                patience.end()
    finally:
        patience.stop()
