"""Reliable cancellation of tasks, which may swallow the first cancellation; and detached tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, Final

import structlog

logger = structlog.get_logger(__name__)

_TIMES: Final = 5
_EACH_S: Final = 1.0
_detached: Final[set[asyncio.Task[Any]]] = set()


def run_detached(work: Coroutine[Any, Any, object]) -> None:
    """Run the work in a detached task that survives its creator."""
    task = asyncio.ensure_future(work)
    _detached.add(task)  # the loop has only weak references
    task.add_done_callback(_detached.discard)


async def cancel_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel the tasks and wait, repeatedly if necessary, for five seconds at most.

    A client of an unavailable server, or `asyncio.wait_for` if its result arrives at the same moment
    (Python 3.11), swallows a cancellation; waiting for such a task would never end.
    """
    left, times = set(tasks), 0
    while left and times < _TIMES:
        for task in left:
            task.cancel()
        _, left = await asyncio.wait(left, timeout=_EACH_S)
        times += 1
    if left:
        logger.warning("tasks go on", tasks=sorted(task.get_name() for task in left))
