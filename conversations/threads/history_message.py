"""A stored message as history shows it: `HistoryMessage` of specs/run-agent-input.md §4.

Compiled or signed values are never stored: a card is compiled and a URL signed at every reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from config.http.documentation.json_types import Shown, Time, component, noted, one_of
from conversations import attachments
from conversations.blocks import arrange
from conversations.cards.card_compiler import ui_schema_for

Content = Literal["text", "blocks"]
_ARTIFACTS: Final = "/api/v1/agent/artifacts/"
_FILES: Final = noted("Text files sent by the user and files created by the run, if any.")
_Card = Annotated[Any, component("UiSchema")]

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


class TextBlock(Shown, frozen=True, tag="text"):
    """A text of a user's message."""

    text: str


class FileBlock(Shown, frozen=True, tag="binary", rename="camel"):
    """A file of a user's message; only one that is no image has a name."""

    mime_type: str | None
    url: str
    filename: str | UnsetType = UNSET


class HistoryFile(Shown, frozen=True, rename="camel", kw_only=True):
    """A file beside a message's text: sent by the user, or created by the run."""

    name: str
    mime_type: str | UnsetType | None = UNSET
    type: str | UnsetType = UNSET
    url: str | None


class HistoryMessage(Shown, frozen=True, rename="camel", kw_only=True):
    """A message as history shows it."""

    id: str
    seq: int
    role: Annotated[str, one_of("user", "assistant", "tool")]
    content: str | list[TextBlock | FileBlock]
    url: Annotated[str | UnsetType | None, noted("In a user's message: the first image.")] = UNSET
    ui_schema: Annotated[_Card | UnsetType | None, noted("In other messages: a card, if any.")] = UNSET
    files: Annotated[list[HistoryFile] | UnsetType, _FILES] = UNSET
    timestamp: Time


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


def show_message(message: Stored, content: Content) -> HistoryMessage:
    """Return the message: users' have `url`, their first image's; the others have `ui_schema`.

    Other files than users' images stand in `files`, if there are any.
    """
    relevant = msgspec.json.decode(message.relevant) if message.relevant else None
    shown = HistoryMessage(
        id=message.client_id or str(message.message_id),
        seq=message.seq,
        role=message.role,
        content=message.content,
        timestamp=timestamp(message.created_at),
    )
    if message.role != "user":
        card = ui_schema_for(relevant, message.role) if relevant else None
        return replace(shown, ui_schema=card, files=[*_extras(relevant or {})] or UNSET)
    sent, layout = _file_blocks(relevant)
    files = [_file(block) for block in sent if block.filename]
    url = next((block.url for block in sent if not block.filename), None)
    blocks = _blocks(message.content, sent, layout) if content == "blocks" else message.content
    return replace(shown, url=url, content=blocks, files=files or UNSET)


def timestamp(at: datetime) -> str:
    """Return ISO 8601 with `Z`; pooled connections read times in UTC."""
    return at.isoformat().replace("+00:00", "Z")


def _blocks(text: str, files: list[FileBlock], layout: Any) -> list[TextBlock | FileBlock]:
    """Return seed 001's form: texts and files as they were sent."""
    return [
        TextBlock(block) if isinstance(block, str) else block for block in arrange(text, files, layout)
    ]


def _file_blocks(found: Any) -> tuple[list[FileBlock], Any]:
    """Return the files, freshly signed, and the layout, without foreign attachments."""
    layout = None
    if isinstance(found, dict) and "layout" in found:
        found, layout = found["files"], found["layout"]
    several = found if isinstance(found, list) else [found]
    return [block for block in map(_block, several) if block], layout


def _block(attachment: Any) -> FileBlock | None:
    match attachment:
        case {"bucket": str(bucket), "path": str(path)}:
            url = attachments.sign_url(bucket, path)
            return FileBlock(attachment.get("mime_type"), url, attachment.get("name") or UNSET)
    return None


def _file(block: FileBlock) -> HistoryFile:
    return HistoryFile(name=block.filename or "", mime_type=block.mime_type, url=block.url)


def _extras(metadata: dict[str, Any]) -> Iterator[HistoryFile]:
    """Return what a run or a client's tool shows beside its words; more of an artifact if available."""
    sent, _ = _file_blocks(metadata.get("user_message_attachments"))
    yield from map(_file, sent)
    listed = [one for one in metadata.get("contents") or () if one.get("type") != "data"]
    for one in listed:
        made = one.get("artifact_id")
        url = f"{_ARTIFACTS}{made}" if made else one.get("url")
        yield HistoryFile(name=one.get("name", ""), type=one["type"], url=url)
    known = {one.get("artifact_id") for one in listed}
    for made in metadata.get("artifact_refs") or ():
        if made not in known:
            yield HistoryFile(name="", type="file", url=f"{_ARTIFACTS}{made}")
