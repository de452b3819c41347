"""Settle runs that nobody settles: dead workers, overdue and forgotten runs (promises P1, P9).

Every web and worker process sweeps, so no single process must be alive for a run to end. Sweeping
twice is harmless: each settling is conditional on the run's fence.

A clock may jump, the database's too. So a lapsed lease alone proves nothing: a worker counts as dead
when its lease has also stood still for a while by this process's own clock, which does not jump, and
only while this process was checking, and it lives if it has renewed another of its leases: the row of
this one may have been locked. A lease that ends later than any worker would request is left behind by a
clock that was set back.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings

from config import database
from conversations.runs.settling import Due, Settler

logger = structlog.get_logger(__name__)

EVERY_S: Final = 0.3
STILL_S: Final = 2.0  # workers renew every second
_GLANCE_S: Final = 0.5  # one check covers at most this much of the time since the previous one
_AT_ONCE: Final = 200

_OVERDUE: Final = """
SELECT id, fence, CASE
    WHEN cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE 'deadline_exceeded' END
FROM conversations_run WHERE status = 'running' AND (
    cancel_requested_at < clock_timestamp() - interval '0.4 second'
    OR deadline_at < clock_timestamp() - interval '0.4 second'
)
UNION ALL
SELECT id, fence, CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
    WHEN attempt > 0 THEN 'deadline_exceeded' ELSE 'queue_timeout' END
FROM conversations_run WHERE status = 'queued' AND (
    cancel_requested_at IS NOT NULL OR deadline_at < clock_timestamp()
)
LIMIT %s
"""
_LAPSED: Final = """
SELECT id, fence, lease_until FROM conversations_run run WHERE status = 'running' AND (
    lease_until < clock_timestamp()
    OR lease_until > clock_timestamp() + make_interval(secs => %(most_s)s)
) AND NOT EXISTS (
    SELECT FROM conversations_run other WHERE other.worker = run.worker AND other.status = 'running'
    AND other.lease_until > clock_timestamp()
    AND other.lease_until <= clock_timestamp() + make_interval(secs => %(most_s)s)
) LIMIT 10000
"""
Lapsed = tuple[UUID, int, datetime]


class Sweeper:
    """One process's sweeping: lapsed leases, and how long each was seen to stand still."""

    def __init__(self) -> None:
        self._settler = Settler()
        self._still: dict[Lapsed, float] = {}
        self._looked_at = 0.0
        self._blind_until = 0.0

    async def sweep(self) -> int:
        """Settle every overdue run once. Return their number."""
        most = {"most_s": 2 * settings.LEASE_S}
        async with database.connection() as connection:
            overdue = await (await connection.execute(_OVERDUE, (_AT_ONCE,))).fetchall()
            lapsed = await (await connection.execute(_LAPSED, most)).fetchall()
        lost = list(self._find_lost(lapsed, time.monotonic()))
        await self._settler.settle_all([*(Due(*run) for run in overdue), *lost[:_AT_ONCE]])
        return len(overdue) + len(lost)

    def wait_for_renewals(self) -> None:
        """Give the workers half a lease's time after an outage, in which they could not renew leases."""
        self._blind_until = time.monotonic() + settings.LEASE_S / 2

    def _find_lost(self, lapsed: Iterable[Lapsed], now: float) -> Iterator[Due]:
        """Return the runs seen to stand still long enough. The time that a sweep waited for the database
        does not count, because its workers had to wait too.
        """
        if now < self._blind_until:
            lapsed = ()
        seen_s = min(now - self._looked_at, _GLANCE_S)
        self._looked_at = now
        still = self._still
        self._still = {lease: still[lease] + seen_s if lease in still else 0.0 for lease in lapsed}
        for (run_id, fence, lease), still_s in self._still.items():
            if still_s >= STILL_S:
                yield Due(run_id, fence, "worker_lost", lease)


async def sweep_for_ever() -> None:
    """Sweep about three times a second; retry during an outage of the database."""
    sweeper = Sweeper()
    while True:
        await asyncio.sleep(EVERY_S * random.uniform(0.8, 1.2))
        try:
            await sweeper.sweep()
        except Exception as error:  # a failed sweep is repeated; it must never be the last one
            database.log_failure(logger, "sweep failed", error)
            sweeper.wait_for_renewals()
