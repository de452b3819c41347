"""Settle what nobody settles: dead workers, overdue and forgotten runs (promises P1, P9).

Every web and worker process sweeps, so no single process must be alive for a run to end. Sweeping
twice is harmless: each settling is conditional on the run's fence.
"""

from __future__ import annotations

import asyncio
import random
import time
from typing import Final

import structlog
from django.conf import settings
from psycopg import Error as DatabaseError

from agents import endings
from config import database

logger = structlog.get_logger(__name__)

EVERY_S: Final = 0.5
_AT_ONCE: Final = 200

_OVERDUE: Final = """
SELECT id, fence, CASE
    WHEN cancel_requested_at IS NOT NULL THEN 'cancelled'
    WHEN deadline_at < clock_timestamp() THEN 'deadline_exceeded' ELSE 'worker_lost' END
FROM conversations_run WHERE status = 'running' AND (
    (%(leases_count)s AND lease_until < clock_timestamp())
    OR cancel_requested_at < clock_timestamp() - interval '1 second'
    OR deadline_at < clock_timestamp() - interval '1 second'
)
UNION ALL
SELECT id, fence, CASE WHEN cancel_requested_at IS NOT NULL THEN 'cancelled' ELSE 'queue_timeout' END
FROM conversations_run WHERE status = 'queued' AND (
    cancel_requested_at IS NOT NULL OR deadline_at < clock_timestamp()
)
LIMIT %(limit)s
"""


async def sweep(*, leases_count: bool = True) -> int:
    """Settle every overdue run once; how many there were. Lapsed leases may be left for later."""
    async with database.connection() as connection:
        rows = await (
            await connection.execute(_OVERDUE, {"limit": _AT_ONCE, "leases_count": leases_count})
        ).fetchall()
    for run_id, fence, reason in rows:
        try:
            await endings.settle(run_id, reason, fence=fence)
        except DatabaseError:  # one run that cannot be written must not keep the others unsettled
            logger.exception("settling failed", run_id=run_id.hex, reason=reason)
    return len(rows)


async def sweep_for_ever() -> None:
    """Sweep about twice a second; an outage of the database is waited out.

    Leases that lapsed in an outage say nothing about their workers, which could not renew them
    either; so after one the workers get half a lease's time to do so.
    """
    blind_until = 0.0
    while True:
        await asyncio.sleep(EVERY_S * random.uniform(0.8, 1.2))
        try:
            await sweep(leases_count=time.monotonic() >= blind_until)
        except Exception as error:  # a failed sweep is repeated; it must never be the last one
            logger.warning("sweep failed", error=type(error).__name__)
            blind_until = time.monotonic() + settings.LEASE_S / 2
