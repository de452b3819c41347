"""`parley.show`: the reserved tool by which a model shows a card (specs/run-agent-input.md §5).

The model-driven runner never calls it: the arguments become the `ui_hints` of the message that the model
is writing. A model has the tool if a tool policy enables it, or if a request or binding names it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agents.tools.base import Tool, ToolFailure
from conversations.cards.model_hints import SHOW, find_fault
from conversations.cards.ui_hints import UiHints


async def show(hints: dict[str, Any]) -> dict[str, Any]:
    """Return the reply for other runners."""
    if fault := find_fault(hints):
        raise ToolFailure("invalid_arguments", fault)
    return {"shown": True}


def _schema() -> dict[str, Any]:
    parts = dict(msgspec.json.schema(UiHints)["$defs"])
    schema: dict[str, Any] = parts.pop("UiHints")
    return schema | {"$defs": parts}


TOOL: Final = Tool(
    name=SHOW,
    description="Shows the user a card beside your words: title, text, fields, a list, a table, images, "
    "progress, buttons. Say in words what the card does not.",
    parameters=_schema(),
    call=show,
    idempotent=True,
    timeout_s=2,
)
