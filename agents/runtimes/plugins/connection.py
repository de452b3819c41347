"""One runtime's connection, as long as its row is unchanged: connect, greet, list, serve, and repeat.

A connection that breaks fails only its own runs; the next attempt is automatic, after a growing pause.
The status for staff in admin is written when it changes and every `PLUGIN_REFRESH_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import structlog
from django.conf import settings

from agents.host_protocol.manifest import RunnerManifest
from agents.runtimes.plugins import host_requests
from agents.runtimes.plugins.channel import Channel, Refused
from agents.runtimes.plugins.envelopes import Request
from agents.runtimes.plugins.failure_reasons import explain
from agents.runtimes.plugins.released_protocol import Released
from agents.runtimes.plugins.runner_listing import shown
from agents.runtimes.plugins.runtime import Runtime, tell_status
from agents.runtimes.plugins.transports import PipeClosed, opened
from agents.runtimes.plugins.v1_protocol import V1
from agents.runtimes.plugins.wire_protocol import Speech, read_runners
from config.process.reconnecting import Link

log = structlog.get_logger(__name__)

_BUSY_S: Final = 15.0
_BUSY_LOOK_S: Final = 0.25
_PING_S: Final = 20.0


class RuntimeLink(Link):
    """A runtime's connection; `runners` is empty while it is down."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.runners: dict[str, RunnerManifest] = {}
        self.runs: dict[str, str] = {}
        self._channel: Channel | None = None
        self._speech: Speech | None = None
        self._busy_until = 0.0
        self._look = asyncio.Event()
        self._passed_over: list[str] = []
        self._status: tuple[str, str, list[str], list[str]] | None = None

    @property
    def is_lenient(self) -> bool:
        """Return whether results that the generation's Host drops do not fail their run here."""
        return self._speech is not None and self._speech.lenient

    async def serve(self) -> None:
        async with opened(self.runtime) as pipe:
            channel = Channel(pipe, self._answer)
            reading = asyncio.create_task(channel.run())
            try:
                await self._talk(pipe, channel, reading)
            finally:
                self._channel, self._speech, self.runners = None, None, {}
                reading.cancel()
                await asyncio.gather(reading, return_exceptions=True)

    async def _talk(self, pipe: Any, channel: Channel, reading: asyncio.Task[None]) -> None:
        speech = await met(self.runtime, channel)
        pipe.cut, channel.paced, channel.cancels = speech.cut, speech.paced, speech.cancels
        self._speech = speech
        await speech.greet(channel)
        self._channel = channel
        self._expect_news()
        watching = asyncio.create_task(self._watch(channel, speech))
        try:
            await asyncio.wait((reading, watching), return_when=asyncio.FIRST_COMPLETED)
            for task in (reading, watching):
                if task.done():
                    task.result()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self, channel: Channel, speech: Speech) -> None:
        """List the runners again, often while plugins start, else every PLUGIN_REFRESH_S; send pings."""
        last_ping = asyncio.get_running_loop().time()
        while True:
            self._look.clear()
            listed = await channel.ask(speech.list_action, {}, context=speech.context)
            self.runners, passed_over = read_runners(speech, listed.get("runners"))
            self._warn(passed_over)
            await self._tell("connected", "")
            now = asyncio.get_running_loop().time()
            if now - last_ping > _PING_S:
                await channel.ask("__ping", {})
                last_ping = now
            pause = _BUSY_LOOK_S if now < self._busy_until else settings.PLUGIN_REFRESH_S
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._look.wait()

    def _expect_news(self) -> None:
        self._busy_until = asyncio.get_running_loop().time() + _BUSY_S
        self._look.set()

    def _answer(self, request: Request) -> Any:
        """Return the reply to a request of the runtime or of one of its plugins."""
        if request.action in host_requests.STARTING:
            self._expect_news()
            return host_requests.greeted(request, self._speech)
        return host_requests.answer(request, self._speech, self.runs, self._caught_up)

    async def _caught_up(self, run_id: str) -> None:
        if self._channel is not None:
            await self._channel.caught_up(run_id)

    async def run(
        self, runner_id: Any, run_id: str, context: Any, *, idle_s: float
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield a run's results; raise PipeClosed, Refused, Overrun, TimeoutError or TooLarge."""
        channel, speech = self._channel, self._speech
        if channel is None or speech is None:
            raise PipeClosed("The plugin runtime is not connected.")
        payload = {
            "plugin_author": runner_id.author,
            "plugin_name": runner_id.plugin,
            "runner_name": runner_id.runner,
            "context": speech.run_context(context),
        }
        self.runs[run_id] = runner_id.identity
        results = channel.stream(
            speech.run_action,
            payload,
            context=speech.context,
            idle_s=idle_s,
            heavy=_is_heavy(context),
            name=run_id,
        )
        try:
            async for result in results:
                yield result
        finally:
            self.runs.pop(run_id, None)
            channel.drop(run_id)
            await results.aclose()

    def _warn(self, passed_over: list[str]) -> None:
        """Log the runners that are passed over, once per change."""
        if passed_over and passed_over != self._passed_over:
            log.warning("plugin runners passed over", name=self.runtime.name, why=passed_over)
        self._passed_over = passed_over

    async def report(self, error: Exception) -> None:
        await self._tell("failed", explain(error, self.runtime))

    async def _tell(self, status: str, problem: str) -> None:
        """Write the status for staff and log changes; the database may not be available."""
        status_now = (status, problem, sorted(self.runners), self._passed_over)
        if status_now != self._status:
            say = log.warning if status == "failed" else log.info
            say("plugin runtime", name=self.runtime.name, status=status, why=problem, has=status_now[2])
        changed, self._status = status_now != self._status, status_now
        if not changed and asyncio.get_running_loop().time() < self._busy_until:
            return
        is_up = status == "connected"
        listed = [shown(one) for one in self.runners.values()] if is_up else None
        seen = datetime.now(UTC) if is_up else None
        spoken = self._speech.name if self._speech else ""
        with suppress(Exception):
            await tell_status(
                self.runtime.id,
                status,
                problem=problem,
                spoken=spoken,
                runners=listed,
                passed_over=self._passed_over,
                seen=seen,
            )


async def met(runtime: Runtime, channel: Channel) -> Speech:
    """Return the runtime's generation, from its row or by a request to it (Framing)."""
    if runtime.profile == "released":
        return Released(runtime.identity)
    if runtime.profile == "v1":
        return V1()
    try:
        await channel.ask(V1.list_action, {}, timeout_s=settings.PLUGIN_CONNECT_S)
    except Refused:
        return Released(runtime.identity)
    return V1()


def _is_heavy(context: Any) -> bool:
    return len(context.input.text or "") > 64 * 1024 or bool(context.input.attachments)
