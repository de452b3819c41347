"""A user's artifacts, wherever they are kept: a tool's large result, and those of other packages.

An artifact of another user does not exist, nor does one past its time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec import Struct

from config import sql
from conversations import attachments


class Artifact(Struct, frozen=True):
    """A file, and where its bytes are: a signed URL or, for a small one, a `data:` URL."""

    mime_type: str
    size_bytes: int
    url: str


_SENT: Final = """
SELECT bucket, path, created_at FROM conversations_attachment file
WHERE id = %(id)s AND owner_id = %(owner_id)s AND EXISTS (
    SELECT FROM conversations_message m WHERE m.thread_id = %(thread_id)s
    AND m.metadata ? 'user_message_attachments'
    AND (m.metadata->'user_message_attachments' @> jsonb_build_object('path', file.path)
        OR m.metadata->'user_message_attachments'
            @> jsonb_build_array(jsonb_build_object('path', file.path))))
"""

Find = Callable[[UUID, UUID], Awaitable[Artifact | None]]
"""From an artifact's id and a user's to the artifact; None where the user has none of this id."""


async def find_artifact(artifact_id: UUID, owner_id: UUID) -> Artifact | None:
    """Return the user's artifact, or None."""
    for look in _sources:
        if (found := await look(artifact_id, owner_id)) is not None:
            return found
    return None


def add_source(look: Find) -> None:
    """Register another package's artifacts to be found."""
    _sources.append(look)


async def find_upload(
    file_id: UUID, *, thread_id: UUID, owner_id: UUID
) -> tuple[str, str, datetime] | None:
    """Return the bucket, path and time of a user's upload that a message of the thread names."""
    row: tuple[str, str, datetime] | None = await sql.one(
        _SENT, {"id": file_id, "thread_id": thread_id, "owner_id": owner_id}
    )
    return row


async def _of_tool(artifact_id: UUID, owner_id: UUID) -> Artifact | None:
    stored = await attachments.find_artifact(artifact_id, owner_id=owner_id)
    found = stored and await attachments.open_file(stored)
    if not stored or not found:
        return None
    url = attachments.sign_url(stored.bucket, stored.path)
    return Artifact(attachments.mime_type_of(stored), found.stat.size, url)


_sources: Final[list[Find]] = [_of_tool]
