"""A stored message as history shows it: `HistoryMessage` of specs/run-agent-input.md §4.

Compiled or signed values are never stored: a card is compiled and a URL signed at every reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from conversations import attachments
from conversations.blocks import arrange
from conversations.cards.card_compiler import ui_schema_for

Content = Literal["text", "blocks"]
_ARTIFACTS: Final = "/api/v1/agent/artifacts/"

# Only the shown columns leave the database: a tool's result may be far larger than its message.
RELEVANT: Final = """CASE
    WHEN role = 'user' AND metadata ? 'content_layout' THEN jsonb_build_object(
        'files', metadata -> 'user_message_attachments', 'layout', metadata -> 'content_layout')
    WHEN role = 'user' THEN metadata -> 'user_message_attachments'
    WHEN metadata #> '{worker_agent_output,ui_hints}' IS NOT NULL
        OR metadata #> '{tool_agent_output,ui_hints}' IS NOT NULL
        OR metadata ?| ARRAY['contents', 'artifact_refs', 'user_message_attachments']
    THEN metadata #- '{worker_agent_output,answer}' #- '{tool_agent_output,result}'
END"""


class Stored(NamedTuple):
    """The columns of a message; `relevant` is a user's attachments (with the layout, if there is one),
    or the metadata with hints or files."""

    message_id: UUID
    client_id: str | None
    seq: int
    role: str
    content: str
    created_at: datetime
    relevant: str | None


def message_to_json(message: Stored, content: Content) -> dict[str, Any]:
    """Return the message as JSON: users' have `url`, their first image's; the others have `uiSchema`.

    Other files than users' images stand in `files`, if there are any.
    """
    fields: dict[str, Any] = {
        "id": message.client_id or str(message.message_id),
        "seq": message.seq,
        "role": message.role,
        "content": message.content,
    }
    relevant = msgspec.json.decode(message.relevant) if message.relevant else None
    if message.role == "user":
        sent, layout = _binary_blocks(relevant)
        images = [block["url"] for block in sent if "filename" not in block]
        fields["url"] = images[0] if images else None
        files = [_file(block) for block in sent if "filename" in block]
        if content == "blocks":
            fields["content"] = _blocks(message.content, sent, layout)
    else:
        fields["uiSchema"] = ui_schema_for(relevant, message.role) if relevant else None
        files = [*_extras(relevant or {})]
    more = {"files": files} if files else {}
    return fields | more | {"timestamp": timestamp(message.created_at)}


def timestamp(at: datetime) -> str:
    """Return ISO 8601 with `Z`; pooled connections read times in UTC."""
    return at.isoformat().replace("+00:00", "Z")


def _blocks(text: str, files: list[dict[str, Any]], layout: Any) -> list[dict[str, Any]]:
    """Return seed 001's form: texts and files as they were sent."""
    return [
        {"type": "text", "text": block} if isinstance(block, str) else block
        for block in arrange(text, files, layout)
    ]


def _binary_blocks(found: Any) -> tuple[list[dict[str, Any]], Any]:
    """Return the binary blocks, freshly signed, and the layout, without foreign attachments."""
    layout = None
    if isinstance(found, dict) and "layout" in found:
        found, layout = found["files"], found["layout"]
    several = found if isinstance(found, list) else [found]
    return [block for block in map(_block, several) if block], layout


def _block(attachment: Any) -> dict[str, Any] | None:
    """Return a file's block; only a file that is no image has a name."""
    match attachment:
        case {"bucket": str(bucket), "path": str(path), **more}:
            url = attachments.sign_url(bucket, path)
            block = {"type": "binary", "mimeType": more.get("mime_type"), "url": url}
            return block | ({"filename": more["name"]} if more.get("name") else {})
    return None


def _file(block: dict[str, Any]) -> dict[str, Any]:
    return {"name": block.get("filename", ""), "mimeType": block["mimeType"], "url": block["url"]}


def _extras(metadata: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Return what a run or a client's tool shows beside its words; more of an artifact if available."""
    sent, _ = _binary_blocks(metadata.get("user_message_attachments"))
    yield from map(_file, sent)
    listed = [one for one in metadata.get("contents") or () if one.get("type") != "data"]
    for one in listed:
        made = one.get("artifact_id")
        url = f"{_ARTIFACTS}{made}" if made else one.get("url")
        yield {"name": one.get("name", ""), "type": one["type"], "url": url}
    known = {one.get("artifact_id") for one in listed}
    for made in metadata.get("artifact_refs") or ():
        if made not in known:
            yield {"name": "", "type": "file", "url": f"{_ARTIFACTS}{made}"}
