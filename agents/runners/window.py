"""The newest part of a conversation that fits a model's context, never half of a tool call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from agents.providers.base import ChatMessage
from agents.runners.tokens import of_messages

Unit = tuple[ChatMessage, ...]
_LEAST_ANSWER: Final = 256


class Window(Struct, frozen=True):
    """The messages that are kept, in order, and the number of older ones that were cut."""

    messages: tuple[ChatMessage, ...]
    cut: int = 0


def fit_window(messages: Sequence[ChatMessage], budget: int, *, needed: int = 1) -> Window:
    """Return the newest messages that come to at most `budget` tokens.

    The last `needed` messages stay at any cost, and so do system messages; a call and its answers stay
    or go together. Nothing older than the first message that does not fit is kept.
    """
    whole = list(split_units(messages))
    kept: list[Unit] = []
    left = budget - of_messages(one for unit in whole if _is_system(unit) for one in unit)
    seen, open_ = 0, True
    for unit in reversed(whole):
        if _is_system(unit):
            kept.append(unit)
            continue
        cost = of_messages(unit)
        must = seen < max(needed, 1)
        open_ = open_ and (must or cost <= left)
        if must or open_:
            kept.append(unit)
            left -= cost
        seen += len(unit)
    kept_messages = tuple(one for unit in reversed(kept) for one in unit)
    return Window(kept_messages, len(messages) - len(kept_messages))


def split_units(messages: Sequence[ChatMessage]) -> Iterator[Unit]:
    """Yield the messages in units that belong together: a message that calls tools, and the answers."""
    unit: list[ChatMessage] = []
    for message in messages:
        if unit and message.role == "tool":
            unit.append(message)
            continue
        if unit:
            yield tuple(unit)
        unit = [message]
    if unit:
        yield tuple(unit)


def history_budget(size: int, *, answer: int | None, fixed: int) -> int:
    """Return the tokens for earlier messages, in a context that also holds `fixed` ones and the answer.

    A model whose answers have no limit gets a quarter of its context for one.
    """
    room = min(answer or size // 4, size // 2)
    return max(0, size - max(room, _LEAST_ANSWER) - fixed)


def _is_system(unit: Unit) -> bool:
    return unit[0].role == "system"
