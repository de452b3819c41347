"""Facts that a provider reports, limited to what a run's row can hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agents.providers.base import Finished, FinishReason, ReasoningBlock, ToolCall
from conversations.events import Usage

Reasons = Mapping[str, FinishReason]
LONGEST_NAME: Final = 128
_LONGEST_REASON: Final = 64
_LARGEST_COUNT: Final = 2**31 - 1


def sum_counts(*counts: int | None) -> int:
    """Return the sum of a provider's counts; missing ones are 0."""
    return min(sum(max(some or 0, 0) for some in counts), _LARGEST_COUNT)


def finish(
    reason_sent: str,
    meanings: Reasons,
    usage: Usage,
    calls: tuple[ToolCall, ...] = (),
    reasoning: tuple[ReasoningBlock, ...] = (),
) -> Finished:
    """Return the end of a stream, with the wire's reason translated by `meanings`."""
    word = reason_sent.replace("\x00", "")[:_LONGEST_REASON]
    reason = meanings.get(word, word or "stop")
    return Finished(reason, usage, calls, reasoning, "" if word == reason else word)
