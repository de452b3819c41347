"""The connections to runtimes, each as long as its row is unchanged: connect, greet, list, serve.

A connection that breaks fails only its own runs; the next attempt is automatic, after a growing pause.
The status for staff in admin is written when it changes and every `PLUGIN_REFRESH_S`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

import structlog
from django.conf import settings

from agents.host_protocol.manifest import RunnerManifest
from agents.runtimes.plugins import host_requests
from agents.runtimes.plugins.channel import Answer, Channel, Refused
from agents.runtimes.plugins.envelopes import Request
from agents.runtimes.plugins.failure_reasons import explain
from agents.runtimes.plugins.released_protocol import ReleasedProtocol
from agents.runtimes.plugins.runner_listing import manifest_to_json
from agents.runtimes.plugins.runtime import Runtime, hold_runtimes, release, write_status
from agents.runtimes.plugins.transports import PipeClosed, open_pipe
from agents.runtimes.plugins.v1_protocol import V1Protocol
from agents.runtimes.plugins.wire_protocol import WireProtocol, read_runners
from config.process.reconnecting import Link, Pool

log = structlog.get_logger(__name__)

_BUSY_S: Final = 15.0
_BUSY_LIST_S: Final = 0.25
_PING_S: Final = 20.0


class RuntimeLink(Link):
    """A runtime's connection; `runners` is empty while it is down."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.runners: dict[str, RunnerManifest] = {}
        self.runs: dict[str, str] = {}
        self._channel: Channel | None = None
        self._busy_until = 0.0
        self._list_again = asyncio.Event()
        self._passed_over: list[str] = []
        self._status: tuple[str, str, list[str], list[str]] | None = None

    @property
    def is_lenient(self) -> bool:
        """Return whether results that the generation's Host drops do not fail their run here."""
        return self._protocol is not None and self._protocol.lenient

    @property
    def _protocol(self) -> WireProtocol | None:
        return self._channel.protocol if self._channel else None

    async def serve(self) -> None:
        async with open_channel(self.runtime, self._answer) as (channel, reading):
            try:
                await self._serve_channel(channel, reading)
            finally:
                self._channel, self.runners = None, {}

    async def _serve_channel(self, channel: Channel, reading: asyncio.Task[None]) -> None:
        protocol = await greet(self.runtime, channel)
        self._channel = channel
        self._list_often()
        watching = asyncio.create_task(self._watch(channel, protocol))
        try:
            await asyncio.wait((reading, watching), return_when=asyncio.FIRST_COMPLETED)
            for task in (reading, watching):
                if task.done():
                    task.result()
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self, channel: Channel, protocol: WireProtocol) -> None:
        """List the runners again, often while plugins start, else every PLUGIN_REFRESH_S; send pings."""
        last_ping = asyncio.get_running_loop().time()
        while True:
            self._list_again.clear()
            self.runners, passed_over = await list_runners(channel, protocol)
            self._warn(passed_over)
            await self._write_status("connected", "")
            now = asyncio.get_running_loop().time()
            if now - last_ping > _PING_S:
                await channel.request("__ping", {})
                last_ping = now
            pause = _BUSY_LIST_S if now < self._busy_until else settings.PLUGIN_REFRESH_S
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._list_again.wait()

    def _list_often(self) -> None:
        self._busy_until = asyncio.get_running_loop().time() + _BUSY_S
        self._list_again.set()

    def _answer(self, request: Request, protocol: WireProtocol | None) -> Any:
        """Return the reply to a request of the runtime or of one of its plugins."""
        if request.action in host_requests.STARTING:
            self._list_often()
            return host_requests.answer_greeting(request, protocol)
        return host_requests.answer(request, protocol, self.runs, self._wait_until_processed)

    async def _wait_until_processed(self, run_id: str) -> None:
        if self._channel is not None:
            await self._channel.wait_until_processed(run_id)

    async def run(
        self, runner_id: Any, run_id: str, context: Any, *, idle_s: float
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield a run's results; raise PipeClosed, Refused, Overrun, TimeoutError or TooLarge."""
        channel = self._channel
        if channel is None or (protocol := channel.protocol) is None:
            raise PipeClosed("The plugin runtime is not connected.")
        payload = {
            "plugin_author": runner_id.author,
            "plugin_name": runner_id.plugin,
            "runner_name": runner_id.runner,
            "context": protocol.run_context(context),
        }
        self.runs[run_id] = runner_id.identity
        results = channel.stream(
            protocol.run_action,
            payload,
            context=protocol.context,
            idle_s=idle_s,
            heavy=len(context.input.text or "") > 64 * 1024 or bool(context.input.attachments),
            name=run_id,
        )
        try:
            async for result in results:
                yield result
        finally:
            self.runs.pop(run_id, None)
            channel.cancel_run(run_id)
            await results.aclose()

    def _warn(self, passed_over: list[str]) -> None:
        """Log the runners that are passed over, once per change."""
        if passed_over and passed_over != self._passed_over:
            log.warning("plugin runners passed over", name=self.runtime.name, why=passed_over)
        self._passed_over = passed_over

    async def report(self, error: Exception) -> None:
        await self._write_status("failed", explain(error, self.runtime))

    async def _write_status(self, status: str, problem: str) -> None:
        """Write the status for staff and log changes; the database may not be available."""
        status_now = (status, problem, sorted(self.runners), self._passed_over)
        if status_now != self._status:
            say = log.warning if status == "failed" else log.info
            say("plugin runtime", name=self.runtime.name, status=status, why=problem, has=status_now[2])
        changed, self._status = status_now != self._status, status_now
        if not changed and asyncio.get_running_loop().time() < self._busy_until:
            return
        runners = [manifest_to_json(one) for one in self.runners.values()]
        protocol = self._protocol
        with suppress(Exception):
            await write_status(
                self.runtime.id,
                status,
                problem=problem,
                spoken=protocol.name if protocol else "",
                runners=runners if status == "connected" else None,
                passed_over=self._passed_over,
            )


@asynccontextmanager
async def open_channel(
    runtime: Runtime, answer: Answer
) -> AsyncIterator[tuple[Channel, asyncio.Task[None]]]:
    """Open a channel to the runtime, with the task that reads from it."""
    async with open_pipe(runtime) as pipe:
        channel = Channel(pipe, answer)
        reading = asyncio.create_task(channel.run())
        try:
            yield channel, reading
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)


async def greet(runtime: Runtime, channel: Channel) -> WireProtocol:
    """Introduce Parley to the runtime; return the protocol of its generation. Raise Refused."""
    protocol = await _detect_protocol(runtime, channel)
    channel.use(protocol)
    await channel.request(*protocol.greeting())
    return protocol


async def list_runners(
    channel: Channel, protocol: WireProtocol
) -> tuple[dict[str, RunnerManifest], list[str]]:
    """Return the runtime's runners by id, and those passed over with their reasons."""
    listed = await channel.request(protocol.list_action, {}, context=protocol.context)
    return read_runners(protocol, listed.get("runners"))


async def _detect_protocol(runtime: Runtime, channel: Channel) -> WireProtocol:
    """Return the runtime's generation, from its row or by a request to it (Framing)."""
    if runtime.profile == "released":
        return ReleasedProtocol(runtime.identity)
    if runtime.profile == "v1":
        return V1Protocol()
    try:
        await channel.request(V1Protocol.list_action, {}, timeout_s=settings.PLUGIN_CONNECT_S)
    except Refused:
        return ReleasedProtocol(runtime.identity)
    return V1Protocol()


# two connections to a stdio runtime would both be the same program
_pool: Final[Pool[Runtime, RuntimeLink]] = Pool(
    RuntimeLink, rows="plugin runtimes", goodbye_s=6, one_at_a_time=True
)


def links() -> tuple[RuntimeLink, ...]:
    """Return this loop's links by name, or this process's in an OS thread without a loop; never wait."""
    return tuple(sorted(_pool.links(), key=lambda link: link.runtime.name))


async def connect_for_ever(worker: str) -> None:
    """Keep a connection to each of this worker's runtimes, until cancelled."""
    connected: list[int] = []

    async def read() -> dict[int, Runtime]:
        found = await hold_runtimes(worker)
        connected[:] = found
        return found

    try:
        await _pool.keep(read)
    finally:
        if connected:
            with suppress(Exception):
                await release(connected, worker)
