"""The hints of a card that a model shows by `parley.show`: their faults and their plain words."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from conversations.cards.card_compiler import compile_ui_schema
from conversations.cards.ui_hints import UiHints

SHOW: Final = "parley.show"


def find_fault(hints: dict[str, Any]) -> str:
    """Return why these hints make no card, in words that a model can act on; "" if they make one."""
    try:
        msgspec.convert(hints, UiHints)
    except msgspec.ValidationError as error:
        return f"The card cannot be shown: {error}."
    if compile_ui_schema(hints) is None:
        return "The card cannot be shown: it is empty or too large."
    return ""


def describe_card(hints: dict[str, Any]) -> str:
    """Return a card in plain words, for clients that cannot draw it and a model without other words."""
    card = msgspec.convert(hints, UiHints)
    lines = [card.title, card.subtitle, card.body]
    lines += [f"{field.label}: {field.value}" for field in card.fields]
    lines += [f"- {item.title}{item.description and f': {item.description}'}" for item in card.items]
    if card.table:
        lines += [" | ".join(card.table.columns), *map(" | ".join, card.table.rows)]
    lines += [image.alt for image in card.images]
    return "\n".join(filter(None, lines)) or "…"
