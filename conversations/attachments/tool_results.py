"""Tool results too large for a model: kept as a file of the thread, for its owner.

An artifact is named by the id of its row. It lies below its thread, so it is erased with it.
"""

from __future__ import annotations

from contextlib import suppress
from uuid import UUID

from config.errors import ParleyError
from conversations.attachments import file_rows, spool
from conversations.attachments.io_threads import run_file_io
from conversations.attachments.object_names import ARTIFACT, StoredObject, new_object
from conversations.attachments.storage import get_storage
from conversations.identifiers import uuid_of


async def store_artifact(
    data: bytes, *, owner_id: UUID, thread_id: UUID, run_id: UUID
) -> tuple[UUID, StoredObject]:
    """Store a tool's JSON of this run. Return its id and place. Raise StorageFull, Unavailable."""
    stored = new_object(owner_id, thread=str(thread_id), run=str(run_id), kind=ARTIFACT)
    await file_rows.record_file(stored, owner_id=owner_id, thread=str(thread_id))
    try:
        await run_file_io(_save, stored.path, data)
    except ParleyError:
        with suppress(ParleyError):
            await file_rows.delete_rows([stored.path])
        raise
    return UUID(stored.name.partition(".")[0]), stored


async def find_artifact(
    artifact_id: UUID, *, owner_id: UUID, thread_id: UUID | None = None
) -> StoredObject | None:
    """Return the owner's artifact (with `thread`, of that thread), or None."""
    found = await file_rows.find_file(artifact_id, owner_id=owner_id)
    if found is None or found[1].rpartition(".")[2] != ARTIFACT.extension:
        return None
    bucket, path, thread = found
    return StoredObject(bucket, path) if thread_id in (None, uuid_of(thread)) else None


def _save(path: str, data: bytes) -> None:
    file = spool.write_file(data)
    try:
        get_storage().save(path, file, ARTIFACT.mime_type)
    finally:
        file.unlink(missing_ok=True)
