"""Artifacts for runners: files that runs of this conversation made, and images of its user (seed §7.6).

The scope is the artifacts of this run and those of its conversation, of its user; others do not exist,
and neither do expired ones. Replies contain no path, bucket or address of the storage.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID, uuid4

from django.conf import settings
from psycopg.types.json import Jsonb

from agents.host.action_registry import action
from agents.host.actions.checks import checked_limit
from agents.host.session import Scene, Session
from agents.host_protocol import parameters, replies
from agents.host_protocol.errors import invalid, not_found, too_large
from agents.host_protocol.results import ArtifactCreatedData
from config import sql
from conversations import attachments
from conversations.events import ArtifactCreated
from conversations.identifiers import uuid_of
from conversations.log.storable_text import clean_text, clean_value
from conversations.threads.artifacts import Artifact, find_upload

LARGEST: Final = 1024 * 1024
_USUAL: Final = 1024 * 1024
_MAX_READ: Final = 10 * 1024 * 1024
_PIECE: Final = 65_536
_FILE: Final = "file-"
_IN_SCOPE: Final = """
SELECT thread_id, run_id, created_at, expires_at,
    runner_id, artifact_type, mime_type, name, size, sha256, metadata
FROM agents_hostartifact
WHERE id = %(id)s AND owner_id = %(owner_id)s AND (run_id = %(run_id)s OR thread_id = %(thread_id)s)
    AND (expires_at IS NULL OR expires_at > now())
"""
_FIELDS: Final = (
    "runner_id", "artifact_type", "mime_type", "name", "size_bytes", "sha256", "metadata"
)  # fmt: skip
_OWN: Final = """
SELECT mime_type, size, content FROM agents_hostartifact
WHERE id = %s AND owner_id = %s AND (expires_at IS NULL OR expires_at > now())
"""
_BYTES: Final = "SELECT substring(content FROM %s FOR %s) FROM agents_hostartifact WHERE id = %s"
_STORE: Final = """
INSERT INTO agents_hostartifact (id, owner_id, thread_id, run_id, runner_id, artifact_type, mime_type,
    name, size, sha256, content, metadata, created_at, expires_at)
VALUES (%(id)s, %(owner_id)s, %(thread_id)s, %(run_id)s, %(runner_id)s, %(artifact_type)s,
    %(mime_type)s, %(name)s, %(size)s, %(sha256)s, %(content)s, %(metadata)s, clock_timestamp(),
    %(expires_at)s)
"""


class _Found(NamedTuple):
    """An artifact in scope, and the place of its bytes: our row, or the store of uploads."""

    metadata: replies.ArtifactMetadata
    place: tuple[str, str] | None = None


@action("artifact_metadata", "artifacts", "metadata", resource="artifact_id", seconds=15)
async def metadata(session: Session, params: parameters.GetArtifact) -> replies.ArtifactMetadata:
    """Return the metadata of an artifact, without its place in the storage."""
    return (await _find(session.scene, params.artifact_id)).metadata


@action("artifact_read", "artifacts", "read", resource="artifact_id", seconds=60)
async def read(session: Session, params: parameters.ReadArtifact) -> replies.ArtifactRead:
    """Return a range of the bytes, at most 10 MiB; by default the first MiB."""
    if params.offset < 0:
        raise invalid("offset must be >= 0")
    limit = _USUAL if params.limit is None else checked_limit(params.limit, _MAX_READ)
    found = await _find(session.scene, params.artifact_id)
    return await _read_range(found, params.offset, limit)


@action("artifact_stream", "artifacts", "read", resource="artifact_id", seconds=60)
async def stream(
    session: Session, params: parameters.GetArtifact
) -> AsyncGenerator[replies.ArtifactRead]:
    """Yield all of the bytes in pieces."""
    found = await _find(session.scene, params.artifact_id)
    offset, more = 0, True
    while more:
        piece = await _read_range(found, offset, _PIECE * 16)
        yield piece
        offset, more = offset + (piece.length or 0), piece.has_more


async def store(scene: Scene, data: ArtifactCreatedData) -> ArtifactCreated:
    """Store a file that the runner made; its type comes from its bytes before the runner's metadata."""
    content = data.content or b""
    if len(content) > LARGEST:
        raise too_large(f"Artifact content is {len(content)} bytes; at most {LARGEST} are taken inline")
    digest = hashlib.sha256(content).hexdigest()
    if data.sha256 and data.sha256.lower() != digest:
        raise invalid("sha256 is not that of the content")
    artifact = ArtifactCreated(
        uuid4().hex,
        clean_text(data.artifact_type)[:64],
        _mime_type(content, data.mime_type),
        clean_text(data.name or "")[:200],
        len(content),
    )
    await sql.change(
        _STORE,
        {
            "id": UUID(artifact.artifact_id),
            "owner_id": scene.user_id,
            "thread_id": scene.thread_id,
            "run_id": scene.run_id,
            "runner_id": scene.runner_id,
            "artifact_type": artifact.artifact_type,
            "mime_type": artifact.mime_type,
            "name": artifact.name,
            "size": artifact.size_bytes,
            "sha256": digest,
            "content": content,
            "metadata": Jsonb(clean_value(data.metadata)),
            "expires_at": _expiry(),
        },
    )
    return artifact


async def find_own(artifact_id: UUID, owner_id: UUID) -> Artifact | None:
    """Return a runner's file for its owner, with its bytes (at most 1 MiB) in a `data:` URL."""
    row = await sql.one(_OWN, (artifact_id, owner_id))
    if row is None:
        return None
    mime_type, size, content = row
    return Artifact(mime_type, size, f"data:{mime_type};base64,{b64encode(content).decode()}")


def _expiry() -> datetime | None:
    days = settings.ARTIFACT_DAYS
    return datetime.now(UTC) + timedelta(days=days) if days else None


async def _find(scene: Scene, artifact_id: str) -> _Found:
    """Return the artifact; raise the same HostRefusal if it is out of scope or does not exist (P10)."""
    found = await (_find_sent if artifact_id.startswith(_FILE) else _find_made)(scene, artifact_id)
    if found is None:
        raise not_found(f"Artifact {artifact_id} not found")
    return found


async def _find_made(scene: Scene, artifact_id: str) -> _Found | None:
    scope = {"owner_id": scene.user_id, "run_id": scene.run_id, "thread_id": scene.thread_id}
    row = await sql.one(_IN_SCOPE, {"id": uuid_of(artifact_id)} | scope)
    if row is None:
        return None
    thread_id, run_id, created_at, expires_at, *fields = row
    metadata = replies.ArtifactMetadata(
        artifact_id=artifact_id,
        source="runner",
        conversation_id=thread_id.hex if thread_id else None,
        run_id=run_id.hex,
        created_at=_seconds(created_at),
        expires_at=_seconds(expires_at) if expires_at else None,
        **dict(zip(_FIELDS, fields, strict=True)),
    )
    return _Found(metadata)


async def _find_sent(scene: Scene, artifact_id: str) -> _Found | None:
    """Return an uploaded file of the user, if a message of this conversation refers to it."""
    file_id = uuid_of(artifact_id.removeprefix(_FILE))
    if file_id is None or scene.thread_id is None:
        return None
    sent = await find_upload(file_id, thread_id=scene.thread_id, owner_id=scene.user_id)
    if sent is None:
        return None
    bucket, path, made = sent
    mime_type = attachments.mime_type_of(attachments.StoredObject(bucket, path))
    metadata = replies.ArtifactMetadata(
        artifact_id=artifact_id,
        artifact_type="image" if mime_type.startswith("image/") else "file",
        mime_type=mime_type or None,
        name=path.rpartition("/")[2],
        source="upload",
        conversation_id=scene.thread_id.hex,
        created_at=_seconds(made),
    )
    return _Found(metadata, (bucket, path))


async def _read_range(found: _Found, offset: int, length: int) -> replies.ArtifactRead:
    about = found.metadata
    if found.place is None:
        artifact_id = UUID(about.artifact_id)
        row = await sql.one(_BYTES, (offset + 1, length, artifact_id)) if offset < 2**31 - 1 else None
        piece, size = bytes(row[0]) if row else b"", about.size_bytes or 0
    else:
        whole = await attachments.read_bytes(*found.place, limit=_MAX_READ) or b""
        piece, size = whole[offset : offset + length], len(whole)
    return replies.ArtifactRead(
        artifact_id=about.artifact_id,
        mime_type=about.mime_type,
        size_bytes=size,
        offset=offset,
        length=len(piece),
        content=piece,
        has_more=offset + len(piece) < size and bool(piece),
    )


_MAGIC: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x7fELF", "application/octet-stream"),
    (b"MZ", "application/octet-stream"),
)
_ZIPPED: Final = ("application/vnd.", "application/epub", "application/java", "application/zip")


def _mime_type(content: bytes, claimed_type: str | None) -> str:
    """Return the type of the bytes; else the claimed type if possible, or else that of unknown bytes."""
    shown = next((mime for magic, mime in _MAGIC if content.startswith(magic)), "")
    mime_type = (claimed_type or "").strip().lower()[:127]
    if shown == "application/zip" and mime_type.startswith(_ZIPPED):
        return mime_type
    if shown:
        return shown
    if mime_type.startswith("image/") and mime_type != "image/svg+xml" and mime_type != "image/webp":
        return "application/octet-stream"
    return mime_type if mime_type.isascii() and "/" in mime_type else "application/octet-stream"


def _seconds(at: datetime) -> int:
    return int(at.timestamp())
