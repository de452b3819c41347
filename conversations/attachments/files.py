"""Keeping, reading and deleting files: the checks, the row and the storage in the right order."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from config.errors import InvalidRequest, ParleyError
from conversations.attachments import catalogue, images, scanning, spool
from conversations.attachments.objects import (
    NOT_GIVEN,
    StoredObject,
    is_wellformed,
    mime_type_of,
    new_object,
    owner_prefix,
    place,
)
from conversations.attachments.spool import Spool
from conversations.attachments.storage import Reader, Stat, storage
from conversations.attachments.threads import on_decoders, on_files

PIECE: Final = 128 * 1024
_CHECKED_AT_ONCE: Final = 200


# --- keep ---------------------------------------------------------------------------------------


async def keep(sent: Spool, *, owner_id: UUID, thread: str, run: str) -> StoredObject:
    """Store what has been sent, once it is found to be an image; `thread` and `run` passed `place`.

    Raises UnsupportedMedia, InvalidRequest (`attachment_refused`), StorageFull, Unavailable; then
    nothing is left of it.
    """
    await sent.flush()
    kind = await on_decoders(images.clean, sent.path, sent.cleaned)
    await scanning.scan(sent.cleaned, kind.mime_type)
    stored = new_object(owner_id, thread=thread, run=run, kind=kind)
    await catalogue.add(stored, owner_id=owner_id, thread=thread)
    try:
        await on_files(storage().save, stored.path, sent.cleaned, kind.mime_type)
    except ParleyError:
        await _discard(stored)
        raise
    return stored


async def store_bytes(data: bytes, *, owner_id: UUID, thread: str, run: str) -> StoredObject:
    """Store an image that a client sent inline; the same checks and errors as an upload's.

    A thread or run that cannot be part of a path is left out of it.
    """
    async with Spool() as sent:
        await sent.write(data)
        return await keep(sent, owner_id=owner_id, thread=_place(thread), run=_place(run))


async def store_base64(data: str, *, owner_id: UUID, thread: str, run: str) -> StoredObject:
    """`store_bytes` for base64; InvalidRequest (`invalid_binary_data`) for what is none."""
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidRequest("binary content data must be base64", code="invalid_binary_data") from None
    return await store_bytes(decoded, owner_id=owner_id, thread=thread, run=run)


def _place(given: str) -> str:
    try:
        return place(given, field="")
    except InvalidRequest:
        return NOT_GIVEN


async def _discard(stored: StoredObject) -> None:
    with suppress(ParleyError):  # what cannot be deleted now is an orphan, and upkeep finds it
        await on_files(storage().delete, [stored.path])
        await catalogue.forget([stored.path])


# --- read ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Opened:
    """A file that exists, with what its response says."""

    stored: StoredObject
    stat: Stat

    async def stream(self, start: int, count: int) -> AsyncGenerator[bytes]:
        """`count` bytes from `start`, in pieces; ends early if the file goes meanwhile."""
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
    """The file, or None if there is no such one."""
    if not is_wellformed(stored):
        return None
    stat = await on_files(storage().stat, stored.path)
    return Opened(stored, stat) if stat else None


async def address(stored: StoredObject) -> str | None:
    """A short-lived address at the storage itself, if it has any."""
    return await on_files(storage().address, stored.path, mime_type_of(stored))


async def exists(bucket: str, path: str) -> bool:
    """Whether there is such a file."""
    return await opened(StoredObject(bucket, path)) is not None


async def read_bytes(bucket: str, path: str, *, limit: int) -> bytes | None:
    """The whole file, or None if it is gone or larger than `limit` bytes."""
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
    async for paths in catalogue.named_by_thread_alone(owner_id, thread_id):
        await on_files(storage().delete, paths)
        await catalogue.forget(paths)
    await on_files(storage().delete_below, f"{owner_prefix(owner_id)}{thread_id}/")
    await catalogue.forget_thread(owner_id, thread_id)


async def delete_user_files(owner_id: UUID) -> int:
    """Delete everything a user has stored; how many files."""
    count = await on_files(storage().delete_below, owner_prefix(owner_id))
    await catalogue.forget_user(owner_id)
    return count


async def sweep() -> tuple[int, bool]:
    """Delete files that no message has named for ATTACHMENT_ORPHAN_DAYS, some of them.

    How many, and whether more may be due.
    """
    orphans, due = await catalogue.check_due(_CHECKED_AT_ONCE)
    if orphans:
        await on_files(storage().delete, orphans)
        await catalogue.forget(orphans)
    await on_files(spool.drop_stale)
    return len(orphans), due == _CHECKED_AT_ONCE
