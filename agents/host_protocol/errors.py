"""Refusals of the Host: `AgentAPIError` of the seed's section 8."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

Code = Literal[
    "unauthorized",
    "not_found",
    "deadline_exceeded",
    "payload_too_large",
    "rate_limited",
    "invalid_argument",
    "runtime_error",
]
RETRYABLE: Final = frozenset(("rate_limited", "runtime_error"))


class AgentAPIError(Struct, frozen=True):
    """A refusal as a value of the wire."""

    code: str
    message: str
    retryable: bool = False
    details: dict[str, Any] = {}


class HostRefusal(Exception):
    """The Host refuses a call; the message is Parley's own and may reach a runner."""

    def __init__(
        self, code: Code, message: str, *, retryable: bool | None = None, **details: Any
    ) -> None:
        super().__init__(message)
        self.code: Code = code
        self.message = message
        self.retryable = code in RETRYABLE if retryable is None else retryable
        self.details = details

    def wire(self) -> AgentAPIError:
        """Return the refusal in the seed's form."""
        return AgentAPIError(self.code, self.message, self.retryable, self.details)


def unauthorized(message: str, **details: Any) -> HostRefusal:
    return HostRefusal("unauthorized", message, **details)


def not_found(message: str, **details: Any) -> HostRefusal:
    return HostRefusal("not_found", message, **details)


def invalid(message: str, **details: Any) -> HostRefusal:
    return HostRefusal("invalid_argument", message, **details)


def too_large(message: str, **details: Any) -> HostRefusal:
    return HostRefusal("payload_too_large", message, **details)
