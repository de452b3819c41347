"""Load shedding: refuse early a run that could only wait (429 for one user's flood, 503 for all).

Counting the queue for every POST would cost most under the highest load. So each web process
counts it twice a second, beside its sweeping, and adds the runs that it accepts itself in between.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final
from uuid import UUID

import structlog
from django.conf import settings

from config import database, sql
from config.errors import TooManyRequests, Unavailable

logger = structlog.get_logger(__name__)

EVERY_S: Final = 0.5
_RETRY_AFTER_S: Final = 5
_WAITING: Final = """
SELECT owner_id, count(*) FROM conversations_run WHERE status = 'queued' GROUP BY owner_id
"""


class Load:
    """The number of waiting runs by owner, as far as this process knows."""

    def __init__(self) -> None:
        self._by_owner: Counter[UUID] = Counter()
        self._total = 0

    def admit(self, owner_id: UUID) -> None:
        """Count one more run of this owner. Raise TooManyRequests or Unavailable if there is no room."""
        if self._by_owner[owner_id] >= settings.RUNS_WAITING_PER_USER:
            raise TooManyRequests(
                "Too many of your runs are waiting: let some end first.",
                code="too_many_runs",
                retry_after=_RETRY_AFTER_S,
            )
        if refusal := self.refusal():
            raise refusal
        self._by_owner[owner_id] += 1
        self._total += 1

    def refusal(self, coming: int = 0) -> Unavailable | None:
        """Return why no run can be accepted now, beside `coming` others; None if one can."""
        if self._total + coming < settings.RUNS_WAITING:
            return None
        return Unavailable("Too many runs are waiting.", code="queue_full", retry_after=_RETRY_AFTER_S)

    async def count(self) -> None:
        """Count anew."""
        self._by_owner = Counter(dict(await sql.every(_WAITING)))
        self._total = self._by_owner.total()

    async def count_for_ever(self) -> None:
        """Count about twice a second; retry during an outage of the database."""
        while True:
            await asyncio.sleep(EVERY_S)
            try:
                await self.count()
            except Exception as error:  # the old count serves until the next one works
                database.log_failure(logger, "counting the queue failed", error)


load: Final = Load()
