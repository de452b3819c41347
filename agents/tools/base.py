"""The type of all tools: a named coroutine with a schema, and one exception for failures."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from conversations.events import ToolKind


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The run and the user of a tool's call; a tool can read it by `tool_context()`."""

    run_id: UUID
    thread_id: UUID
    user_id: UUID
    call_id: str


_context: ContextVar[ToolContext] = ContextVar("tool_context")


def tool_context() -> ToolContext:
    """Return the context of the current call; raise LookupError outside a call."""
    return _context.get()


def in_context(context: ToolContext) -> None:
    """Set the context of this task's calls."""
    _context.set(context)


class ToolFailure(Exception):
    """A tool call without a result; `code` and `message` are Parley's own and may reach a client."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that a runner may call.

    `call` takes the arguments described by `parameters` (a JSON Schema) and returns a JSON object or
    raises ToolFailure. An `idempotent` tool may be called again after a crash (promise P8). A call of
    a tool with `requires_approval` waits for its approval, `approval_ttl_s` seconds (None:
    APPROVAL_TTL_S). `annotations` are an MCP server's own hints about the tool.
    """

    name: str
    description: str
    parameters: dict[str, Any]
    call: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
    idempotent: bool
    timeout_s: float
    kind: ToolKind = "function"
    requires_approval: bool = False
    approval_ttl_s: int | None = None
    server_label: str = ""
    annotations: dict[str, Any] | None = None
