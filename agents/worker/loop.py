"""The worker: one event loop that claims runs and executes hundreds of them at once.

A wake-up is only a hint to look; the claim then takes the runs that have waited longest. The worker
also looks by itself every second, so a lost wake-up costs a second and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterable, Set
from contextlib import suppress
from contextvars import Context
from typing import Final
from uuid import UUID, uuid4

import msgspec
import structlog
from django.conf import settings

from agents import requests, wakeup
from agents.providers import http
from agents.requests import Claim
from agents.runtimes.harness.folder_cleanup import keep_removing_folders
from agents.runtimes.plugins.connection import connect_for_ever as connect_plugins
from agents.runtimes.runner_sources import add_sources
from agents.tools import mcp
from agents.worker.execution import Execution
from config import database
from config.audit import key_openings
from config.cache import keep_warm
from config.process import cancellation, watchdog
from config.redis import notifications
from conversations.log import event_log
from conversations.log.event_log import Batch, Writer
from conversations.metrics.refresh import refresh_for_ever
from conversations.runs import leases
from conversations.runs.settling import Due, Settler
from conversations.runs.sweeper import sweep_for_ever
from conversations.upkeep.rounds import upkeep_for_ever
from prompts import app_settings
from prompts.wordings.active import ActivePrompts, get_active_prompts

logger = structlog.get_logger(__name__)

_LOOK_S: Final = 1.0
_RENEW_S: Final = 1.0
_HELD_FOR_S: Final = 60.0  # a blocked loop keeps its runs so long; then other workers take them over
_AT_ONCE: Final = 64
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
        self._renewed_at = time.monotonic()
        self._held_by: UUID | None = None
        self._running: dict[UUID, tuple[Execution, asyncio.Task[None]]] = {}

    def wake(self) -> None:
        """Look for runs now; may be called from any thread of the process."""
        with suppress(RuntimeError):  # the loop is closing: another worker will look
            self._loop.call_soon_threadsafe(self._news.set)

    async def serve(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then drain: make no new claims, and give the running ones DRAIN_S."""
        add_sources()
        chores = [
            asyncio.create_task(chore, name=getattr(chore, "__qualname__", None))
            for chore in (
                self._writer.run(),
                self._keep_leases(),
                notifications.listen(wakeup.WORKERS, self._obey),
                sweep_for_ever(),
                upkeep_for_ever(),
                refresh_for_ever(),
                keep_warm(),
                key_openings.write_for_ever(),
                mcp.connect_for_ever(),
                connect_plugins(self.name),
                keep_removing_folders(),
            )
        ]
        claiming = asyncio.create_task(self._claim_for_ever())
        logger.info("worker ready", worker=self.name, capacity=self._capacity)
        await stop.wait()
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        await self._drain()
        await cancellation.cancel_all(chores)
        await http.close()

    async def _claim_for_ever(self) -> None:
        while True:
            self._news.clear()
            try:
                more = await self._claim_some()
            except Exception as error:  # the database is away: look again soon
                logger.warning("claim failed", error=type(error).__name__)
                more = False
            if not more:
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await self._news.wait()

    async def _claim_some(self) -> bool:
        """Claim as many runs as there is room for; return whether there may be more."""
        limit = min(_AT_ONCE, self._capacity - len(self._running))
        if limit <= 0:
            return False
        prompts = await _prompts()
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
        taken = [Claim(*row[:9], requests.load(row.request), row.started) for row in rows]
        for claim in taken:
            self._start(claim, prompts.choose_system(claim.thread_id))
        started = [Batch(one.run_id, one.last_seq, one.last_seq, one.started) for one in taken]
        self._loop.call_soon(event_log.announce, started)  # the runs themselves come first
        return len(taken) == limit

    def _start(self, claim: Claim, system: str) -> None:
        execution = Execution(claim, self._writer, system, worker=self.name)
        task = self._loop.create_task(execution.run(), context=Context())
        self._running[claim.run_id] = (execution, task)
        task.add_done_callback(lambda done: self._ended(claim.run_id, done))

    def _ended(self, run_id: UUID, task: asyncio.Task[None]) -> None:
        was_full = len(self._running) >= self._capacity
        execution, _ = self._running.pop(run_id)
        if was_full or execution.thread_waits:
            self._news.set()
        if not task.cancelled() and (error := task.exception()):
            logger.error("execution broke", run_id=run_id.hex, exc_info=error)

    def on_held(self, seconds: float) -> None:
        """Renew the leases from the watchdog's OS thread: the loop, which else does so, is blocked."""
        leased = _fences(execution for execution, _ in tuple(self._running.values()))
        if leased and seconds <= _HELD_FOR_S:
            leases.renew_from_thread(leased, lease_s=settings.LEASE_S)
            self._renewed_at = time.monotonic()

    def froze(self, run_id: UUID | None, seconds: float) -> None:
        """Record that the loop was blocked, by this run if one is to blame."""
        self._held_by = run_id
        held_by = run_id.hex if run_id else None
        logger.info("worker froze", held_by=held_by, seconds=round(seconds, 3), runs=len(self._running))

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            executions = {run_id: execution for run_id, (execution, _) in self._running.items()}
            if not executions:
                self._renewed_at = time.monotonic()
                continue
            try:
                renewed = await leases.renew(_fences(executions.values()), lease_s=settings.LEASE_S)
            except Exception as error:  # without the database no other worker can take them over either
                logger.warning("renewing leases failed", error=type(error).__name__)
                continue
            late_s, self._renewed_at = time.monotonic() - self._renewed_at, time.monotonic()
            if late_s > settings.LEASE_S:
                await self._exonerate(executions.keys() - renewed.keys(), late_s)
            for run_id, execution in executions.items():
                if run_id not in renewed:
                    execution.abandon()
                elif renewed[run_id]:
                    execution.stop("cancelled")

    async def _exonerate(self, lost: Set[UUID], late_s: float) -> None:
        """Blame only the run that blocked the loop, if one did, for the lost leases."""
        if lost:
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
            case {"wake": True}:
                self._news.set()
            case {"cancel": bytes(run_id)} if found := self._running.get(UUID(bytes=run_id)):
                found[0].stop("cancelled")

    async def _drain(self) -> None:
        tasks = [task for _, task in self._running.values()]
        if not tasks:
            return
        logger.info("draining", runs=len(tasks), seconds=settings.DRAIN_S)
        await asyncio.wait(tasks, timeout=settings.DRAIN_S)
        left = list(self._running.values())
        for execution, _ in left:
            execution.abandon()
        await asyncio.gather(*(task for _, task in left), return_exceptions=True)
        abandoned = _fences(execution for execution, _ in left)
        await Settler().settle_all(Due(run_id, fence, "worker_stopped") for run_id, fence in abandoned)


def _fences(executions: Iterable[Execution]) -> list[tuple[UUID, int]]:
    return [(execution.claim.run_id, execution.claim.fence) for execution in executions]


async def _prompts() -> ActivePrompts:
    """Return the prompts of the runs that start now; none if the prompt mode is passthrough."""
    if await app_settings.aget("prompt_mode") == "passthrough":
        return ActivePrompts("", ())
    return await get_active_prompts()


_current: Worker | None = None
_starting: Final = threading.Lock()


async def serve_worker(stop: asyncio.Event) -> None:
    """Run this process's worker on the running loop until `stop`, then drain it."""
    global _current
    _current = Worker(settings.WORKER_CAPACITY)
    try:
        wakeup.register_worker(_current.wake)
        with watchdog.watch(_current):
            await _current.serve(stop)
    finally:
        wakeup.register_worker(None)
        _current = None


def ensure_worker() -> None:
    """Start a worker on an OS thread of its own if this process has none (a bare `celery worker`)."""
    with _starting:
        if _current is None:
            ready = threading.Event()
            threading.Thread(
                target=_serve_alone, args=(ready,), daemon=True, name="parley-worker"
            ).start()
            ready.wait(10)


def _serve_alone(ready: threading.Event) -> None:
    async def serve() -> None:
        asyncio.get_running_loop().call_later(0.05, ready.set)
        try:
            await serve_worker(asyncio.Event())
        finally:
            await database.close()

    asyncio.run(serve())
