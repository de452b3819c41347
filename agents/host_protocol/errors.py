"""Refusals of the Host: `AgentAPIError` of the seed's section 8."""

from __future__ import annotations

from functools import partial
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


unauthorized = partial(HostRefusal, "unauthorized")
not_found = partial(HostRefusal, "not_found")
invalid = partial(HostRefusal, "invalid_argument")
too_large = partial(HostRefusal, "payload_too_large")
