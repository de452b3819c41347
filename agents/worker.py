"""The worker: one event loop that claims runs and executes hundreds of them at once.

A wake-up says "look"; the claim then takes whatever waits longest. Because the worker also looks by
itself every second, a lost wake-up costs a second and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from contextlib import suppress
from contextvars import Context
from typing import Final
from uuid import UUID, uuid4

import msgspec
import structlog
from django.conf import settings

from agents import claims, endings
from agents.claims import Claim
from agents.execution import Execution
from agents.providers import http
from agents.sweeper import sweep_for_ever
from config import database, ring
from conversations.log import Writer
from conversations.upkeep import upkeep_for_ever
from prompts.active import active_prompts

logger = structlog.get_logger(__name__)

GROUP: Final = "worker"
_LOOK_S: Final = 1.0
_RENEW_S: Final = 1.0
_AT_ONCE: Final = 64


class Worker:
    """Claims runs up to its capacity, keeps their leases, and lets go of them in order."""

    def __init__(self, capacity: int) -> None:
        self.name = f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:6]}"
        self._capacity = capacity
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._draining = False
        self._writer = Writer()
        self._running: dict[UUID, tuple[Execution, asyncio.Task[None]]] = {}

    def wake(self) -> None:
        """Look for runs now; may be called from any thread."""
        with suppress(RuntimeError):  # the loop is closing: another worker will look
            self._loop.call_soon_threadsafe(self._news.set)

    async def serve(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then drain: no new claims, and DRAIN_S for what runs."""
        chores = [
            asyncio.create_task(chore)
            for chore in (
                self._writer.run(),
                self._keep_leases(),
                self._obey(),
                sweep_for_ever(),
                upkeep_for_ever(),
            )
        ]
        claiming = asyncio.create_task(self._claim_for_ever())
        logger.info("worker ready", worker=self.name, capacity=self._capacity)
        await stop.wait()
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        await self._drain()
        for chore in chores:
            chore.cancel()
        await asyncio.gather(*chores, return_exceptions=True)
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
        """Claim what there is room for; whether there may be more."""
        limit = min(_AT_ONCE, self._capacity - len(self._running))
        if limit <= 0:
            return False
        prompts = await active_prompts()
        taken = await claims.claim(
            worker=self.name,
            limit=limit,
            lease_s=settings.LEASE_S,
            prompt_versions=msgspec.json.encode(prompts.as_json()).decode(),
        )
        for claim in taken:
            self._start(claim, prompts.system)
        return len(taken) == limit

    def _start(self, claim: Claim, system: str) -> None:
        execution = Execution(claim, self._writer, system)
        task = self._loop.create_task(execution.run(), context=Context())
        self._running[claim.run_id] = (execution, task)
        task.add_done_callback(lambda done: self._ended(claim.run_id, done))

    def _ended(self, run_id: UUID, task: asyncio.Task[None]) -> None:
        self._running.pop(run_id, None)
        self._news.set()  # room for another, and perhaps the next of the same thread
        if not task.cancelled() and (error := task.exception()):
            logger.error("execution broke", run_id=run_id.hex, exc_info=error)

    async def _keep_leases(self) -> None:
        while True:
            await asyncio.sleep(_RENEW_S)
            held = {run_id: execution for run_id, (execution, _) in self._running.items()}
            if not held:
                continue
            pairs = [(run_id, execution.claim.fence) for run_id, execution in held.items()]
            try:
                renewed = await claims.renew(pairs, lease_s=settings.LEASE_S)
            except Exception as error:  # without the database nobody else can take them over either
                logger.warning("renewing leases failed", error=type(error).__name__)
                continue
            for run_id, execution in held.items():
                if run_id not in renewed:
                    execution.abandon()
                elif renewed[run_id]:
                    execution.stop("cancelled")

    async def _obey(self) -> None:
        """Do what a ring asks: look for runs, or stop one."""
        async for message in ring.listen(GROUP, every_s=60):
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
        for run_id, (execution, task) in list(self._running.items()):
            execution.abandon()
            await asyncio.gather(task, return_exceptions=True)
            await endings.settle(run_id, "worker_lost", fence=execution.claim.fence)


_current: Worker | None = None
_starting: Final = threading.Lock()


async def serve_worker(stop: asyncio.Event) -> None:
    """Run this process's worker on the running loop until `stop`, then drain it."""
    global _current
    _current = Worker(settings.WORKER_CAPACITY)
    try:
        await _current.serve(stop)
    finally:
        _current = None


def wake_here() -> bool:
    """Wake the worker of this process; False if it has none."""
    found = _current
    if found is not None:
        found.wake()
    return found is not None


def ensure_worker() -> None:
    """Start a worker on a thread of its own if this process has none (a bare `celery worker`)."""
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
