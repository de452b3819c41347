"""Artifacts of a user, wherever they are kept: a tool's large result, and what other rooms add.

An artifact of somebody else does not exist, nor does one past its time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final
from uuid import UUID

from msgspec import Struct

from conversations import attachments


class Artifact(Struct, frozen=True):
    """A file, and where its bytes are: a signed URL or, of a small one, a `data:` URL."""

    mime_type: str
    size_bytes: int
    url: str


Find = Callable[[UUID, UUID], Awaitable[Artifact | None]]
"""From an artifact's id and a user's to the artifact; None where the user has none of this id."""


async def find(artifact_id: UUID, owner_id: UUID) -> Artifact | None:
    """The user's artifact, or None."""
    for look in _sources:
        if (found := await look(artifact_id, owner_id)) is not None:
            return found
    return None


def add_source(look: Find) -> None:
    """Have artifacts found that another room keeps."""
    _sources.append(look)


async def _of_tool(artifact_id: UUID, owner_id: UUID) -> Artifact | None:
    stored = await attachments.find_artifact(artifact_id, owner_id=owner_id)
    found = stored and await attachments.opened(stored)
    if not stored or not found:
        return None
    url = attachments.sign(stored.bucket, stored.path)
    return Artifact(attachments.mime_type_of(stored), found.stat.size, url)


_sources: Final[list[Find]] = [_of_tool]
