"""What every tool is: a named coroutine with a schema, and one way to fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any


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
    raises ToolFailure. An `idempotent` tool may be called again after a crash (promise P8).
    """

    name: str
    description: str
    parameters: dict[str, Any]
    call: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
    idempotent: bool
    timeout_s: float
