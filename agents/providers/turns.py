"""Messages as turns of one side after the other, for the wires that take no two of the same side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Part = dict[str, Any]
Turn = tuple[str, list[Part]]


def merged(said: Iterable[Turn], *, opening: Part) -> list[Turn]:
    """Turns of (side, parts), those of the same side together and empty ones left out.

    The first turn is the user's: where the conversation was cut before it, `opening` is it.
    """
    turns: list[Turn] = []
    for side, parts in said:
        if not parts:
            continue
        if turns and turns[-1][0] == side:
            turns[-1][1].extend(parts)
        else:
            turns.append((side, list(parts)))
    return turns if turns and turns[0][0] == "user" else [("user", [opening]), *turns]
