"""A stored message as history shows it: `HistoryMessage` of specs/run-agent-input.md §4.

What is compiled or signed here is never stored: a card is compiled and a URL signed at every reading.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from conversations import attachments
from conversations.blocks import arranged
from conversations.ui_schema import ui_schema_for

Content = Literal["text", "blocks"]

# Only what is shown leaves the database: a tool's result may be many times its message.
RELEVANT: Final = """CASE
    WHEN role = 'user' AND metadata ? 'content_layout' THEN jsonb_build_object(
        'files', metadata -> 'user_message_attachments', 'layout', metadata -> 'content_layout')
    WHEN role = 'user' THEN metadata -> 'user_message_attachments'
    WHEN metadata #> '{worker_agent_output,ui_hints}' IS NOT NULL
        OR metadata #> '{tool_agent_output,ui_hints}' IS NOT NULL
    THEN metadata #- '{worker_agent_output,answer}' #- '{tool_agent_output,result}'
END"""


class Stored(NamedTuple):
    """The columns of a message; `relevant` is a user's attachments (with the layout, if there is one),
    or the metadata with hints."""

    message_id: UUID
    client_id: str | None
    seq: int
    role: str
    content: str
    created_at: datetime
    relevant: str | None


def shown(message: Stored, content: Content) -> dict[str, Any]:
    """The message as JSON: users' carry `url`, the first of their files; the others `uiSchema`."""
    said: dict[str, Any] = {
        "id": message.client_id or str(message.message_id),
        "seq": message.seq,
        "role": message.role,
        "content": message.content,
    }
    if message.role == "user":
        files, layout = _sent(message)
        said["url"] = files[0]["url"] if files else None
        if content == "blocks":
            said["content"] = _blocks(message.content, files, layout)
    else:
        said["uiSchema"] = _card(message)
    return said | {"timestamp": timestamp(message.created_at)}


def timestamp(at: datetime) -> str:
    """ISO 8601 with `Z`; pooled connections read times in UTC."""
    return at.isoformat().replace("+00:00", "Z")


def _card(message: Stored) -> dict[str, Any] | None:
    if message.relevant is None:
        return None
    return ui_schema_for(msgspec.json.decode(message.relevant), message.role)


def _blocks(text: str, files: list[dict[str, Any]], layout: Any) -> list[dict[str, Any]]:
    """Seed 001's form: texts and files as they were sent."""
    return [
        {"type": "text", "text": block} if isinstance(block, str) else block
        for block in arranged(text, files, layout)
    ]


def _sent(message: Stored) -> tuple[list[dict[str, Any]], Any]:
    """The binary blocks, freshly signed, and the layout; what is no attachment of ours is left out."""
    found = msgspec.json.decode(message.relevant) if message.relevant else None
    layout = None
    if isinstance(found, dict) and "layout" in found:
        found, layout = found["files"], found["layout"]
    several = found if isinstance(found, list) else [found]
    return [block for block in map(_block, several) if block], layout


def _block(attachment: Any) -> dict[str, Any] | None:
    match attachment:
        case {"bucket": str(bucket), "path": str(path), **more}:
            url = attachments.sign(bucket, path)
            return {"type": "binary", "mimeType": more.get("mime_type"), "url": url}
    return None
