"""Store, read and delete files: the checks, the row and the storage in the right order."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from django.core.files.storage import FileSystemStorage, storages

from config.errors import ParleyError
from config.storage_settings import ALIAS
from conversations.attachments import file_rows, images, scanning, spool
from conversations.attachments.io_threads import run_decoding, run_file_io
from conversations.attachments.object_names import (
    ARTIFACT,
    FileKind,
    StoredObject,
    is_artifact,
    is_upload,
    is_wellformed,
    mime_type_of,
    new_object,
    owner_prefix,
)
from conversations.attachments.spool import Spool
from conversations.attachments.storage_interface import Reader, Stat, Storage
from conversations.identifiers import uuid_of

PIECE: Final = 128 * 1024
_CHECKED_AT_ONCE: Final = 200


def get_storage() -> Storage:
    """Return the storage of STORAGES["attachments"]; boto3 is loaded only where it is S3."""
    backend = storages[ALIAS]
    if isinstance(backend, FileSystemStorage):
        from conversations.attachments.local_storage import LocalStorage

        return LocalStorage(backend)
    from conversations.attachments.s3_storage import S3Storage

    return S3Storage(backend)


# --- keep ---------------------------------------------------------------------------------------


async def store_upload(upload: Spool, *, owner_id: UUID, thread: str, run: str) -> StoredObject:
    """Store the upload, once it is found to be an image; `thread` and `run` are normalized path parts.

    Raise UnsupportedMedia, InvalidRequest (`attachment_refused`), StorageFull, Unavailable; then
    no part of the file is left.
    """
    await upload.flush()
    kind = await run_decoding(images.clean, upload.path, upload.cleaned)
    return await _store_file(upload.cleaned, kind, owner_id=owner_id, thread=thread, run=run)


async def store_bytes(
    data: bytes, kind: FileKind, *, owner_id: UUID, thread: str, run: str
) -> StoredObject:
    """Store a file of a checked kind. Raise as `store_upload`."""
    file = await run_file_io(spool.write_file, data)
    try:
        return await _store_file(file, kind, owner_id=owner_id, thread=thread, run=run)
    finally:
        file.unlink(missing_ok=True)


async def store_artifact(data: bytes, *, owner_id: UUID, thread_id: UUID, run_id: UUID) -> StoredObject:
    """Store a tool's JSON of this run, named by the id of its row.

    It lies below its thread, so it is erased with it. Raise StorageFull, Unavailable.
    """
    return await store_bytes(data, ARTIFACT, owner_id=owner_id, thread=str(thread_id), run=str(run_id))


async def _store_file(
    file: Path, kind: FileKind, *, owner_id: UUID, thread: str, run: str
) -> StoredObject:
    if kind is not ARTIFACT:  # which is our own
        await scanning.scan(file, kind.mime_type)
    stored = new_object(owner_id, thread=thread, run=run, kind=kind)
    await file_rows.record_file(stored, owner_id=owner_id, thread=thread)
    try:
        await run_file_io(get_storage().save, stored.path, file, kind.mime_type)
    except ParleyError:
        await _discard(stored)
        raise
    return stored


async def _discard(stored: StoredObject) -> None:
    with suppress(ParleyError):  # a file that cannot be deleted now is an orphan, and upkeep finds it
        await run_file_io(get_storage().delete, [stored.path])
        await file_rows.delete_rows([stored.path])


# --- read ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file that exists, with the data of its response."""

    stored: StoredObject
    stat: Stat

    async def stream(self, start: int, count: int) -> AsyncGenerator[bytes]:
        """Yield `count` bytes from `start`, in pieces; end early if the file is deleted meanwhile."""
        reader = await run_file_io(get_storage().open, self.stored.path, start)
        if reader is None:
            return
        with closing(reader):
            while count and (piece := await run_file_io(reader.read, min(count, PIECE))):
                count -= len(piece)
                yield piece


async def open_file(stored: StoredObject) -> OpenedFile | None:
    """Return the file, or None if there is no such file."""
    if not is_wellformed(stored):
        return None
    stat = await run_file_io(get_storage().stat, stored.path)
    return OpenedFile(stored, stat) if stat else None


async def make_direct_url(stored: StoredObject) -> str | None:
    """Return a short-lived address at the storage itself, if it has any."""
    return await run_file_io(get_storage().direct_url, stored.path, mime_type_of(stored))


async def exists(bucket: str, path: str) -> bool:
    """Return whether there is such a file."""
    return await open_file(StoredObject(bucket, path)) is not None


async def find_upload(file_id: UUID, *, owner_id: UUID) -> StoredObject | None:
    """Return the owner's file of this id that a client has sent, or None."""
    found = await file_rows.find_file(file_id, owner_id=owner_id)
    return found.stored if found and is_upload(found.stored) else None


async def find_artifact(
    artifact_id: UUID, *, owner_id: UUID, thread_id: UUID | None = None
) -> StoredObject | None:
    """Return the owner's artifact (with `thread_id`, of that thread), or None."""
    found = await file_rows.find_file(artifact_id, owner_id=owner_id)
    if found is None or not is_artifact(found.stored):
        return None
    return found.stored if thread_id in (None, uuid_of(found.thread)) else None


async def read_bytes(bucket: str, path: str, *, limit: int) -> bytes | None:
    """Return the whole file, or None if it is gone or larger than `limit` bytes."""
    stored = StoredObject(bucket, path)
    if not is_wellformed(stored):
        return None
    return await run_file_io(_read_whole, path, limit)


def _read_whole(path: str, limit: int) -> bytes | None:
    reader: Reader | None = get_storage().open(path, 0)
    if reader is None:
        return None
    found = bytearray()
    with closing(reader):
        while len(found) <= limit and (piece := reader.read(PIECE)):
            found += piece
    return bytes(found) if len(found) <= limit else None


# --- delete -------------------------------------------------------------------------------------


async def delete_thread_files(owner_id: UUID, thread_id: UUID) -> None:
    """Delete the files of a thread; call it while the thread's messages are still there.

    Those uploaded for the thread go, and those that its messages name and no other thread's do.
    """
    async for paths in file_rows.list_files_of_thread_alone(owner_id, thread_id):
        await run_file_io(get_storage().delete, paths)
        await file_rows.delete_rows(paths)
    await run_file_io(get_storage().delete_below, f"{owner_prefix(owner_id)}{thread_id}/")
    await file_rows.delete_thread_rows(owner_id, thread_id)


async def delete_user_files(owner_id: UUID) -> int:
    """Delete every file that a user has stored. Return their number."""
    count = await run_file_io(get_storage().delete_below, owner_prefix(owner_id))
    await file_rows.delete_user_rows(owner_id)
    return count


async def delete_orphans() -> tuple[int, bool]:
    """Delete some of the files that no message has named for ATTACHMENT_ORPHAN_DAYS.

    Return their number, and whether more may be due.
    """
    orphans, due = await file_rows.find_orphans(_CHECKED_AT_ONCE)
    if orphans:
        await run_file_io(get_storage().delete, orphans)
        await file_rows.delete_rows(orphans)
    await run_file_io(spool.delete_stale)
    return len(orphans), due == _CHECKED_AT_ONCE
