"""A runner of a plugin runtime, for the Host."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

import msgspec
import structlog

from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.results import STATE_UPDATED, RunResult
from agents.host_protocol.run_context import AgentRunContext
from agents.host_protocol.runner_id import plugin_runner_id
from agents.runners.base import RunFailure
from agents.runtimes.plugins.channel import Overrun, Refused
from agents.runtimes.plugins.connection import RuntimeLink, links
from agents.runtimes.plugins.envelopes import TooLarge
from agents.runtimes.plugins.transports import PipeClosed

log = structlog.get_logger(__name__)

_NO_DEADLINE_S: Final = 300.0
_MAX_INVALID: Final = 100


class PluginRunner:
    """One discovered runner, on the connection that lists it."""

    snapshots = True  # LangBot's Host replaces each delta by the next
    inlines = True  # and sends a plugin the files of a message, which its API cannot fetch
    late_s = 1.0  # the released runtime writes documents in OS threads, which may swap their order

    def __init__(self, manifest: RunnerManifest, link: RuntimeLink) -> None:
        self.manifest = manifest
        self._link = link

    async def run(self, context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        """Yield the run's results; raise RunFailure `runner.unavailable`, `runner.refused`, ….

        The plugin's own requests reach the Host by the run's id, not through `host`.
        """
        runner_id = plugin_runner_id(self.manifest.id)
        deadline_at = context.runtime.deadline_at
        idle_s = max(0.0, deadline_at - time.time()) + 1.0 if deadline_at else _NO_DEADLINE_S
        invalid = 0
        try:
            results = self._link.run(runner_id, context.run_id, context, idle_s=idle_s)
            async with aclosing(results) as parts:
                async for one in parts:
                    result = _result(one, context.run_id, lenient=self._link.is_lenient)
                    if result is not None:
                        yield result
                        continue
                    invalid += 1
                    if invalid > _MAX_INVALID:
                        raise RunFailure("runner.protocol_error", "The plugin's results are no results.")
        except (PipeClosed, Refused, Overrun, TooLarge, TimeoutError) as error:
            raise failure(error) from None


def reachable_runners() -> tuple[PluginRunner, ...]:
    """Return the runners that this process can reach; of several with one id, the first by name."""
    found: dict[str, PluginRunner] = {}
    for link in links():
        for manifest in link.runners.values():
            found.setdefault(manifest.id, PluginRunner(manifest, link))
    return tuple(found.values())


def failure(error: Exception) -> RunFailure:
    """Return the failure, for clients, of a run whose connection failed."""
    match error:
        case PipeClosed():
            return RunFailure(
                "runner.unavailable", "The connection to the plugin runtime broke.", retryable=True
            )
        case TimeoutError():
            return RunFailure("runner.timeout", "The plugin runtime did not answer.", retryable=True)
        case TooLarge():
            return RunFailure("runner.input_too_large", "The run's input is larger than 16 MiB.")
        case Overrun():
            return RunFailure("runner.overrun", "The plugin's results came faster than they were taken.")
    log.warning("plugin runtime refused a run", why=str(error)[:500])
    return RunFailure("runner.refused", "The plugin runtime refused the run.", retryable=True)


def _result(raw: dict[str, Any], run_id: str, *, lenient: bool) -> RunResult | None:
    """Return a result of this run; None, with a warning, for anything else (H16).

    The first generation's Host ends a run whose `state.updated` has no scope or key; the released one
    drops that result (H20).
    """
    try:
        result = msgspec.convert(raw, RunResult)
    except msgspec.ValidationError as error:
        log.warning("plugin result passed over", run_id=run_id, why=str(error)[:200])
        return None
    if result.run_id != run_id:
        log.warning("plugin result of another run passed over", run_id=run_id)
        return None
    if lenient and result.type == STATE_UPDATED and not _names_state(result.data):
        log.warning("state.updated dropped", run_id=run_id)
        return None
    return result


def _names_state(data: dict[str, Any]) -> bool:
    scope, key = data.get("scope"), data.get("key")
    return isinstance(scope, str) and isinstance(key, str) and bool(scope and key)
