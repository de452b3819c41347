"""What every provider client says, whatever its wire: a few frozen events and one error."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, Protocol

from msgspec import Struct

from conversations.events import Usage


class Opened(Struct, frozen=True):
    """The provider accepted the request and will stream."""

    endpoint_id: int
    provider: str
    model: str
    upstream_request_id: str | None = None


class TextDelta(Struct, frozen=True):
    text: str


class ReasoningText(Struct, frozen=True):
    text: str


class ToolCall(Struct, frozen=True):
    """A call that the model asks for, put together from its pieces; arguments are JSON text."""

    id: str
    name: str
    arguments: str


class Finished(Struct, frozen=True):
    """The provider's stream ended as it should."""

    finish_reason: str
    usage: Usage
    tool_calls: tuple[ToolCall, ...] = ()


ModelEvent = Opened | TextDelta | ReasoningText | Finished


class ModelRequest(Struct, frozen=True):
    """What to ask of which model; `messages` are `{role, content}` values in order."""

    messages: tuple[Any, ...]
    temperature: float | None = None
    max_tokens: int | None = None


class Target(Protocol):
    """Where to ask: what `prompts.routing.Candidate` has."""

    @property
    def endpoint_id(self) -> int: ...
    @property
    def provider(self) -> str: ...
    @property
    def dialect(self) -> str: ...
    @property
    def base_url(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def key(self) -> str: ...


class ProviderClient(Protocol):
    """One provider wire."""

    def __call__(self, target: Target, request: ModelRequest) -> AsyncGenerator[ModelEvent]: ...


class ProviderError(Exception):
    """The provider refused or broke off. The message is ours: no body, address or key in it."""

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s
