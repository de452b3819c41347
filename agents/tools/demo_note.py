"""A harmless tool that waits for an approval, so that approvals can be tried without a key.

Only the offline model calls it; it is not offered to other models.
"""

from __future__ import annotations

from typing import Any, Final

from agents.tools.arguments import closed_schema
from agents.tools.base import Tool


async def note(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the note, without any other effect."""
    return {"noted": arguments["text"]}


TOOL: Final = Tool(
    name="demo.note",
    description="Takes a note and forgets it. Each call must be approved.",
    parameters=closed_schema({"text": {"type": "string", "maxLength": 2000}}, "text"),
    call=note,
    idempotent=False,
    timeout_s=2,
    requires_approval=True,
)
