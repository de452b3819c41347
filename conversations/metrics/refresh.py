"""Refresh of the rollups: every serving process checks whether a round is due, and one runs it.

The time of the next round is stored in the database, so many processes run no more rounds than one.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Final

import structlog

from config import database, sql
from conversations.metrics import otlp_metrics, reconnects
from conversations.metrics.rollups import RollUpResult, roll_up

logger = structlog.get_logger(__name__)

_LOOK_S: Final = 2.0
_EVERY_S: Final = 10.0
_BUSY_S: Final = 0.5
_CALM_S: Final = 40.0
_SHARE: Final = 20  # of the time that passes a round may take one part in so many
_MOST: Final = 5  # the same where that would leave numbers older than a minute

_RESTING: Final = """
SELECT FROM conversations_metrics
WHERE next_at BETWEEN clock_timestamp() AND clock_timestamp() + interval '1 hour'
"""  # what is due later than any rest lasts was written before the clock was set back
_NEXT: Final = """
UPDATE conversations_metrics SET next_at = clock_timestamp() + make_interval(secs => %s)
"""


async def refresh_for_ever() -> None:
    """Write reconnects, and run rounds when they are due; go on after failures."""
    while True:
        await asyncio.sleep(_LOOK_S * random.uniform(0.8, 1.2))
        try:
            await refresh_if_due()
        except Exception as error:  # a failed round is repeated; it must never be the last one
            database.log_failure(logger, "adding up failed", error)
            await asyncio.sleep(_EVERY_S)


async def refresh_if_due() -> RollUpResult | None:
    """Run a round if one is due and no other process is running one."""
    await reconnects.write_reconnects()
    if await sql.one(_RESTING) is not None:
        return None
    since = time.monotonic()
    done = await roll_up()
    if done is not None:
        await sql.change(_NEXT, (rest_after(time.monotonic() - since, more=done.more),))
        await otlp_metrics.send_counted()
    return done


def rest_after(took_s: float, *, more: bool = False) -> float:
    """Return the seconds of rest after a round that took `took_s`; `more` if stale hours are left.

    The rest is 19 times as long as the round, but 10 to 40 seconds, so that numbers are rarely older
    than a minute. After a round of more than ten seconds (a day of some hundred thousand runs) the rest
    is four times as long as the round: refreshing may then delay numbers, but not runs.
    """
    if more:
        return max(_BUSY_S, took_s)
    return max(_EVERY_S, min((_SHARE - 1) * took_s, _CALM_S), (_MOST - 1) * took_s)
