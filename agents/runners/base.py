"""What a runner is given and what it gives: the contract between Host and runners.

A runner is an async generator of facts. It may say anything in any order; the execution around it
numbers, stores and closes. It reaches the world through its Host only.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Literal, Protocol
from uuid import UUID

from msgspec import Struct

from agents.providers.base import ModelEvent
from agents.requests import RunRequest, ToolUse
from conversations.events import Fact, Problem


class ChatMessage(Struct, frozen=True):
    """One message as a model sees it."""

    role: Literal["system", "user", "assistant"]
    content: str


class ToolOutcome(Struct, frozen=True):
    """What came of a tool call: a result or a problem, and how long it took."""

    use: ToolUse
    elapsed_ms: int
    result: dict[str, Any] | None = None
    problem: Problem | None = None


class RunContext(Struct, frozen=True):
    """Everything a runner may know about its run."""

    run_id: UUID
    thread_id: UUID
    user_id: UUID
    attempt: int
    deadline_at_ms: int
    request: RunRequest
    system: str
    history: tuple[ChatMessage, ...]
    findings: tuple[ToolOutcome, ...]

    @property
    def question(self) -> str:
        """The text of the newest user message."""
        said = (m.content for m in reversed(self.request.messages) if m.role == "user")
        return next(said, "")

    @property
    def message_id(self) -> str:
        """The id of the run's answer (specs/run-agent-input.md §3: `{stage}-{run_id}`)."""
        return f"execution-{self.run_id.hex}"


class Host(Protocol):
    """The only capabilities a runner may call."""

    async def call_tool(self, use: ToolUse) -> ToolOutcome:
        """Call a server tool; a failure is an outcome, never an exception."""
        ...

    def stream_model(self, messages: tuple[ChatMessage, ...]) -> AsyncGenerator[ModelEvent]:
        """Stream the run's model, with retries and fallbacks before the first delta.

        Raises RunFailure with a `provider_…` code when no candidate answers or the stream breaks.
        """
        ...


class Runner(Protocol):
    """Produces the events of a run."""

    def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact]:
        """The run's facts; the last is `RunCompleted` (added if missing) or RunFailure is raised."""
        ...


class RunFailure(Exception):
    """The run cannot go on; the code and the message are for the client."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
