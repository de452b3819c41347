"""The worker: one event loop that claims runs and executes hundreds of them at once.

A wake-up is only a hint to look; the claim then takes the runs that have waited longest. The worker
also looks by itself every second, so a lost wake-up costs a second and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Iterable, Set
from contextlib import suppress
from contextvars import Context
from functools import partial
from typing import Final
from uuid import UUID, uuid4

import msgspec
import structlog
from django.conf import settings

from agents import offers, requests, wakeup
from agents.providers import http
from agents.requests import Claim
from agents.runtimes.harness.folder_cleanup import keep_removing_folders
from agents.runtimes.plugins.connection import connect_for_ever as connect_plugins
from agents.runtimes.runner_sources import add_sources
from agents.tools import mcp
from agents.worker.assignments import Assignments
from agents.worker.execution import Execution
from agents.worker.lease_keeper import LeaseKeeper, Renewal
from agents.worker.strays import Strays
from config import database
from config.audit import key_openings
from config.cache import keep_warm
from config.coordination import notifications
from config.process import cancellation, watchdog
from conversations.log import announcements
from conversations.log.batches import Batch
from conversations.log.event_log import Writer
from conversations.metrics.otlp_metrics import send_own_for_ever
from conversations.metrics.refresh import refresh_for_ever
from conversations.runs import leases
from conversations.runs.leases import AssignedRun, ClaimedRun, HeldRun
from conversations.runs.settling import Due, Settler
from conversations.runs.sweeper import sweep_for_ever
from conversations.upkeep.rounds import upkeep_for_ever
from prompts.wordings.active import get_effective_prompts

logger = structlog.get_logger(__name__)

_LOOK_S: Final = 1.0
_AT_ONCE: Final = 64
_LAST_CLAIM_S: Final = 2.0
HOLDER: Final = """
    SELECT FROM agents_pluginruntime
    WHERE held_by = run.for_worker AND held_until > clock_timestamp()
"""
"""Finds whether the worker that a run waits for holds the connection of the run's runner."""


class Worker:
    """A claimer of runs up to its capacity, which renews their leases and releases them in order."""

    def __init__(self, capacity: int) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:6]}"
        self._capacity = capacity
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._writer = Writer()
        self._strays = Strays()
        self._is_stopping = False
        self._missed: Set[HeldRun] = frozenset()
        self._missed_at = 0.0
        self._held_by: UUID | None = None
        self._running: dict[UUID, tuple[Execution, asyncio.Task[None]]] = {}
        self._assignments = Assignments(self.name, free=self._free, start=self._start_assigned)

    def wake(self) -> None:
        """Look for runs now; may be called from any thread of the process."""
        with suppress(RuntimeError):  # the loop is closing: another worker will look
            self._loop.call_soon_threadsafe(self._news.set)

    def room(self) -> int:
        """Return how many runs may be assigned to it now (`agents.offers`)."""
        return self._assignments.room()

    def take(self, runs: list[AssignedRun]) -> None:
        """Execute runs that are assigned to it; may be called from any thread of the process."""
        with suppress(RuntimeError):  # the loop is closing: their leases lapse
            self._loop.call_soon_threadsafe(self._assignments.take, runs)

    async def serve(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then drain: make no new claims, and give the running ones DRAIN_S."""
        add_sources()
        chores = [
            asyncio.create_task(chore, name=getattr(chore, "__qualname__", None))
            for chore in (
                self._writer.run(),
                notifications.listen(wakeup.WORKERS, self._obey),
                self._assignments.listen_for_ever(),
                sweep_for_ever(),
                upkeep_for_ever(),
                refresh_for_ever(),
                send_own_for_ever(),
                keep_warm(),
                key_openings.write_for_ever(),
                mcp.connect_for_ever(),
                connect_plugins(self.name),
                keep_removing_folders(),
            )
        ]
        keeper = LeaseKeeper(self.name, self._executed, self._on_renewed)
        keeper.start()
        claiming = asyncio.create_task(self._claim_for_ever())
        offering = asyncio.create_task(self._assignments.offer_for_ever())
        logger.info("worker ready", worker=self.name, capacity=self._capacity)
        await stop.wait()
        self._is_stopping = True
        self._news.set()
        await cancellation.cancel_all([offering])
        await self._assignments.withdraw()
        await asyncio.wait({claiming}, timeout=_LAST_CLAIM_S)  # one that is cut off may be committed
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        await self._drain()
        await keeper.stop()
        await self._release_rest()
        await cancellation.cancel_all(chores)
        await http.close()

    async def _claim_for_ever(self) -> None:
        while not self._is_stopping:
            self._news.clear()
            try:
                more = await self._claim_some()
            except Exception as error:  # the database is away: look again soon
                database.log_failure(logger, "claim failed", error)
                more = False
            if not more:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._news.wait()

    async def _claim_some(self) -> bool:
        """Claim as many runs as there is room for; return whether there may be more."""
        limit = min(_AT_ONCE, self._free())
        if limit <= 0:
            return False
        prompts = await get_effective_prompts()
        rows = await leases.claim(
            worker=self.name,
            limit=limit,
            lease_s=settings.LEASE_S,
            prompt_versions=msgspec.json.encode(
                prompts.choices() if prompts.is_split else prompts.as_json()
            ).decode(),
            split=prompts.is_split,
            holder=HOLDER,
        )
        for run, _ in rows:
            if (claim := self._read(run)) is not None:
                self._start(claim, prompts.choose_system(claim.thread_id))
        announcements.announce_soon(
            [Batch(run.run_id, run.last_seq, run.last_seq, started) for run, started in rows]
        )
        return len(rows) == limit

    def _free(self) -> int:
        return 0 if self._is_stopping else self._capacity - len(self._running)

    def _start_assigned(self, run: ClaimedRun, system: str) -> None:
        if self._is_stopping:
            cancellation.run_detached(self._give_back([HeldRun(run.run_id, run.fence)]))
        elif (claim := self._read(run)) is not None:
            self._start(claim, system)

    def _read(self, row: ClaimedRun) -> Claim | None:
        """Return the claim of a run, or give up one whose request a newer release may have stored."""
        try:
            request = requests.load(row.request)
        except msgspec.MsgspecError as error:
            logger.error("stored request is unreadable", run_id=row.run_id.hex, error=str(error))
            self._strays.add(HeldRun(row.run_id, row.fence))
            return None
        return Claim(*row[:-1], request)

    def _start(self, claim: Claim, system: str) -> None:
        execution = Execution(claim, self._writer, system, worker=self.name)
        task = self._loop.create_task(execution.run(), context=Context())
        self._running[claim.run_id] = (execution, task)
        task.add_done_callback(partial(self._ended, claim.run_id))

    def _ended(self, run_id: UUID, task: asyncio.Task[None]) -> None:
        was_full = len(self._running) >= self._capacity
        execution, _ = self._running.pop(run_id)
        if was_full or execution.thread_waits:
            self._news.set()
        if not execution.has_ended:
            self._strays.add(_held(execution))
        if not task.cancelled() and (error := task.exception()):
            logger.error("execution broke", run_id=run_id.hex, exc_info=error)

    def froze(self, run_id: UUID | None, seconds: float) -> None:
        """Record that the loop was blocked, by this run if one is to blame."""
        self._held_by = run_id
        held_by = run_id.hex if run_id else None
        logger.info("worker froze", held_by=held_by, seconds=round(seconds, 3), runs=len(self._running))

    def _executed(self) -> list[HeldRun]:
        """Return the runs that are executed here; called on the thread that renews their leases."""
        return [_held(execution) for execution, _ in tuple(self._running.values())]

    def _on_renewed(self, renewal: Renewal) -> None:
        """Stop the runs that are cancelled or lost, and settle those that nobody executes.

        A run is lost if two renewals do not find it: one whose end was committed a moment ago is not.
        """
        running = {_held(execution): execution for execution, _ in self._running.values()}
        missed = (renewal.executed - renewal.held.keys()) & running.keys()
        lost: Set[HeldRun] = frozenset()
        if renewal.begun_at >= self._missed_at:  # the loop has had turns since the one before
            lost, self._missed, self._missed_at = missed & self._missed, missed, time.monotonic()
        for held, execution in running.items():
            if held in lost:
                execution.abandon()
            elif renewal.held.get(held):
                execution.stop("cancelled")
        if missed and renewal.late_s > settings.LEASE_S:
            cancellation.run_detached(self._exonerate({held.run_id for held in missed}, renewal.late_s))
        unknown = renewal.held.keys() - running.keys()
        self._assignments.look_for_lost(unknown)
        self._strays.settle_soon(unknown)

    async def _exonerate(self, lost: Set[UUID], late_s: float) -> None:
        """Blame only the run that blocked the loop, if one did, for the lost leases."""
        logger.warning("leases lost", runs=len(lost), renewed_after_s=round(late_s, 1))
        held_by, self._held_by = self._held_by, None
        if held_by is None:
            return
        try:
            await leases.take_back_loss(lost - {held_by})
        except Exception as error:  # leases are renewed nevertheless
            logger.warning("exonerating runs failed", error=type(error).__name__)

    def _obey(self, message: notifications.Message) -> None:
        """Act on a notification: look for runs, or stop one."""
        match message:
            case {"wake": True} | {"missed": True}:
                self._news.set()
            case {"cancel": bytes(run_id)} if found := self._running.get(UUID(bytes=run_id)):
                found[0].stop("cancelled")

    async def _drain(self) -> None:
        tasks = [task for _, task in self._running.values()]
        if not tasks:
            return
        logger.info("draining", runs=len(tasks), seconds=settings.DRAIN_S)
        await asyncio.wait(tasks, timeout=settings.DRAIN_S)

    async def _release_rest(self) -> None:
        """Give back or end the runs that are left, now that no renewal takes them for lost."""
        left = list(self._running.values())
        for execution, _ in left:
            execution.abandon()
        await asyncio.gather(*(task for _, task in left), return_exceptions=True)
        runs = [_held(execution) for execution, _ in left]
        with suppress(Exception):  # the database is away: what else was assigned is lost with its lease
            runs = await leases.fetch_held(self.name)
        await self._give_back(runs)

    async def _give_back(self, runs: Iterable[HeldRun]) -> None:
        await Settler().settle_all(Due(run_id, fence, "worker_stopped") for run_id, fence in runs)


def _held(execution: Execution) -> HeldRun:
    return HeldRun(execution.claim.run_id, execution.claim.fence)


_current: Worker | None = None


async def serve_worker(stop: asyncio.Event) -> None:
    """Run this process's worker on the running loop until `stop`, then drain it."""
    global _current
    _current = Worker(settings.WORKER_CAPACITY)
    try:
        wakeup.register_worker(_current.wake)
        offers.register_worker(_current)
        with watchdog.watch(_current):
            await _current.serve(stop)
    finally:
        wakeup.register_worker(None)
        offers.register_worker(None)
        _current = None


def is_serving() -> bool:
    """Return whether a worker serves in this process."""
    return _current is not None
