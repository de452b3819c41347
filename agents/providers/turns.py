"""Messages as alternating turns, for the wires that accept no two in a row from the same side."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Part = dict[str, Any]
Turn = tuple[str, list[Part]]


def merge_turns(turns: Iterable[Turn], *, opening: Part) -> list[Turn]:
    """Return turns of (side, parts), with those of the same side joined and empty ones left out.

    The first turn is the user's: if the conversation was cut before it, `opening` is that turn.
    """
    merged: list[Turn] = []
    for side, parts in turns:
        if not parts:
            continue
        if merged and merged[-1][0] == side:
            merged[-1][1].extend(parts)
        else:
            merged.append((side, list(parts)))
    return merged if merged and merged[0][0] == "user" else [("user", [opening]), *merged]
