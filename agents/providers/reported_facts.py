"""What a provider says about itself, as far as a run's row can hold it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agents.providers.base import Finished, FinishReason, ReasoningBlock, ToolCall
from conversations.events import Usage

Reasons = Mapping[str, FinishReason]
LONGEST_NAME: Final = 128
_LONGEST_REASON: Final = 64
_LARGEST_COUNT: Final = 2**31 - 1


def count(*given: int | None) -> int:
    """The sum of a provider's counts; what it did not say is 0."""
    return min(sum(max(some or 0, 0) for some in given), _LARGEST_COUNT)


def finished(
    given: str,
    meanings: Reasons,
    usage: Usage,
    calls: tuple[ToolCall, ...] = (),
    reasoning: tuple[ReasoningBlock, ...] = (),
) -> Finished:
    """The end of a stream whose provider gave this reason, by what its wire's reasons mean."""
    word = given.replace("\x00", "")[:_LONGEST_REASON]
    reason = meanings.get(word, word or "stop")
    return Finished(reason, usage, calls, reasoning, "" if word == reason else word)
