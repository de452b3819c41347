"""What every tool is: a named coroutine with a schema, and one way to fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from conversations.events import ToolKind


@dataclass(frozen=True, slots=True)
class ToolContext:
    """For whom a tool is called; a tool that needs to know asks `tool_context()`."""

    run_id: UUID
    thread_id: UUID
    user_id: UUID
    call_id: str


_context: ContextVar[ToolContext] = ContextVar("tool_context")


def tool_context() -> ToolContext:
    """The call that is being made. LookupError outside one."""
    return _context.get()


def in_context(context: ToolContext) -> None:
    """Say for whom this task calls a tool."""
    _context.set(context)


class ToolFailure(Exception):
    """A tool call that gave no result; `code` and `message` are our words and may reach a client."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.message = message
        super().__init__(f"{code}: {message}")


@dataclass(frozen=True, slots=True)
class Tool:
    """One thing a runner may call.

    `call` takes the arguments described by `parameters` (a JSON Schema) and returns a JSON object or
    raises ToolFailure. An `idempotent` tool may be called again after a crash (promise P8). A call of
    one that `requires_approval` waits for it, `approval_ttl_s` seconds (None: APPROVAL_TTL_S).
    `annotations` are an MCP server's own hints about it.
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
