"""Keep the log in order: partitions ahead of time, ended runs folded, what is past its time dropped,
what was said lately merged into the search index, interrupts nobody answered marked expired, runs that
are not to be stored and old entries of the audit log forgotten, and analysts' overlong statements ended.

Every web and worker process keeps up, one of them at a time; a round is bounded, so that a pile of
work (100,000 short runs) takes many rounds and no process is busy with it for long.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import structlog

from config import database
from config.audit import forgetting
from conversations import (
    analysts,
    attachments,
    folding,
    interrupts,
    partitions,
    retention,
    search_index,
    unstored,
)

logger = structlog.get_logger(__name__)

EVERY_S: Final = 5.0
_BUSY_S: Final = 1.0
_BUDGET_S: Final = 1.0
_LOCK: Final = 0x5550_4B45


@dataclass(frozen=True)
class Upkept:
    """What a round did; `more` if work was left over."""

    made: int = 0
    folded: int = 0
    dropped: int = 0
    deleted: int = 0
    files: int = 0
    audit: int = 0
    more: bool = False


async def upkeep(*, budget_s: float = _BUDGET_S) -> Upkept | None:
    """One round of about `budget_s` seconds; None if another process is at it."""
    async with _alone() as alone:
        if not alone:
            return None
        now = await _now()
        made = await partitions.ensure_partitions(now)
        expired = await retention.drop_expired(now)
        folded, more = await _fold(budget_s)
        await partitions.pack()
        await search_index.merge_new()
        await interrupts.expire_due()
        forgotten = await unstored.forget_due()
        files, more_files = await attachments.sweep()
        audit = await forgetting.forget_old()
        await analysts.end_overlong()
    left = more or expired.more or more_files
    left = left or audit == forgetting.AT_ONCE or forgotten == unstored.AT_ONCE
    return Upkept(len(made), folded, expired.partitions, expired.rows, files, audit, left)


async def upkeep_for_ever() -> None:
    """Keep up every five seconds, sooner while there is much to do; failures are outlived."""
    pause = EVERY_S
    while True:
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))
        try:
            done = await upkeep()
            pause = _BUSY_S if done is not None and done.more else EVERY_S
        except Exception as error:  # a failed round is repeated; it must never be the last one
            logger.warning("upkeep failed", error=type(error).__name__)


async def _now() -> datetime:
    """The database's time: a host whose clock has jumped ahead must not drop what is young."""
    async with database.connection() as connection:
        row = await (await connection.execute("SELECT clock_timestamp()")).fetchone()
    assert row is not None
    return row[0]  # type: ignore[no-any-return]


async def _fold(budget_s: float) -> tuple[int, bool]:
    """How many runs were folded within the time, and whether there may be more."""
    until, folded = time.monotonic() + budget_s, 0
    while time.monotonic() < until:
        some = await folding.fold_due()
        folded += some
        if some < folding.AT_ONCE:
            return folded, False
    return folded, True


@asynccontextmanager
async def _alone() -> AsyncIterator[bool]:
    """Whether this is the only one at it; the lock goes with the connection if the process dies."""
    async with database.connection() as connection:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))
        held = await cursor.fetchone() == (True,)
        try:
            yield held
        finally:
            if held:
                await connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
