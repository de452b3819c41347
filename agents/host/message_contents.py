"""Contents of a runner's messages beside the text: they are checked, and inline bytes are stored.

The log, and so every reader of the run, has the content as the runner sent it; the stored message and
the owner's downloads have the artifact.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from agents.host.actions import artifacts
from agents.host.runner_failures import protocol_error
from agents.host.session import Scene
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.messages import ContentElement, ImageUrl
from agents.host_protocol.results import ArtifactCreatedData
from agents.media_types import clean_name
from agents.runners.base import RunFailure
from conversations.events import ArtifactCreated, MessageContent

LONGEST_URL: Final = 8_192
_BEGINNINGS: Final = {"/9j/": "jpeg", "R0lGOD": "gif", "UklGR": "webp"}  # in base64
_WEB: Final = ("http://", "https://")


async def store_inline_contents(
    scene: Scene, contents: Iterable[MessageContent]
) -> tuple[list[MessageContent], list[ArtifactCreated]]:
    """Return the contents, and the artifacts with the bytes of the inline ones.

    Raise RunFailure `runner.protocol_error` for an address that is none of http, https or `data:`, for
    invalid base64, and for more than 1 MiB.
    """
    stored = [await _store_inline_content(scene, content) for content in contents]
    return [content for content, _ in stored], [made for _, made in stored if made]


async def _store_inline_content(
    scene: Scene, content: MessageContent
) -> tuple[MessageContent, ArtifactCreated | None]:
    mime_type, data = _inline(content)
    if not data:
        return content, None
    try:
        raw = b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong_content(content.type, "is no base64") from None
    file = ArtifactCreatedData(
        artifact_type=content.type, mime_type=mime_type, name=content.name, content=raw
    )
    try:
        made = await artifacts.store(scene, file)
    except HostRefusal as refusal:
        raise protocol_error(refusal.message) from None
    return replace(content, artifact_id=made.artifact_id), made


def content_of_element(part: ContentElement) -> MessageContent:
    """Return an image or a file of seed 003's SDK; raise RunFailure for one without a value."""
    name = clean_name(part.file_name or "")
    match part:
        case ContentElement(type="image_url", image_url=ImageUrl(url)) if url:
            return MessageContent("image", url)
        case ContentElement(type="image_base64", image_base64=str(data)) if data:
            return MessageContent("image", _as_url(data))
        case ContentElement(type="file_url", file_url=str(url)) if url:
            return MessageContent("file", url, name=name)
        case ContentElement(type="file_base64", file_base64=str(data)) if data:
            return MessageContent("file", "", data, name=name)
    raise _wrong_content(part.type, "has no value")


def _as_url(data: str) -> str:
    """Return a base64 image, or a `data:` URL, as a `data:` URL; its first bytes decide its type."""
    if data[:5].lower() == "data:":
        return data
    kind = next((kind for begins, kind in _BEGINNINGS.items() if data.startswith(begins)), "png")
    return f"data:image/{kind};base64,{data}"


def _inline(content: MessageContent) -> tuple[str, str]:
    """Return the MIME type and the base64 of inline bytes; "" for a content with an address."""
    address = content.data or content.url
    if address[:5].lower() == "data:":
        head, comma, data = address.partition(",")
        if not comma or head[-7:].lower() != ";base64":
            raise _wrong_content(content.type, "has a data: URL without base64")
        return head[5:].partition(";")[0].lower(), data
    if content.data:
        return f"audio/{content.format}" if content.format else "", content.data
    if address and not address.lower().startswith(_WEB):
        raise _wrong_content(content.type, "needs an address of http or https, or a base64 data: URL")
    if len(address) > LONGEST_URL:
        raise _wrong_content(content.type, f"has an address of more than {LONGEST_URL:,} characters")
    return "", ""


def _wrong_content(content_type: str, what: str) -> RunFailure:
    return protocol_error(f"A content of the type {content_type} {what}.")
