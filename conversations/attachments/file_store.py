"""Store, read and delete files: the checks, the row and the storage in the right order."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from config.errors import ParleyError
from conversations.attachments import images, scanning, spool, stored_files
from conversations.attachments.backends import Reader, Stat
from conversations.attachments.configured_storage import storage
from conversations.attachments.io_threads import on_decoders, on_files
from conversations.attachments.object_names import (
    ImageKind,
    StoredObject,
    is_sent,
    is_wellformed,
    mime_type_of,
    new_object,
    owner_prefix,
)
from conversations.attachments.spool import Spool

PIECE: Final = 128 * 1024
_CHECKED_AT_ONCE: Final = 200


# --- keep ---------------------------------------------------------------------------------------


async def keep(sent: Spool, *, owner_id: UUID, thread: str, run: str) -> StoredObject:
    """Store the sent file, once it is found to be an image; `thread` and `run` passed `place`.

    Raise UnsupportedMedia, InvalidRequest (`attachment_refused`), StorageFull, Unavailable; then
    no part of the file is left.
    """
    await sent.flush()
    kind = await on_decoders(images.clean, sent.path, sent.cleaned)
    return await keep_file(sent.cleaned, kind, owner_id=owner_id, thread=thread, run=run)


async def keep_file(
    file: Path, kind: ImageKind, *, owner_id: UUID, thread: str, run: str
) -> StoredObject:
    """Store a file whose kind has been checked, unless the scanner refuses it."""
    await scanning.scan(file, kind.mime_type)
    stored = new_object(owner_id, thread=thread, run=run, kind=kind)
    await stored_files.add(stored, owner_id=owner_id, thread=thread)
    try:
        await on_files(storage().save, stored.path, file, kind.mime_type)
    except ParleyError:
        await _discard(stored)
        raise
    return stored


async def _discard(stored: StoredObject) -> None:
    with suppress(ParleyError):  # a file that cannot be deleted now is an orphan, and upkeep finds it
        await on_files(storage().delete, [stored.path])
        await stored_files.forget([stored.path])


# --- read ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that exists, with the data of its response."""

    stored: StoredObject
    stat: Stat

    async def stream(self, start: int, count: int) -> AsyncGenerator[bytes]:
        """Yield `count` bytes from `start`, in pieces; end early if the file is deleted meanwhile."""
        reader = await on_files(storage().open, self.stored.path, start)
        if reader is None:
            return
        try:
            while count and (piece := await on_files(reader.read, min(count, PIECE))):
                count -= len(piece)
                yield piece
        finally:
            reader.close()


async def opened(stored: StoredObject) -> Opened | None:
    """Return the file, or None if there is no such file."""
    if not is_wellformed(stored):
        return None
    stat = await on_files(storage().stat, stored.path)
    return Opened(stored, stat) if stat else None


async def address(stored: StoredObject) -> str | None:
    """Return a short-lived address at the storage itself, if it has any."""
    return await on_files(storage().address, stored.path, mime_type_of(stored))


async def exists(bucket: str, path: str) -> bool:
    """Return whether there is such a file."""
    return await opened(StoredObject(bucket, path)) is not None


async def find_sent(file_id: UUID, *, owner_id: UUID) -> StoredObject | None:
    """Return the owner's file of this id that a client has sent, or None."""
    found = await stored_files.find(file_id, owner_id=owner_id)
    stored = StoredObject(found[0], found[1]) if found else None
    return stored if stored and is_sent(stored) else None


async def read_bytes(bucket: str, path: str, *, limit: int) -> bytes | None:
    """Return the whole file, or None if it is gone or larger than `limit` bytes."""
    stored = StoredObject(bucket, path)
    if not is_wellformed(stored):
        return None
    return await on_files(_read_whole, path, limit)


def _read_whole(path: str, limit: int) -> bytes | None:
    reader: Reader | None = storage().open(path, 0)
    if reader is None:
        return None
    try:
        found = bytearray()
        while len(found) <= limit and (piece := reader.read(PIECE)):
            found += piece
    finally:
        reader.close()
    return bytes(found) if len(found) <= limit else None


# --- delete -------------------------------------------------------------------------------------


async def delete_thread_files(owner_id: UUID, thread_id: UUID) -> None:
    """Delete the files of a thread; call it while the thread's messages are still there.

    Those uploaded for the thread go, and those that its messages name and no other thread's do.
    """
    async for paths in stored_files.named_by_thread_alone(owner_id, thread_id):
        await on_files(storage().delete, paths)
        await stored_files.forget(paths)
    await on_files(storage().delete_below, f"{owner_prefix(owner_id)}{thread_id}/")
    await stored_files.forget_thread(owner_id, thread_id)


async def delete_user_files(owner_id: UUID) -> int:
    """Delete every file that a user has stored. Return their number."""
    count = await on_files(storage().delete_below, owner_prefix(owner_id))
    await stored_files.forget_user(owner_id)
    return count


async def sweep() -> tuple[int, bool]:
    """Delete some of the files that no message has named for ATTACHMENT_ORPHAN_DAYS.

    Return their number, and whether more may be due.
    """
    orphans, due = await stored_files.check_due(_CHECKED_AT_ONCE)
    if orphans:
        await on_files(storage().delete, orphans)
        await stored_files.forget(orphans)
    await on_files(spool.drop_stale)
    return len(orphans), due == _CHECKED_AT_ONCE
