"""What a runner puts into a message beside its text: checked, and a copy of what is inline kept.

The log, and so every reader of the run, holds the content as the runner said it; the stored message and
the owner's downloads have the artifact.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Final

from msgspec.structs import replace

from agents.hostcalls import artifacts
from agents.hostcalls.session import Scene
from agents.hosting.errors import HostRefusal
from agents.hosting.results import ArtifactSaid
from agents.runners.base import RunFailure
from conversations.events import ArtifactCreated, MessageContent

LONGEST_URL: Final = 8_192
_WEB: Final = ("http://", "https://")


async def keep(scene: Scene, content: MessageContent) -> tuple[MessageContent, ArtifactCreated | None]:
    """Return the content, and the artifact that holds what it has inline.

    RunFailure `runner.protocol_error` for an address that is none of http, https or `data:`, for what is
    no base64, and for more than 1 MiB.
    """
    mime_type, data = _inline(content)
    if not data:
        return content, None
    try:
        raw = b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise _broken(content, "is no base64") from None
    said = ArtifactSaid(artifact_type=content.type, mime_type=mime_type, name=content.name, content=raw)
    try:
        made = await artifacts.store(scene, said)
    except HostRefusal as refusal:
        raise RunFailure("runner.protocol_error", refusal.message) from None
    return replace(content, artifact_id=made.artifact_id), made


def _inline(content: MessageContent) -> tuple[str, str]:
    """The mime type and the base64 of what is inline; "" for a content that stands elsewhere."""
    given = content.data or content.url
    if given[:5].lower() == "data:":
        head, comma, data = given.partition(",")
        if not comma or head[-7:].lower() != ";base64":
            raise _broken(content, "has a data: URL without base64")
        return head[5:].partition(";")[0].lower(), data
    if content.data:
        return f"audio/{content.format}" if content.format else "", content.data
    if given and not given.lower().startswith(_WEB):
        raise _broken(content, "needs an address of http or https, or a base64 data: URL")
    if len(given) > LONGEST_URL:
        raise _broken(content, f"has an address of more than {LONGEST_URL:,} characters")
    return "", ""


def _broken(content: MessageContent, what: str) -> RunFailure:
    return RunFailure("runner.protocol_error", f"A content of the type {content.type} {what}.")
