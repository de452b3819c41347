"""Runs that a worker holds and does not execute: nobody else would end them while it lives."""

from __future__ import annotations

import time
from collections.abc import Iterator, Set

from django.conf import settings

from config.process import cancellation
from conversations.runs.leases import HeldRun
from conversations.runs.settling import Due, Settler


class Strays:
    """The runs that a worker has given up, and those that it holds without knowing of them.

    An execution that broke or could not write its end has given its run up: that is a loss, as if the
    worker had died. A run that was claimed by a statement whose answer got lost has not begun: once the
    worker has held it for the time of a lease, it goes back to the queue, and that is none.
    """

    def __init__(self) -> None:
        self._given_up: set[HeldRun] = set()
        self._since: dict[HeldRun, float] = {}
        self._settler = Settler()
        self._is_settling = False

    def add(self, run: HeldRun) -> None:
        """Record that the run is given up."""
        self._given_up.add(run)

    def settle_soon(self, held: Set[HeldRun]) -> None:
        """Settle in the background what is due of the runs that are held and not executed."""
        now = time.monotonic()
        self._given_up &= held
        self._since = {run: self._since.get(run, now) for run in held}
        due = list(self._find_due(now))
        if due and not self._is_settling:
            self._is_settling = True
            cancellation.run_detached(self._settle(due))

    def _find_due(self, now: float) -> Iterator[Due]:
        for run, since in self._since.items():
            if run in self._given_up:
                yield Due(run.run_id, run.fence, "worker_lost")
            elif now - since > settings.LEASE_S:
                yield Due(run.run_id, run.fence, "worker_stopped")

    async def _settle(self, due: list[Due]) -> None:
        try:
            await self._settler.settle_all(due)
        finally:
            self._is_settling = False
