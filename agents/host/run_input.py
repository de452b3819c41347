"""The input of a run for its runner: the text, the files, and references.

A runner in this process gets references, and reads the files that it needs (artifacts API). A runner of
a plugin runtime gets the images and texts themselves, as from LangBot's Host, as far as its wire has
room for them.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Final

from agents.host.actions import transcript_items
from agents.host_protocol.messages import ContentElement, ImageUrl
from agents.host_protocol.run_context import AgentInput, ArtifactRef
from agents.requests import Attachment, InputMessage
from conversations import attachments
from conversations.blocks import arrange

LARGEST_INLINE: Final = 8 * 1024 * 1024  # of all files; in base64 two thirds of a document on the wire


async def agent_input(message: InputMessage | None, *, inlines: bool) -> AgentInput:
    """Return the input of a run; with `inlines` it contains the files, past the limit as URLs."""
    if message is None:
        return AgentInput()
    blocks = arrange(message.content, message.attachments, message.layout)
    refs = tuple(
        ref
        for file in message.attachments
        if (ref := upload_ref(file.path, file.mime_type, size=file.size or None, name=file.name))
    )
    contents = [ContentElement(type="text", text=one) for one in blocks if isinstance(one, str)]
    if inlines:
        contents = await _inline_files(blocks)
    elif not contents:
        contents = [ContentElement(type="text", text="")]
    return AgentInput(text=message.content, contents=tuple(contents), attachments=refs)


def upload_ref(
    path: str, mime_type: str, *, size: int | None = None, name: str = ""
) -> ArtifactRef | None:
    """Return a reference to an uploaded file; None for a path that is no upload's."""
    artifact_id = transcript_items.file_id(path)
    if not artifact_id:
        return None
    return ArtifactRef(
        artifact_id=artifact_id,
        artifact_type="image" if mime_type.startswith("image/") else "file",
        mime_type=mime_type,
        size=size,
        name=name or path.rpartition("/")[2],
        source="upload",
        id=artifact_id,
    )


async def _inline_files(blocks: list[str | Attachment]) -> list[ContentElement]:
    room, contents = LARGEST_INLINE, list[ContentElement]()
    for block in blocks:
        if isinstance(block, str):
            contents.append(ContentElement(type="text", text=block))
            continue
        data = await attachments.read_bytes(block.bucket, block.path, limit=room)
        room -= len(data or b"")
        contents.append(_url_element(block) if data is None else _element(block, data))
    return contents


def _element(file: Attachment, data: bytes) -> ContentElement:
    url = f"data:{file.mime_type};base64,{b64encode(data).decode()}"
    if file.is_image:
        return ContentElement(type="image_base64", image_base64=url)
    return ContentElement(type="file_base64", file_base64=url, file_name=file.name)


def _url_element(file: Attachment) -> ContentElement:
    """Return a file past the limit as a URL, which is valid for a while."""
    url = attachments.sign_url(file.bucket, file.path)
    if file.is_image:
        return ContentElement(type="image_url", image_url=ImageUrl(url))
    return ContentElement(type="file_url", file_url=url, file_name=file.name)
