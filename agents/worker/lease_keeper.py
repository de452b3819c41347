"""Renewal of a worker's leases on an operating-system thread of its own (promise P1).

A statement on the worker's loop waits for a turn of the loop at each of its steps, and for a connection
of the pool. Under load that adds up to more than a lease, and other processes take over the runs of a
worker that lives. The thread waits for neither: it has a connection of its own, and needs the loop only
to hand over what the database says. It stops while the loop has not taken a renewal for `_BLOCKED_S`:
then other workers take over the runs of a blocked loop.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import structlog
from django.conf import settings
from psycopg import Connection

from config import database
from conversations.runs import leases
from conversations.runs.leases import HeldRun

logger = structlog.get_logger(__name__)

_EVERY_S: Final = 1.0
_BLOCKED_S: Final = 60.0
_STOP_S: Final = 3.0


class Renewal(NamedTuple):
    """The runs that the worker executed when a renewal began, and those that the database says it holds.

    For each of those, whether it is to be cancelled. `begun_at` is a time of this process's clock,
    `late_s` the time since the renewal before.
    """

    begun_at: float
    executed: frozenset[HeldRun]
    held: dict[HeldRun, bool]
    late_s: float


class LeaseKeeper:
    """Renews the leases of a worker every second, from `start` to `stop`.

    `executed` returns its runs and is called on the thread; `on_renewed` is called on the running loop.
    """

    def __init__(
        self,
        worker: str,
        executed: Callable[[], Iterable[HeldRun]],
        on_renewed: Callable[[Renewal], None],
    ) -> None:
        self._worker = worker
        self._executed = executed
        self._on_renewed = on_renewed
        self._loop = asyncio.get_running_loop()
        self._connection: Connection[Any] | None = None
        self._renewed_at = time.monotonic()
        self._waits_since: float | None = None  # the oldest renewal that the loop has not taken
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._renew_for_ever, daemon=True, name="leases")

    def start(self) -> None:
        self._thread.start()

    async def stop(self) -> None:
        self._stopping.set()
        await asyncio.to_thread(self._thread.join, _STOP_S)

    def _renew_for_ever(self) -> None:
        warned = False
        while not self._stopping.wait(_EVERY_S):
            if self._is_blocked():
                if not warned:
                    logger.warning("the loop is blocked: its leases are not renewed")
                warned = True
                continue
            warned = False
            try:
                renewal = self._renew()
            except Exception as error:  # without the database no other worker can take them over either
                database.log_failure(logger, "renewing leases failed", error)
                self._disconnect()
                continue
            if self._waits_since is None:
                self._waits_since = time.monotonic()
            try:
                self._loop.call_soon_threadsafe(self._take, renewal)
            except RuntimeError:  # the loop is closed
                break
        self._disconnect()

    def _is_blocked(self) -> bool:
        since = self._waits_since
        return since is not None and time.monotonic() - since > _BLOCKED_S

    def _renew(self) -> Renewal:
        begun_at = time.monotonic()
        if self._connection is None:
            self._connection = database.connect()
        executed = frozenset(self._executed())
        held = leases.renew(self._connection, worker=self._worker, lease_s=settings.LEASE_S)
        before, self._renewed_at = self._renewed_at, time.monotonic()
        return Renewal(begun_at, executed, held, self._renewed_at - before)

    def _take(self, renewal: Renewal) -> None:
        self._waits_since = None
        self._on_renewed(renewal)

    def _disconnect(self) -> None:
        found, self._connection = self._connection, None
        if found is not None:
            with suppress(Exception):
                found.close()
