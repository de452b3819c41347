"""Messages as alternating turns, for the wires that accept no two in a row from the same side."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agents.providers.base import ChatMessage

Part = dict[str, Any]
Turn = tuple[str, list[Part]]


def make_turns(
    messages: Iterable[ChatMessage],
    parts_of: Callable[[ChatMessage], list[Part]],
    *,
    model: str,
    opening: Part,
) -> list[Turn]:
    """Return turns of (side, parts), the model's side named `model`; empty messages are left out.

    System messages are no turns. The first turn is the user's: if the conversation was cut before it,
    `opening` is that turn.
    """
    turns: list[Turn] = []
    for message in messages:
        if message.role == "system" or not (parts := parts_of(message)):
            continue
        side = model if message.role == "assistant" else "user"
        if turns and turns[-1][0] == side:
            turns[-1][1].extend(parts)
        else:
            turns.append((side, list(parts)))
    return turns if turns and turns[0][0] == "user" else [("user", [opening]), *turns]
