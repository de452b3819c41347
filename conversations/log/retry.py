"""Reads that a run cannot do without: retried until the database answers (promise P1)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, ParamSpec, TypeVar

import structlog

from config import database
from conversations.log import event_log

logger = structlog.get_logger(__name__)

_RETRY_S: Final = 0.2
P = ParamSpec("P")
T = TypeVar("T")


async def retry_until_answered(read: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return `read(…)`, retried until the database answers; the run's deadline bounds it."""
    while True:
        try:
            return await read(*args, **kwargs)
        except event_log.OUTAGE as error:
            if not database.is_transient(error):
                raise
            logger.warning("run waits for the database", error=type(error).__name__)
            await asyncio.sleep(_RETRY_S)
