"""The base of the readers of answers; what they report is limited to what a run's row can hold."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Final

from agents.providers.base import Finished, FinishReason, ModelEvent, ReasoningBlock, ToolCall
from agents.providers.tool_calls import CallAssembler
from agents.providers.tool_names import ToolNames
from conversations.events import Usage

Reasons = Mapping[str, FinishReason]
_LONGEST_REASON: Final = 64
_LARGEST_COUNT: Final = 2**31 - 1


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

    def regular_end(self, calls: tuple[ToolCall, ...]) -> FinishReason:
        """Return the meaning of an end for which the wire has one word: calls, a refusal, an answer."""
        return "tool_calls" if calls else "refusal" if self.refused else "stop"

    def finish(
        self,
        reason_sent: str,
        meanings: Reasons,
        calls: tuple[ToolCall, ...],
        reasoning: tuple[ReasoningBlock, ...],
    ) -> Finished:
        """Return the end of the stream, with the wire's reason translated by `meanings`."""
        word = reason_sent.replace("\x00", "")[:_LONGEST_REASON]
        reason = meanings.get(word, word or "stop")
        return Finished(reason, self.usage, calls, reasoning, "" if word == reason else word)


def sum_counts(*counts: int | None) -> int:
    """Return the sum of a provider's counts; missing and negative ones are 0."""
    total = 0
    for some in counts:
        if some and some > 0:
            total += some
    return min(total, _LARGEST_COUNT)
