"""The runs that web processes assign to this worker when they accept them; see `agents.offers`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from typing import Final
from uuid import UUID

import structlog

from agents import offers
from config import database
from config.coordination import notifications
from config.process import cancellation
from conversations.runs import leases
from conversations.runs.leases import AssignedRun, ClaimedRun, HeldRun
from prompts.wordings.active import compose_versions, get_effective_prompts

logger = structlog.get_logger(__name__)

_LAST_S: Final = 0.1
_REMEMBERED: Final = 1_024
_MOST: Final = 32  # in one offer: a worker that is too busy to renew it gets no more, the rest waits
_SHARE: Final = 4  # of the free places are offered: several web processes may use up one offer


class Assignments:
    """Offers room, and starts the runs that come of it: `start` is given the run and its system message.

    `free` returns how many more runs the worker has places for, 0 while it stops.
    """

    def __init__(
        self, worker: str, *, free: Callable[[], int], start: Callable[[ClaimedRun, str], None]
    ) -> None:
        self._worker = worker
        self._free = free
        self._start = start
        self._offered = 0
        self._taken = 0
        self._used_up = asyncio.Event()
        self._unknown: Set[HeldRun] = frozenset()
        self._begun: dict[UUID, None] = {}  # the latest, in their order: a notification may come twice
        self._is_reading = False

    def room(self) -> int:
        """Return how many more runs may be assigned until the next offer."""
        return max(0, min(self._free() // _SHARE, _MOST) - self._taken)

    async def offer_for_ever(self) -> None:
        """Offer room twice a second, and sooner when half of it is used up."""
        while True:
            self._taken = 0
            self._offered = self.room()
            self._used_up.clear()
            offers.offer(self._worker, self._offered)
            with suppress(TimeoutError):
                async with asyncio.timeout(offers.EVERY_S):
                    await self._used_up.wait()

    async def withdraw(self) -> None:
        """Take back what was offered, and wait a moment for what is being accepted because of it."""
        offers.offer(self._worker, 0)
        await asyncio.sleep(_LAST_S)

    async def listen_for_ever(self) -> None:
        """Hear of runs that are assigned to this worker."""
        await notifications.listen(offers.group_of(self._worker), self._hear)

    def take(self, runs: list[AssignedRun]) -> None:
        """Start runs that are assigned; call it on the loop."""
        self._taken += len(runs)
        if 2 * self._taken >= self._offered:
            self._used_up.set()
        cancellation.run_detached(self._begin_all(runs))

    def look_for_lost(self, unknown: Set[HeldRun]) -> None:
        """Read the runs that the worker holds and does not know, as it did not a second ago."""
        lost = {held.run_id for held in unknown & self._unknown if held.fence == 1}
        self._unknown = unknown
        if lost and not self._is_reading:
            self._is_reading = True
            cancellation.run_detached(self._read(lost))

    def _hear(self, message: notifications.Message) -> None:
        runs, to_read = offers.read_runs(message)
        if runs:
            self.take(runs)
        if to_read:
            cancellation.run_detached(self._read(to_read))

    async def _read(self, run_ids: Set[UUID]) -> None:
        try:
            await self._begin_all(await leases.fetch_assigned(run_ids, worker=self._worker))
        except Exception as error:  # the next renewal of the leases finds them still unknown
            database.log_failure(logger, "reading assigned runs failed", error)
        finally:
            self._is_reading = False

    async def _begin_all(self, runs: Iterable[AssignedRun]) -> None:
        for run, version_ids in runs:
            try:
                await self._begin(run, version_ids)
            except Exception as error:
                database.log_failure(logger, "starting an assigned run failed", error)

    async def _begin(self, run: ClaimedRun, version_ids: list[int]) -> None:
        prompts = await get_effective_prompts()
        chosen = [version.version_id for version in prompts.choose_versions(run.thread_id)]
        if chosen == version_ids:
            system = prompts.choose_system(run.thread_id)
        else:  # they were changed a moment ago
            system = await compose_versions(version_ids)
        if run.run_id in self._begun:
            return
        self._begun[run.run_id] = None
        if len(self._begun) > _REMEMBERED:
            del self._begun[next(iter(self._begun))]
        self._start(run, system)
