"""Connections to foreign processes: one per row that staff keep, opened again after each failure."""

from __future__ import annotations

import asyncio
import random
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextvars import Context
from typing import Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import structlog

log = structlog.get_logger(__name__)

_FIRST_PAUSE_S: Final = 0.5
_LONGEST_PAUSE_S: Final = 30.0
_LOOK_S: Final = 1.0


class Link(ABC):
    """A connection for as long as its row stays as it is."""

    async def keep(self) -> None:
        """Stay connected until cancelled; after a failure wait, longer each time, and try again."""
        pause = _FIRST_PAUSE_S
        while True:
            since = asyncio.get_running_loop().time()
            try:
                await self.serve()
            except Exception as error:  # a foreign process: whatever it does, the next try may do better
                await self.report(error)
            if asyncio.get_running_loop().time() - since > _LONGEST_PAUSE_S:
                pause = _FIRST_PAUSE_S
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    @abstractmethod
    async def serve(self) -> None:
        """Connect, and return or raise when the connection has failed."""

    @abstractmethod
    async def report(self, error: Exception) -> None:
        """Tell staff why the connection has failed."""


R = TypeVar("R")
L = TypeVar("L", bound=Link)
_Kept = dict[int, tuple[R, L, asyncio.Task[None]]]
_Ending = dict[asyncio.Task[None], int]


class Pool(Generic[R, L]):
    """The connections of this process, those of each loop apart, each in a task of its own.

    With `one_at_a_time` a row's new connection begins when its old one has ended.
    """

    def __init__(
        self, connect: Callable[[R], L], *, rows: str, goodbye_s: float, one_at_a_time: bool = False
    ) -> None:
        self._connect = connect
        self._rows = rows
        self._goodbye_s = goodbye_s
        self._one_at_a_time = one_at_a_time
        self._of_loop = WeakKeyDictionary[asyncio.AbstractEventLoop, _Kept[R, L]]()

    def links(self) -> list[L]:
        """The links of this loop or, in a thread without one, of this process; never waits."""
        try:
            found = [self._of_loop.get(asyncio.get_running_loop(), {})]
        except RuntimeError:
            found = list(self._of_loop.values())
        return [link for kept in found for _, link, _ in list(kept.values())]

    async def keep(self, read: Callable[[], Awaitable[dict[int, R]]]) -> None:
        """Keep a connection to each row, for ever; while the rows cannot be read, to those known."""
        kept = self._of_loop.setdefault(asyncio.get_running_loop(), {})
        ending: _Ending = {}
        try:
            while True:
                try:
                    self._adjust(kept, await read(), ending)
                except Exception as error:
                    log.warning(f"reading {self._rows} failed", error=type(error).__name__)
                await asyncio.sleep(_LOOK_S)
        finally:
            self._adjust(kept, {}, ending)
            if ending:
                await asyncio.wait(ending, timeout=self._goodbye_s)

    def _adjust(self, kept: _Kept[R, L], wanted: dict[int, R], ending: _Ending) -> None:
        """End what changed or went, and begin what is new, without waiting for either."""
        for known in [known for known, (row, *_) in kept.items() if wanted.get(known) != row]:
            *_, task = kept.pop(known)
            task.cancel()
            ending[task] = known
            task.add_done_callback(ending.pop)
        for known, row in wanted.items():
            if known not in kept and not (self._one_at_a_time and known in ending.values()):
                link = self._connect(row)
                kept[known] = (row, link, asyncio.create_task(link.keep(), context=Context()))
