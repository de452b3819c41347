"""A harmless tool that waits for approval, so that the way there and back can be tried without a key.

Only the offline model calls it; no other model is offered it.
"""

from __future__ import annotations

from typing import Any, Final

from agents.tools.base import Tool


async def note(arguments: dict[str, Any]) -> dict[str, Any]:
    """Nothing happens; the note is given back."""
    return {"noted": arguments["text"]}


TOOL: Final = Tool(
    name="demo.note",
    description="Takes a note and forgets it. Each call must be approved.",
    parameters={
        "type": "object",
        "properties": {"text": {"type": "string", "maxLength": 2000}},
        "required": ["text"],
        "additionalProperties": False,
    },
    call=note,
    idempotent=False,
    timeout_s=2,
    requires_approval=True,
)
