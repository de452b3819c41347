"""The base of the readers of answers: what every wire's reader keeps while it reads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from agents.providers.base import Finished, FinishReason, ModelEvent, ToolCall
from agents.providers.tool_calls import CallAssembler
from agents.providers.tool_names import ToolNames
from conversations.events import Usage


class Reader(ABC):
    """The reader of one answer, an SSE event at a time.

    `done` says that the stream has no more to read, `kind` is the wire's name of the event that was read
    last, `reason` the wire's word for the reason of the end ("" until it was sent), and `refused` says
    that the model refuses to answer.
    """

    def __init__(self, names: ToolNames) -> None:
        self.done = False
        self.kind: str | None = None
        self.reason = ""
        self.refused = False
        self.calls = CallAssembler(names)

    def regular_end(self, calls: tuple[ToolCall, ...]) -> FinishReason:
        """Return the meaning of an end for which the wire has one word: calls, a refusal, an answer."""
        return "tool_calls" if calls else "refusal" if self.refused else "stop"

    @property
    @abstractmethod
    def usage(self) -> Usage:
        """The provider's counts so far."""

    @abstractmethod
    def read(self, data: bytes) -> Sequence[ModelEvent]:
        """Return the contents of an event. Raise ProviderError if it is an error, or unreadable."""

    @abstractmethod
    def end(self) -> Finished:
        """Return the answer's end; raise ProviderError `provider_stream_interrupted` if cut off."""
