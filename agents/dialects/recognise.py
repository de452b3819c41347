"""One URL, many dialects: which one a body speaks (DESIGN §9)."""

from __future__ import annotations

from typing import Any, Final

from agents.dialects import text
from agents.dialects.base import Dialect
from config.errors import InvalidRequest

DIALECTS: Final[dict[str, Dialect]] = {text.NAME: text}
_KEYS: Final[dict[str, frozenset[str]]] = {text.NAME: frozenset({"model", "text"})}


def dialect_named(name: str) -> Dialect:
    """The dialect of this name. InvalidRequest names the known ones."""
    found = DIALECTS.get(name)
    if found is None:
        raise InvalidRequest(
            f"There is no such dialect; there are: {', '.join(DIALECTS)}.", code="unknown_dialect"
        )
    return found


def recognise(body: dict[str, Any]) -> Dialect:
    """The dialect whose keys the body has. InvalidRequest when none or several have."""
    speaking = [name for name, keys in _KEYS.items() if keys & body.keys()]
    if len(speaking) == 1:
        return DIALECTS[speaking[0]]
    raise InvalidRequest(
        "The body is no run that we know: send model and text (text run). ?dialect= forces one.",
        code="unknown_dialect",
    )
