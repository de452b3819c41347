"""An event loop whose clock nobody waits for."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Clockwork(asyncio.SelectorEventLoop):
    """Its clock stands still while anything is to be done, then is at the next thing planned at once."""

    def __init__(self) -> None:
        self.now = 1.0
        super().__init__(_Impatient(self))

    def time(self) -> float:
        return self.now


class _Impatient(selectors.SelectSelector):
    def __init__(self, loop: Clockwork) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> Any:
        found = super().select(0 if timeout is not None else None)
        if not found and timeout:
            self._loop.now += timeout
        return found


def run(main: Coroutine[Any, Any, T], loop: Clockwork | None = None) -> T:
    """What `asyncio.run` does, without the waiting."""
    with asyncio.Runner(loop_factory=lambda: loop or Clockwork()) as runner:
        return runner.run(main)
