"""Offers: which worker has room, so that a run can be accepted and claimed for it by one statement.

A worker says twice a second how many more runs it takes. A web process that accepts a run in a thread of
its own then assigns it to one of those with room, and the notification that would wake a worker
brings the claim: nobody has to look for the run (DESIGN §2).

Nothing depends on it. An offer lapses after a second, and without one the run waits in the queue as
ever. A claim that does not arrive is found by its worker when it renews its leases. The first lease is
short, so that a worker that has gone costs a run seconds. And whoever can write to Redis can give no
worker a run: offers and claims are signed, and what is not signed by us is read from the database. So
another Parley at the same Redis is not heard either.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol
from uuid import UUID

import msgspec
from django.conf import settings
from django.utils.crypto import constant_time_compare, salted_hmac

from config.coordination import notifications
from conversations.runs.acceptance import InsertedRun
from conversations.runs.leases import AssignedRun, ClaimedRun
from prompts.wordings.active import ActiveVersion, get_effective_prompts

OFFERS: Final = "offers"
"""The group of notifications by which workers offer room to web processes."""
EVERY_S: Final = 0.5
_LAPSES_S: Final = 1.2
_FIRST_LEASE_S: Final = 5.0
_MOMENT_S: Final = 0.002
_LONGEST: Final = 64 * 1024  # bytes of a request that a notification carries


class LocalWorker(Protocol):
    """The worker of this process."""

    @property
    def name(self) -> str: ...

    def room(self) -> int:
        """Return how many more runs may be assigned to it now."""

    def take(self, runs: list[AssignedRun]) -> None:
        """Execute the runs; may be called from any thread of the process."""


class Offers:
    """What the workers of other processes have offered, and how much of it is left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[int, float]] = {}

    def hear(self, message: notifications.Message) -> None:
        """Note an offer, which replaces the worker's last one."""
        match message:
            case {"offer": bytes(said), "by": str(signature)} if _is_signed(said, signature):
                worker, room = msgspec.msgpack.decode(said, type=tuple[str, int])
                self._left = self._fresh() | {worker: (room, self._clock() + _LAPSES_S)}

    def take(self) -> str | None:
        """Return a worker, by chance, the more room the likelier; None if nobody has any."""
        left = self._left = self._fresh()
        rooms = [room for room, _ in left.values()]
        if not any(rooms):
            return None
        (worker,) = random.choices(list(left), rooms)
        room, until = left[worker]
        left[worker] = room - 1, until
        return worker

    def _fresh(self) -> dict[str, tuple[int, float]]:
        now = self._clock()
        return {worker: offer for worker, offer in self._left.items() if offer[1] > now}


_local: LocalWorker | None = None
_offers: Final = Offers()
_waiting: Final[dict[str, list[AssignedRun]]] = {}


@dataclass(frozen=True, slots=True)
class Assignment:
    """The worker that a run is accepted for, and the prompt versions that it uses."""

    worker: str
    versions: tuple[ActiveVersion, ...]

    @property
    def columns(self) -> dict[str, Any]:
        """Return what `acceptance.insert_in_new_thread` needs beside the run."""
        return {
            "worker": self.worker,
            "lease_s": min(settings.LEASE_S, _FIRST_LEASE_S),
            "prompt_versions": [asdict(version) for version in self.versions],
        }

    def deliver(self, row: dict[str, Any], written: InsertedRun) -> None:
        """Bring the run to its worker, once it is committed."""
        run = ClaimedRun(
            row["run_id"],
            row["thread_id"],
            row["owner_id"],
            thread_seq=1,
            attempt=1,
            fence=1,
            last_seq=written.last_seq,
            deadline_at_ms=written.deadline_at_ms,
            left_s=float(row["deadline_s"]),
            request=row["request"],
        )
        assigned = AssignedRun(run, [version.version_id for version in self.versions])
        if _local is not None and _local.name == self.worker:
            _local.take([assigned])
            return
        if self.worker in _waiting:
            _waiting[self.worker].append(assigned)
        else:  # at once, and those of the moment after that together
            _waiting[self.worker] = []
            asyncio.get_running_loop().call_later(_MOMENT_S, _send_waiting, self.worker)
            _send(self.worker, [assigned])


def _send_waiting(worker: str) -> None:
    if runs := _waiting.pop(worker):
        _send(worker, runs)


def _send(worker: str, runs: list[AssignedRun]) -> None:
    short, long = list[AssignedRun](), list[UUID]()
    for assigned in runs:
        run = assigned.run
        if len(run.request) < _LONGEST and notifications.carries(len(run.request)):
            short.append(assigned)
        else:
            long.append(run.run_id)
    said = msgspec.msgpack.encode(short)
    message = {"runs": said, "by": _sign(said), "to_read": long}
    notifications.notify(group_of(worker), message)


def read_runs(message: notifications.Message) -> tuple[list[AssignedRun], set[UUID]]:
    """Return the runs that a notification brings, and the ids of those to be read from the database."""
    match message:
        case {"runs": bytes(said), "by": str(signature), "to_read": list(to_read)}:
            runs = msgspec.msgpack.decode(said, type=list[AssignedRun])
            ids = set(msgspec.convert(to_read, list[UUID]))
            if _is_signed(said, signature):
                return runs, ids
            return [], ids | {assigned.run.run_id for assigned in runs}
    return [], set()


def _sign(said: bytes) -> str:
    """Sign it for the processes of this database; others may be connected to the same Redis."""
    database = settings.DATABASES["default"]["NAME"]
    return salted_hmac(f"{__name__} {database}", said, algorithm="sha256").hexdigest()


def _is_signed(said: bytes, signature: str) -> bool:
    """Return whether a process with our SECRET_KEY and database has said this."""
    return constant_time_compare(_sign(said), signature)


def register_worker(worker: LocalWorker | None) -> None:
    """Register the worker of this process, which is offered everything first; None when it ends."""
    global _local
    _local = worker


async def find_assignment(thread_id: UUID) -> Assignment | None:
    """Return to whom a run that starts this thread now is given; None if no worker offers room."""
    worker = _choose_worker()
    if worker is None:
        return None
    prompts = await get_effective_prompts()
    return Assignment(worker, tuple(prompts.choose_versions(thread_id)))


def _choose_worker() -> str | None:
    if _local is None:
        return _offers.take()
    return _local.name if _local.room() > 0 else None


def group_of(worker: str) -> str:
    """Return the group of notifications that only this worker listens to."""
    return f"worker-{worker.rpartition(':')[2]}"


def offer(worker: str, room: int) -> None:
    """Tell the web processes that this worker takes so many more runs; 0 takes back what it offered."""
    said = msgspec.msgpack.encode((worker, room))
    notifications.notify(OFFERS, {"offer": said, "by": _sign(said)})


async def listen_for_ever() -> None:
    """Hear the offers of workers; a web process does."""
    await notifications.listen(OFFERS, _offers.hear)
