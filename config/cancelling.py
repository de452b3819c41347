"""End tasks for certain: one that is asked to end may not hear it the first time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import structlog

logger = structlog.get_logger(__name__)

_TIMES: Final = 5
_EACH_S: Final = 1.0


async def end(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel them and wait, again and again if need be, for five seconds at most.

    A client of a server that is down, or `asyncio.wait_for` when what it waits for comes in that very
    moment (Python 3.11), swallows a cancellation; who waits for such a task then waits for ever.
    """
    left, times = set(tasks), 0
    while left and times < _TIMES:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_EACH_S)
        times += 1
    if left:
        logger.warning("tasks go on", tasks=sorted(task.get_name() for task in left))
