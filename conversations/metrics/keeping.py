"""Keep the rollups fresh: every serving process tries, one of them does it, for ever."""

from __future__ import annotations

import asyncio
import random
import time
from typing import Final

import structlog

from conversations.metrics import reconnects
from conversations.metrics.rollups import Rolled, roll

logger = structlog.get_logger(__name__)

EVERY_S: Final = 15.0
_BUSY_S: Final = 0.5
_LONGEST_S: Final = 40.0
_SHARE: Final = 20  # of the time that passes a round may take one part in so many


async def keep_for_ever() -> None:
    """Write reconnects and add up every 15 seconds, sooner while much is stale; failures are outlived.

    Where a round takes long the pauses grow, to 40 seconds at most: a number is never a minute old.
    """
    pause = EVERY_S / 3
    while True:
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))
        pause = await _keep()


async def keep_once() -> Rolled | None:
    """One round, for a beat."""
    await reconnects.write()
    return await roll()


async def _keep() -> float:
    """A round; how long to pause after it."""
    since = time.monotonic()
    try:
        done = await keep_once()
    except Exception as error:  # a failed round is repeated; it must never be the last one
        logger.warning("adding up failed", error=type(error).__name__)
        return EVERY_S
    if done is not None and done.more:
        return _BUSY_S
    return min(max(EVERY_S, (time.monotonic() - since) * _SHARE), _LONGEST_S)
