"""Maintain the log: create partitions ahead of time, fold ended runs, drop expired data, merge recent
messages into the search index, mark unanswered interrupts expired, forget runs that are not to be
stored, old words and old entries of the audit log, and end analysts' overlong statements.

Every web and worker process does this, one of them at a time; a round is bounded, so that a pile of
work (100,000 short runs) takes many rounds and no process is busy with it for long.
"""

from __future__ import annotations

import asyncio
import random
import time
from dataclasses import dataclass
from typing import Final

import structlog

from config import database, sql
from config.audit import retention as audit_retention
from conversations import attachments
from conversations.log import fold, partitions
from conversations.runs import interrupts
from conversations.upkeep import aged_content, analyst_roles, retention, unstored_runs

logger = structlog.get_logger(__name__)

EVERY_S: Final = 5.0
_BUSY_S: Final = 1.0
_BUDGET_S: Final = 1.0
_LOCK: Final = 0x5550_4B45
# A writer only adds a message's keys to the search index's pending list, which every search scans.
MERGE_PENDING: Final = "SELECT gin_clean_pending_list('message_tokens')"


@dataclass(frozen=True)
class UpkeepResult:
    """The result of a round; `more` if work was left over."""

    made: int = 0
    folded: int = 0
    dropped: int = 0
    deleted: int = 0
    files: int = 0
    more: bool = False


async def run_upkeep_round(*, budget_s: float = _BUDGET_S) -> UpkeepResult | None:
    """Run one round of about `budget_s` seconds. Return None if another process is running one."""
    async with sql.advisory_lock(_LOCK) as acquired:
        if not acquired:
            return None
        # the database's time: a host whose clock has jumped ahead must not drop young rows
        ((now,),) = await sql.every("SELECT clock_timestamp()")
        made = await partitions.ensure_partitions(now)
        expired = await retention.drop_expired(now)
        folded, more = await _fold(budget_s)
        await partitions.rebuild_sparse_index()
        await sql.one(MERGE_PENDING)
        await interrupts.expire_due()
        aged = await aged_content.erase_due()
        forgotten = await unstored_runs.erase_due()
        files, more_files = await attachments.delete_orphans()
        audit = await audit_retention.delete_old()
        await analyst_roles.end_long_sessions()
    left = more or expired.more or more_files or aged
    left = left or audit == audit_retention.AT_ONCE or forgotten == unstored_runs.AT_ONCE
    return UpkeepResult(len(made), folded, expired.partitions, expired.rows, files, left)


async def upkeep_for_ever() -> None:
    """Run a round every five seconds, sooner while there is much to do; go on after failures."""
    pause = EVERY_S
    while True:
        await asyncio.sleep(pause * random.uniform(0.8, 1.2))
        try:
            done = await run_upkeep_round()
            pause = _BUSY_S if done is not None and done.more else EVERY_S
        except Exception as error:  # a failed round is repeated; it must never be the last one
            database.log_failure(logger, "upkeep failed", error)


async def _fold(budget_s: float) -> tuple[int, bool]:
    """Return the number of runs folded within the time, and whether there may be more."""
    until, folded = time.monotonic() + budget_s, 0
    while time.monotonic() < until:
        folded_now = await fold.fold_due()
        folded += folded_now
        if folded_now < fold.AT_ONCE:
            return folded, False
    return folded, True
