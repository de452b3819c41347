"""Execute a hosted runner as any other runner: open its session, and convert its results into facts.

The session is open from before the runner's first step until its last; afterwards calls with its run's
id are refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import structlog

from agents.host import gateway, grants, request_messages, runner_catalogue
from agents.host.actions import knowledge
from agents.host.context_builder import build_context, runner_deadline
from agents.host.grants import Binding
from agents.host.model_and_tool_calls import RunHost
from agents.host.result_stream import ResultStream
from agents.host.session import Scene, Session
from agents.host.tool_choice_check import ToolChoiceCheck
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.runner import HostedRunner
from agents.host_protocol.runner_id import identity_of
from agents.runners.base import Host, RunContext, RunFailure, Runner
from agents.runners.chat import ChatRunner
from agents.runners.demo.runner import DemoRunner
from agents.tools.base import Tool
from agents.tools.offered_tools import find_for_request, find_granted
from config.errors import ParleyError
from conversations.events import Fact
from prompts.endpoints import routing
from prompts.endpoints.routing import ModelRoute

log = structlog.get_logger(__name__)

_MAX_PENDING: Final = 1_000


def find_bound_runner(binding: Binding | None, route: ModelRoute, *, thread_seq: int) -> Runner | None:
    """Return the runner that a run's binding names; None for a run without a binding.

    Raise RunFailure `runner.not_found` if the runner is not available now.
    """
    if binding is None:
        return None
    if binding.runner_id in runner_catalogue.BUILTIN:
        return DemoRunner() if binding.runner_id == runner_catalogue.DEMO else ChatRunner()
    runner = runner_catalogue.find(binding.runner_id)
    if runner is None:
        why = runner_catalogue.explain_absence(binding.runner_id)
        log.warning("runner not found", runner=binding.runner_id, binding=binding.name, reason=why)
        raise RunFailure(
            "runner.not_found", f"Runner {binding.runner_id} is not available now.", retryable=True
        )
    return HostedRun(runner, binding, route, thread_seq)


@dataclass(frozen=True)
class HostedRun:
    """One run of a hosted runner."""

    runner: HostedRunner
    binding: Binding
    route: ModelRoute
    thread_seq: int

    async def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact]:
        assert isinstance(host, RunHost)
        session = await self._open_session(context, host)
        gateway.register(session)
        try:
            whole = self.binding.delivery == "whole"
            stream = ResultStream(
                session,
                context.message_id,
                whole=whole,
                snapshots=getattr(self.runner, "snapshots", False),
                client_tools={tool.name for tool in context.request.tools},
            )
            session.convert_result = stream.convert
            session.late_s = getattr(self.runner, "late_s", 0.0)
            inlines = getattr(self.runner, "inlines", False)
            run_context = await build_context(context, session.scene, inlines=inlines)
            generator = self.runner.run(run_context, HostApi(session))
            choice = ToolChoiceCheck(context.request)
            # the execution keeps the run's own deadline
            deadline_at = session.scene.deadline_at if self.binding.deadline_s else None
            async with aclosing(_catch_errors(generator, session, deadline_at)) as results:
                async for result in results:
                    before = _new_facts(session)
                    for fact in (*before, *await stream.convert(result), *_new_facts(session)):
                        await choice.count_call(fact)
                        yield fact
                    if stream.ended:
                        break
            for fact in (*_new_facts(session), *await stream.finish_builders()):
                await choice.count_call(fact)
                yield fact
            if not session.approvals:
                choice.check(session.called_tools)
            for fact in await stream.finish():
                yield fact
        finally:
            gateway.unregister(session)

    async def _open_session(self, context: RunContext, host: RunHost) -> Session:
        manifest, binding = self.runner.manifest, self.binding
        bound_host = host.for_runner(grants.tool_names(manifest, binding), await _tools(context))
        models = await _find_routable(grants.model_names(manifest, binding, self.route.name))
        scene = Scene(
            run_id=context.run_id,
            user_id=context.user_id,
            thread_id=context.thread_id,
            thread_seq=self.thread_seq,
            identity=identity_of(manifest.id),
            manifest=manifest,
            binding=binding,
            resources=grants.resources(
                manifest,
                binding,
                models=models,
                tools=bound_host.granted_tools,
                bases=await knowledge.bases_in_use.get(),
            ),
            deadline_at=runner_deadline(binding, context.deadline_at_ms),
            model=self.route.name,
            system=context.system,
            actions=frozenset(grants.platform_actions(manifest, binding)),
            subject_id=context.run_id.hex,
            most_calls=context.request.tool_choice.most_calls,
            input_seq=request_messages.input_seq(context, self.thread_seq),
            unstored_rows=request_messages.unstored_rows(context, self.thread_seq),
        )
        return Session(scene, bound_host)


async def _tools(context: RunContext) -> tuple[Tool, ...]:
    """Return the tools that the binding may grant: those that the request allows.

    A text run (002) has no parameters for tools, and so allows all.
    """
    request = context.request
    if request.dialect == "text":
        return await find_granted(None, user_id=context.user_id)
    return await find_for_request(request, user_id=context.user_id)


async def _find_routable(names: list[str]) -> list[tuple[str, str]]:
    """Return (name, provider) of the models that can be called now."""
    found: list[tuple[str, str]] = []
    for name in names:
        try:
            route = await routing.route(name)
        except ParleyError:
            continue
        if route.candidates[0].dialect != "demo":  # the offline model answers by its own runner
            found.append((route.name, route.candidates[0].provider))
    return found


def _new_facts(session: Session) -> list[Fact]:
    """Return and clear the facts of Host calls."""
    facts, session.facts = session.facts, []
    return facts


async def _catch_errors(
    generator: AsyncGenerator[Any], session: Session, deadline_at: float | None
) -> AsyncGenerator[Any]:
    """Yield a runner's results; convert its exceptions into failures without internal details.

    When the run stops for an approval, the runner is cancelled; results that it had yielded count.
    """
    left = _MAX_PENDING
    async with aclosing(generator) as results:
        while left:
            left -= session.is_stopping
            try:
                result = await _next_result(results, session, deadline_at)
            except (RunFailure, ParleyError, asyncio.CancelledError):
                raise
            except HostRefusal as refusal:
                raise RunFailure(
                    f"runner.{refusal.code}", refusal.message, retryable=refusal.retryable
                ) from None
            except Exception:  # a runner is the code of others
                log.exception("runner failed")
                raise RunFailure("runner.exception", "The runner failed.") from None
            if result is None:
                return
            yield result


async def _next_result(results: AsyncGenerator[Any], session: Session, deadline_at: float | None) -> Any:
    """Return the next result; None at the runner's end, or when the run stops."""
    left = None if deadline_at is None else max(0.0, deadline_at - time.time())
    with session.limit_wait(left) as patience:
        try:
            async with patience:
                return await anext(results, None)
        except Exception as problem:
            if session.is_stopping:
                return None
            if isinstance(problem, TimeoutError) and patience.expired():
                raise RunFailure("runner.timeout", "Runner timed out", retryable=True) from None
            raise
