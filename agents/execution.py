"""Execute one claimed run: context, tools, runner, log, and exactly one ending (DESIGN §7).

Everything a runner says goes through `_Execution._say`, which cleans it, writes it to the log and
feeds the transcript; so what is stored at the end is the fold of what was streamed. However a run
ends (well, badly, cancelled, too late), `endings` closes what is open and writes the last event,
the run's row and its messages in one statement.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Final, TypeVar

import structlog

from agents import endings
from agents.claims import Claim
from agents.cleaning import clean
from agents.context import history
from agents.endings import FAILURES, Reason
from agents.host import RunHost
from agents.runners.base import RunContext, RunFailure, Runner, ToolOutcome
from agents.runners.chat import ChatRunner
from agents.runners.demo import DemoRunner
from config.errors import ParleyError
from conversations import events, log
from conversations.events import Fact
from conversations.log import LeaseLost, RunLog, Writer
from conversations.transcript import Transcript
from prompts.routing import ModelRoute, route

logger = structlog.get_logger(__name__)

_INTERNAL: Final = events.RunFailed("internal_error", "The run failed on our side.", retryable=True)
_EXECUTION: Final = "execution"
_RETRY_S: Final = 0.2
T = TypeVar("T")


class Execution:
    """One run on this worker's loop. `stop` may be called at any time."""

    def __init__(self, claim: Claim, writer: Writer, system: str) -> None:
        self.claim = claim
        self._system = system
        self._log: RunLog = writer.open(claim.run_id, fence=claim.fence, last_seq=claim.last_seq)
        self._transcript = Transcript(claim.run_id)
        self._reason: Reason | None = None
        self._abandoned = False
        self._ending = False
        self._task: asyncio.Task[None] | None = None

    def stop(self, reason: Reason) -> None:
        """End the run for this reason as soon as the runner lets go."""
        self._reason = self._reason or reason
        if self._task is not None and not self._ending:
            self._task.cancel()

    def abandon(self) -> None:
        """Let go of the run without writing anything more: it is somebody else's now."""
        self._abandoned = True
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Execute to the end. Never raises for what happens in a run."""
        structlog.contextvars.bind_contextvars(
            request_id=self.claim.request.request_id, run_id=self.claim.run_id.hex
        )
        self._task = asyncio.current_task()
        try:
            terminal = await self._attempt()
            self._ending = True
            await self._finish(terminal)
        except LeaseLost:
            logger.warning("lease lost", fence=self.claim.fence)

    async def _attempt(self) -> events.Terminal:
        """Produce everything but the last event; say what the last one is to be."""
        try:
            async with asyncio.timeout(max(0.0, self.claim.left_s)):
                return await self._produce()
        except asyncio.CancelledError:
            if self._abandoned:
                raise LeaseLost from None
            if self._reason is None:
                raise
            return FAILURES[self._reason]
        except TimeoutError:
            return FAILURES["deadline_exceeded"]
        except RunFailure as failure:
            return events.RunFailed(failure.code, failure.message, failure.retryable)
        except ParleyError as error:
            return events.RunFailed(error.error_code, error.detail)
        except LeaseLost:
            raise
        except Exception:  # the one broad catch: whatever broke, the run ends and the log says so
            logger.exception("run failed")
            return _INTERNAL

    async def _produce(self) -> events.Terminal:
        self._say(events.StageStarted(_EXECUTION))
        chosen = await _outlast(lambda: route(self.claim.request.model))
        host = RunHost(chosen)
        context = await self._context(host)
        terminal: events.Terminal = events.RunCompleted("stop")
        async with aclosing(runner_for(chosen).run(context, host)) as facts:
            async for fact in facts:
                if isinstance(fact, events.TERMINAL):
                    terminal = fact
                    break
                self._say(fact)
                await self._log.make_room()
        return terminal

    async def _context(self, host: RunHost) -> RunContext:
        claim = self.claim
        findings = [outcome async for outcome in self._prefetch(host)]
        return RunContext(
            run_id=claim.run_id,
            thread_id=claim.thread_id,
            user_id=claim.user_id,
            attempt=claim.attempt,
            deadline_at_ms=claim.deadline_at_ms,
            request=claim.request,
            system=self._system,
            history=await _outlast(lambda: history(claim.thread_id, before=claim.thread_seq)),
            findings=tuple(findings),
        )

    async def _prefetch(self, host: RunHost) -> AsyncIterator[ToolOutcome]:
        """Call the tools that the request wants called before the model."""
        for number, use in enumerate(self.claim.request.prefetch, 1):
            call_id = f"prefetch-{number}"
            self._say(events.ToolCallStarted(call_id, use.name, use.arguments))
            outcome = await host.call_tool(use)
            self._say(
                events.ToolCallCompleted(
                    call_id,
                    use.name,
                    outcome.problem is None,
                    outcome.elapsed_ms,
                    outcome.result,
                    outcome.problem,
                )
            )
            yield outcome

    def _say(self, fact: Fact) -> None:
        self._transcript.feed(self._log.append(clean(fact)))

    async def _finish(self, terminal: events.Terminal) -> None:
        """Write the ending; a database that is away is waited for as long as the lease is ours."""
        await self._log.drain()
        ending = endings.compose(
            self._transcript, terminal, fence=self.claim.fence, after=self._log.last_seq
        )
        if not await endings.insist(ending):
            raise LeaseLost


async def _outlast(read: Callable[[], Awaitable[T]]) -> T:
    """What `read` gives, asked for until the database answers; the run's deadline bounds the wait."""
    while True:
        try:
            return await read()
        except log.OUTAGE as error:
            if not log.passes(error):
                raise
            logger.warning("run waits for the database", error=type(error).__name__)
            await asyncio.sleep(_RETRY_S)


def runner_for(chosen: ModelRoute) -> Runner:
    """Which runner serves a model: the offline one for `demo`, else the model-driven one."""
    return DemoRunner() if chosen.candidates[0].dialect == "demo" else ChatRunner()
