"""The contract of a hosted runner in any process: a manifest, and a run that yields results."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol, runtime_checkable

from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import RunnerManifest
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from conversations.events import Fact


class BuilderEvent(Protocol):
    """An object of the Agent API, made by its builders (seed 004; `agents.dialects.agent_api`)."""

    object: str

    def model_dump(self, *, mode: Literal["json"]) -> dict[str, Any]: ...


@runtime_checkable
class HostedRunner(Protocol):
    """A runner of the entry point group `parley.runners`, or a plugin runtime's runner.

    The Host cancels the generator (CancelledError) when the run is cancelled or its deadline passes, and
    writes the terminal event itself; a remote runner's proxy forwards the cancellation to its runtime.
    """

    @property
    def manifest(self) -> RunnerManifest: ...

    def run(
        self, context: AgentRunContext, host: HostApi
    ) -> AsyncGenerator[RunResult | Fact | BuilderEvent]:
        """Yield the run's results; the last is `run.completed` or `run.failed` (added if missing)."""
        ...
