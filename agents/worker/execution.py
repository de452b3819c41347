"""Execute one claimed run: context, tools, runner, log, and exactly one ending (DESIGN §7).

Every fact of a runner passes `Execution._log_fact`, which cleans it, writes it to the log and feeds the
transcript; so what is stored at the end is the fold of what was streamed. However a run ends (well,
badly, cancelled, too late), `endings` closes what is open and writes the last event, the run's row
and its messages in one statement.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from functools import partial
from typing import Final

import structlog
from msgspec.structs import replace

from agents import wakeup
from agents.context.prompt_builder import PromptBuilder
from agents.context.template_values import values_for
from agents.host import bindings, runner_execution
from agents.host.grants import Binding
from agents.host.model_and_tool_calls import RunHost
from agents.providers import http
from agents.requests import Claim, InputMessage
from agents.runners.answer import judge_answer
from agents.runners.base import RunContext, RunFailure, Runner, ToolOutcome, name_of
from agents.runners.chat import ChatRunner
from agents.runners.conversation import PREFETCHED
from agents.runners.delivery import Delivery, delivery_for
from agents.runners.demo.runner import DemoRunner
from agents.runners.tool_loop import outcome_facts
from agents.runtimes.plugins.placement import RunnerElsewhere, wait_until_reachable
from agents.spending.metering import Meter, add_staff_cost
from agents.tools.base import ToolContext
from agents.tools.mcp import tool_list_updates
from agents.tools.offered_tools import find_for_request
from agents.worker.approved_calls import ApprovedCalls
from agents.worker.run_traces import enter_run, trace_later
from agents.worker.size_limits import RunSize
from config.coordination import notifications
from config.errors import ParleyError
from config.process import coarse_timers
from conversations import events
from conversations.events import Fact
from conversations.log.deltas import Deltas
from conversations.log.event_log import LARGE, LeaseLost, RunLog, Writer
from conversations.log.fact_order import FactOrdering
from conversations.log.redacted_facts import FactRedactor
from conversations.log.redaction_hook import RedactionFailed, find_redact
from conversations.log.retry import retry_until_answered
from conversations.log.storable_text import clean, is_storable
from conversations.log.transcript import Transcript
from conversations.runs import endings, interrupts, leases
from conversations.runs.endings import FAILURES, Reason
from conversations.runs.stored_requests import record_prompt_values
from prompts import app_settings
from prompts.endpoints.routing import ModelRoute, route
from prompts.wordings import template
from prompts.wordings.active import compose_versions

logger = structlog.get_logger(__name__)

_INTERNAL: Final = events.RunFailed("internal_error", "The run failed on our side.", retryable=True)
_INTENT: Final = "intent"
_EXECUTION: Final = "execution"
_TURN_EVENTS: Final = 256
"""After this number of events, other runs get their turn, even if the runner never waits."""


class Execution:
    """One run on this worker's loop. `stop` may be called at any time.

    `thread_waits` is false when it is known that no other run waits for the end of this one.
    """

    def __init__(self, claim: Claim, writer: Writer, system: str, *, worker: str) -> None:
        self.claim = claim
        self._worker = worker
        self._system = system
        self._log: RunLog = writer.open(claim.run_id, fence=claim.fence, last_seq=claim.last_seq)
        self._transcript = Transcript(claim.run_id)
        self._size = RunSize()
        self._in_order = FactOrdering(self._transcript.text_of)
        redact = find_redact()
        self._redactor = None if redact is None else FactRedactor(redact)
        self._counted: list[Fact] = []
        self._delivery = delivery_for(claim.request.result_mode)
        self._reason: Reason | None = None
        self._runner = ""
        self._abandoned = False
        self._ending = False
        self.thread_waits = True
        self.has_ended = False
        self._late_at = math.inf
        self._task: asyncio.Task[None] | None = None

    def stop(self, reason: Reason) -> None:
        """End the run for this reason as soon as the runner stops."""
        self._reason = self._reason or reason
        if self._task is not None and not self._ending:
            self._task.cancel()

    def look(self, now: float) -> None:
        """End the run if its deadline has passed."""
        if now >= self._late_at:
            coarse_timers.unwatch(self)
            self.stop("deadline_exceeded")

    def abandon(self) -> None:
        """Stop the run without writing anything more: another worker or the sweeper owns it now."""
        self._abandoned = True
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Execute the run to its end; never raise for a failure of the run."""
        structlog.contextvars.bind_contextvars(
            request_id=self.claim.request.request_id, run_id=self.claim.run_id.hex
        )
        enter_run(self.claim)
        http.rest_between_reads.set(self._log.writer.rest)
        self._task = asyncio.current_task()
        try:
            terminal = _sound(await self._attempt())
            self._ending = True
            await self._finish(terminal)
            self.has_ended = True
            trace_later(self.claim, self._runner)
        except LeaseLost:
            logger.warning("lease lost", fence=self.claim.fence)
        except RunnerElsewhere as elsewhere:
            self._ending = True
            await self._hand_over(str(elsewhere))
            self.has_ended = True

    async def _hand_over(self, worker: str) -> None:
        """Hand the run, which has logged nothing yet, to the worker that can reach the runner."""
        claim = self.claim
        handed = await retry_until_answered(leases.hand_over, claim.run_id, fence=claim.fence, to=worker)
        if handed:
            logger.info("run handed over", to=worker)
            notifications.notify(wakeup.WORKERS, {"wake": True})

    async def _attempt(self) -> events.Terminal:
        """Produce all events but the last; return the last one."""
        self._late_at = asyncio.get_running_loop().time() + self.claim.left_s
        coarse_timers.watch(self)
        try:
            return await self._produce()
        except asyncio.CancelledError:
            if self._abandoned:
                raise LeaseLost from None
            if self._reason is None:
                raise
            return FAILURES[self._reason]
        except RunFailure as failure:
            return events.RunFailed(failure.code, failure.message, failure.retryable)
        except ParleyError as error:
            return events.RunFailed(error.error_code, error.detail)
        except (LeaseLost, RunnerElsewhere):
            raise
        except Exception:  # the one broad catch: whatever broke, the run ends and the log records why
            logger.exception("run failed")
            return _INTERNAL
        finally:
            coarse_timers.unwatch(self)

    async def _produce(self) -> events.Terminal:
        binding = await self._binding()
        chosen = await self._intent()
        self._log_fact(events.StageStarted(_EXECUTION))
        host = await self._host(chosen)
        bound = runner_execution.find_bound_runner(binding, chosen, thread_seq=self.claim.thread_seq)
        runner = bound or runner_for(chosen)
        context = await self._context(host, chosen)
        terminal: events.Terminal = events.RunCompleted("stop")
        self._runner = name_of(runner)
        others_had_their_turn = 0
        async with aclosing(runner.run(context, host)) as facts:
            async for said in facts:
                if isinstance(said, events.TERMINAL):
                    terminal = said
                    break
                if isinstance(said, Deltas):
                    self._log_deltas(said)
                else:
                    self._deliver(said)
                if self._log.last_seq - others_had_their_turn >= _TURN_EVENTS:
                    others_had_their_turn = self._log.last_seq
                    await self._log.make_room()
                    await asyncio.sleep(0)
        self._log_held()
        if isinstance(terminal, events.RunFailed):
            return terminal
        terminal = replace(terminal, usage=add_staff_cost(chosen.candidates[0], terminal.usage))
        return await self._judged(terminal)

    async def _judged(self, terminal: events.RunCompleted) -> events.Terminal:
        """Return the ending, after a check of the answer against the requested form."""
        schema = self.claim.request.generation.json_schema
        if schema is None:
            return terminal
        fails = await app_settings.aget("structured_output") == "fail"
        return await judge_answer(terminal, self._transcript.answer, schema, fails=fails)

    async def _host(self, chosen: ModelRoute) -> RunHost:
        """Return the Host of the run, and log which tools its MCP servers offer."""
        claim = self.claim
        tools = await find_for_request(claim.request, user_id=claim.user_id)
        for listing in tool_list_updates(tools) if chosen.supports_tools else ():
            self._log_fact(listing)
        return RunHost(
            chosen,
            caller=ToolContext(claim.run_id, claim.thread_id, claim.user_id, ""),
            generation=claim.request.generation,
            tools=tools,
            wait_until_logged=self._log.drain,
            meter=Meter(claim.user_id, self._counted.append),
        )

    async def _binding(self) -> Binding | None:
        """Return the run's binding; raise RunnerElsewhere if another worker has its runner."""
        claim = self.claim
        binding = await retry_until_answered(
            bindings.find_binding, claim.request, user_id=claim.user_id, thread_id=claim.thread_id
        )
        if binding is not None:
            await retry_until_answered(wait_until_reachable, binding.runner_id, worker=self._worker)
        return binding

    async def _intent(self) -> ModelRoute:
        """Run the stage that determines the model and the tools to call first; it calls no model."""
        begun = time.monotonic()
        request = self.claim.request
        self._log_fact(events.StageStarted(_INTENT))
        chosen = await retry_until_answered(route, request.model)
        if request.state is not None:
            self._log_fact(events.StateUpdated("thread", "", request.state))
        latency_ms = round((time.monotonic() - begun) * 1000)
        names = ", ".join(use.name for use in request.prefetch)
        self._log_fact(events.StageCompleted(_INTENT, latency_ms, names))
        return chosen

    async def _context(self, host: RunHost, chosen: ModelRoute) -> RunContext:
        findings = [outcome async for outcome in self._prefetch(host)]
        prompts = await self._filled(await self._prompts())
        builder = PromptBuilder(
            self.claim, chosen, host, prompts, tuple(findings), log_fact=self._log_fact
        )
        earlier = await builder.read()
        if self.claim.request.state is None and earlier.state:
            self._log_fact(events.StateUpdated("thread", "", earlier.state))
        return await builder.context(await self._answers(host) if earlier.interrupted else [])

    async def _prompts(self) -> str:
        """Return the text of the active prompts, or of those that staff try with this run."""
        tried = [used.version_id for used in self.claim.request.prompts]
        return await retry_until_answered(compose_versions, tried) if tried else self._system

    async def _filled(self, prompts: str) -> str:
        """Return the prompts with their variables filled, and store the values; most have none."""
        if not template.has_variables(prompts):
            return prompts
        claim = self.claim
        values = await retry_until_answered(
            values_for,
            prompts,
            user_id=claim.user_id,
            model=claim.request.model,
            context=claim.request.context,
        )
        await retry_until_answered(record_prompt_values, claim.run_id, fence=claim.fence, values=values)
        return template.fill(prompts, values)

    async def _answers(self, host: RunHost) -> list[InputMessage]:
        """Return the outcomes of the calls of earlier runs of the thread that waited for an approval."""
        claim = self.claim
        taken = await retry_until_answered(interrupts.assign_to_run, claim.run_id, fence=claim.fence)
        return await ApprovedCalls(claim, host, log_fact=self._log_fact).settle(taken)

    async def _prefetch(self, host: RunHost) -> AsyncIterator[ToolOutcome]:
        """Call the tools that the request wants called before the model."""
        for number, use in enumerate(self.claim.request.prefetch, 1):
            call_id = f"{PREFETCHED}{number}"
            self._log_fact(events.ToolCallStarted(call_id, use.name, use.arguments))
            outcome = await host.call_tool(use)
            for fact in outcome_facts(call_id, outcome):
                self._log_fact(fact)
            yield outcome

    def _log_deltas(self, deltas: Deltas) -> None:
        """Log each of the deltas; in one go if there is nothing to change, to refuse or to hold back."""
        if (
            type(self._delivery) is Delivery
            and self._redactor is None
            and is_storable(deltas.message_id + deltas.text)
            and self._in_order.takes(deltas)
            and self._size.add_deltas(deltas)
        ):
            if self._counted:
                self._log_counted()
            self._transcript.feed_deltas(deltas, self._log.append_deltas(deltas))
        else:
            for fact in deltas.each():
                self._deliver(fact)

    def _deliver(self, fact: Fact) -> None:
        """Log what is delivered of a runner's fact."""
        for delivered in self._delivery.take(fact):
            self._log_fact(delivered)

    def _log_fact(self, fact: Fact) -> None:
        if self._counted:
            self._log_counted()
        cleaned = clean(fact)
        for one in (cleaned,) if self._redactor is None else self._redactor.feed(cleaned):
            self._log_admitted(one)

    def _log_admitted(self, fact: Fact) -> None:
        for admitted in self._in_order.admit(fact):
            if not self._ending:  # the closing events of a run are not limited
                self._size.add(admitted, state=self._transcript.state)
            self._transcript.feed(self._log.append(admitted))

    def _log_held(self) -> None:
        """Log the line that a redaction hook has not seen the end of."""
        for one in () if self._redactor is None else self._redactor.flush():
            self._log_admitted(one)

    def _log_rest(self, rest: Iterable[Fact], last: events.Terminal) -> events.Terminal:
        """Log what is left to say. Return the ending: a failure, if that cannot be redacted."""
        try:
            for fact in rest:
                self._log_fact(fact)
            self._log_held()
            redacted = last if self._redactor is None else self._redactor.redact(last)
        except RedactionFailed as failure:
            return events.RunFailed(failure.error_code, failure.detail)
        return redacted if isinstance(redacted, events.TERMINAL) else last

    def _log_counted(self) -> None:
        """Log the end of a model call just before the next fact; the last one goes with the ending."""
        self._log_held()
        for fact in self._counted:
            self._transcript.feed(self._log.append(clean(fact)))
        self._counted.clear()

    async def _finish(self, terminal: events.Terminal) -> None:
        """Write the ending; while the database is away, retry as long as the lease is ours."""
        rest, last = self._delivery.end(terminal)
        last = self._log_rest(rest, last)
        unwritten = await self._log.take_rest()
        compose = partial(
            endings.compose_ending,
            self._transcript,
            last,
            fence=self.claim.fence,
            after=self._log.last_seq,
            unwritten=unwritten,
            first=[clean(fact) for fact in self._counted],
            runner=self._runner,
        )
        ending = await asyncio.to_thread(compose) if self._size.log > LARGE else compose()
        ended = await endings.write_ending(ending)
        if ended is None:
            raise LeaseLost
        self.thread_waits = ended.thread_waits


def _sound(terminal: events.Terminal) -> events.Terminal:
    """Return the ending in writable form; a run whose runner ended with anything else has failed."""
    try:
        cleaned = clean(terminal)
    except (TypeError, ValueError, AttributeError):
        logger.exception("run ended with no ending")
        return _INTERNAL
    return cleaned if isinstance(cleaned, events.TERMINAL) else _INTERNAL


def runner_for(route: ModelRoute) -> Runner:
    """Return the runner of a model: the offline one for `demo`, else the model-driven one."""
    return DemoRunner() if route.candidates[0].dialect == "demo" else ChatRunner()
