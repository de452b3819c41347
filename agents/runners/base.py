"""The contract between Host and runners: what a runner receives and what it produces.

A runner is an async generator of facts. It may yield anything in any order; the execution around it
numbers, stores and closes. It reaches the world only through its Host.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime
from typing import Any, Final, Protocol
from uuid import UUID

from msgspec import Struct

from agents.providers.base import ChatMessage, ImagePart, ModelEvent, ToolSpec
from agents.requests import RunRequest, ToolUse
from conversations import events
from conversations.events import Fact, Problem, ToolKind
from conversations.log.deltas import Deltas

_NAME_LENGTH: Final = 64

CHINESE: Final = re.compile(r"[\u3400-\u9fff]")


class ToolOutcome(Struct, frozen=True):
    """The outcome of a tool call: a result or a problem, and its duration.

    If a result is too large for a model, the `artifact` holds all of it, and the result its head.
    """

    use: ToolUse
    elapsed_ms: int
    result: dict[str, Any] | None = None
    problem: Problem | None = None
    artifact: events.ArtifactCreated | None = None


class Approval(Struct, frozen=True):
    """The approval that a call of the model needs, and until when it can be given."""

    id: UUID
    call_id: str
    use: ToolUse
    kind: ToolKind
    parameters: dict[str, Any]
    expires_at: datetime
    server: str = ""

    @property
    def facts(self) -> tuple[Fact, Fact]:
        """The call, which stays open, and the request for its approval."""
        use = self.use
        target = {"id": self.id.hex, "tool_call_id": self.call_id, "tool_name": use.name}
        return (
            events.ToolCallStarted(self.call_id, use.name, use.arguments, self.kind, self.server),
            events.ActionRequested("tool.approve", target, {"arguments": use.arguments}),
        )

    @property
    def interrupt(self) -> dict[str, Any]:
        """The entry for it in the run's end, in AG-UI's shape (specs/ag-ui.md §1.1)."""
        answer = {
            "approved": {"type": "boolean"},
            "arguments": self.parameters,
            "reason": {"type": "string"},
        }
        return {
            "id": self.id.hex,
            "reason": "tool_call",
            "message": f"May the tool {self.use.name} be called?",
            "toolCallId": self.call_id,
            "responseSchema": {"type": "object", "properties": answer, "required": ["approved"]},
            "expiresAt": self.expires_at.isoformat(),
            "metadata": {"tool_name": self.use.name, "arguments": self.use.arguments},
        }


class RunContext(Struct, frozen=True):
    """Everything a runner may know about its run.

    `summary` is a short form of the older part of the conversation, if a message contains one.
    `shows_calls`: calls of `parley.show` are events too, not only the cards that they make.
    """

    run_id: UUID
    thread_id: UUID
    user_id: UUID
    attempt: int
    deadline_at_ms: int
    request: RunRequest
    system: str
    conversation: tuple[ChatMessage, ...]
    findings: tuple[ToolOutcome, ...]
    state: Any = None
    shows_calls: bool = False
    summary: str = ""

    @property
    def question(self) -> str:
        """The text of the newest user message."""
        return self._newest.content

    @property
    def images(self) -> tuple[ImagePart, ...]:
        """The images of the newest user message."""
        return self._newest.images

    @property
    def _newest(self) -> ChatMessage:
        """The newest user message; an empty one if there is none."""
        questions = (one for one in reversed(self.conversation) if one.role == "user")
        return next(questions, ChatMessage("user", ""))

    @property
    def message_id(self) -> str:
        """The id of the run's answer (specs/run-agent-input.md §3: `{stage}-{run_id}`)."""
        return f"execution-{self.run_id.hex}"


class Host(Protocol):
    """The only capabilities a runner may call."""

    @property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The tools of ours that the run's model may call."""

    def tool_kind(self, name: str) -> ToolKind:
        """Return the kind of tool that a call of this name reaches."""

    def tool_server(self, name: str) -> str:
        """Return the label of the MCP server that a call of this name reaches; "" for any other tool."""

    async def call_tool(self, use: ToolUse, *, call_id: str = "") -> ToolOutcome:
        """Call any server tool for the request; a failure is an outcome, never an exception."""

    async def call_granted(self, use: ToolUse, *, call_id: str) -> ToolOutcome:
        """Call one of `tools` for the model; any other is refused (`tool_not_offered`).

        If it is not idempotent, it begins only after its call is in the log (promise P8).
        """

    async def approval_for(self, use: ToolUse, *, call_id: str) -> Approval | None:
        """Return the approval that this call of the model needs; None if it may be made at once."""

    async def may_show(self) -> bool:
        """Return whether a card may be shown to the run's user."""

    @property
    def sees(self) -> bool:
        """Whether the run's model takes images."""

    async def load_image(self, image: ImagePart) -> bytes | None:
        """Return the bytes of a stored image; None if it is gone or too large."""

    def stream_model(
        self,
        messages: tuple[ChatMessage, ...],
        tools: tuple[ToolSpec, ...] = (),
        *,
        raw: bool = False,
        message_id: str = "",
        must_call: str | None = None,
        one_by_one: bool = False,
    ) -> AsyncGenerator[Sequence[ModelEvent]]:
        """Stream the run's model, by what arrives together, with retries and fallbacks before the first
        delta.

        `must_call` is the tool that it must call now, "" any of them; `one_by_one`: never two in one
        step, if the provider has an option for that. With `raw` the unchanged stream of the provider is
        yielded too, if its client can. Images are loaded for a model that sees and left out for any
        other. The Host counts the tokens and costs of the call, for the message `message_id`. Raise
        RunFailure with a `provider_…` code if no candidate answers or the stream breaks, and
        `budget_exceeded` before a call that no budget covers.
        """


class Runner(Protocol):
    """A producer of the events of a run."""

    def run(self, context: RunContext, host: Host) -> AsyncGenerator[Fact | Deltas]:
        """Yield the run's facts, the last a `RunCompleted` (added if missing), or raise RunFailure.

        Deltas that arrived together may be yielded together.
        """


def name_of(runner: Runner) -> str:
    """Return the runner's name for a run's row: its `name`, else that of its class."""
    name = getattr(runner, "name", "") or type(runner).__name__.removesuffix("Runner").lower()
    return str(name)[:_NAME_LENGTH]


class RunFailure(Exception):
    """The run cannot go on; the code and the message are for the client."""

    def __init__(self, code: str, message: str, *, retryable: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
