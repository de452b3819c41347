"""What tools found and is too large to be told whole: kept as a file of the thread, for its owner.

An artifact is named by the id of its row. It lies below its thread, so it is erased with it.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from uuid import UUID, uuid4

from config.errors import ParleyError
from conversations.attachments import catalogue, spool
from conversations.attachments.objects import ARTIFACT, StoredObject, new_object
from conversations.attachments.storage import storage
from conversations.attachments.threads import on_files


async def keep_artifact(
    data: bytes, *, owner_id: UUID, thread_id: UUID, run_id: UUID
) -> tuple[UUID, StoredObject]:
    """Store JSON that a tool of this run gave; its id and where it lies. StorageFull, Unavailable."""
    stored = new_object(owner_id, thread=str(thread_id), run=str(run_id), kind=ARTIFACT)
    await catalogue.add(stored, owner_id=owner_id, thread=str(thread_id))
    try:
        await on_files(_save, stored.path, data)
    except ParleyError:
        with suppress(ParleyError):
            await catalogue.forget([stored.path])
        raise
    return UUID(stored.name.partition(".")[0]), stored


async def find_artifact(
    artifact_id: UUID, *, owner_id: UUID, thread_id: UUID | None = None
) -> StoredObject | None:
    """The owner's artifact (of this thread, if one is given), or None."""
    found = await catalogue.find(artifact_id, owner_id=owner_id)
    if found is None or found[1].rpartition(".")[2] != ARTIFACT.extension:
        return None
    bucket, path, thread = found
    return StoredObject(bucket, path) if thread_id in (None, _uuid(thread)) else None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _save(path: str, data: bytes) -> None:
    file = _spooled(data)
    try:
        storage().save(path, file, ARTIFACT.mime_type)
    finally:
        file.unlink(missing_ok=True)


def _spooled(data: bytes) -> Path:
    folder = spool.folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = folder / f"{uuid4().hex}.made"
    with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as opened:
        opened.write(data)
    return file
