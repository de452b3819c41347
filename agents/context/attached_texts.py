"""The texts that messages carry as files, for the model: each under its name, at its place.

They are read when a run begins and are part of its conversation like any other text, so that budgets,
windows and summaries count them. History shows the files.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import quoteattr

from msgspec.structs import replace

from agents.requests import Attachment, InputMessage
from conversations import attachments
from conversations.blocks import arrange, layout_of

_LARGEST: Final = 32 * 1024 * 1024
_GONE: Final = "(The file is no longer there.)"
_LONG_AGO: Final = "(The file was sent too long ago to be read here.)"


async def with_document_texts(
    messages: Sequence[InputMessage], *, room: int | None = None
) -> tuple[InputMessage, ...]:
    """Return the messages with the texts of their documents; of the newest first, up to `room` bytes."""
    texts = dict(await asyncio.gather(*map(_text, _fitting(messages, room))))
    return tuple(_inline_texts(one, texts) if _documents(one) else one for one in messages)


def _fitting(messages: Sequence[InputMessage], room: int | None) -> list[Attachment]:
    """Return the documents that fit into `room`, from the newest back."""
    fitting: list[Attachment] = []
    for file in (file for one in reversed(messages) for file in _documents(one)):
        if room is not None:
            room -= file.size
            if room < 0:
                break
        fitting.append(file)
    return fitting


def _documents(message: InputMessage) -> list[Attachment]:
    return [file for file in message.attachments if not file.is_image]


async def _text(file: Attachment) -> tuple[str, str]:
    data = await attachments.read_bytes(file.bucket, file.path, limit=_LARGEST)
    return file.path, _GONE if data is None else data.decode("utf-8", "replace")


def _inline_texts(message: InputMessage, texts: dict[str, str]) -> InputMessage:
    """Return the message with its documents as texts among its others, and images unchanged."""
    blocks = [
        block if isinstance(block, str) or block.is_image else _as_text(block, texts)
        for block in arrange(message.content, message.attachments, message.layout)
    ]
    return replace(
        message,
        content="\n".join(block for block in blocks if isinstance(block, str)),
        attachments=tuple(block for block in blocks if not isinstance(block, str)),
        layout=layout_of(block if isinstance(block, str) else None for block in blocks),
    )


def _as_text(file: Attachment, texts: dict[str, str]) -> str:
    text = texts.get(file.path, _LONG_AGO)
    return f"<file name={quoteattr(file.name)}>\n{text}\n</file>"
