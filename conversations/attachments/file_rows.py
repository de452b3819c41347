"""The rows of stored files, by SQL: their owners, and those that no message names."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings

from config import sql
from conversations.attachments.object_names import StoredObject, owner_prefix

_ADD: Final = """
INSERT INTO conversations_attachment (id, owner_id, thread, bucket, path, created_at, check_at)
VALUES (%s, %s, %s, %s, %s, now(), now() + %s)
"""


async def record_file(stored: StoredObject, *, owner_id: UUID, thread: str) -> None:
    """Record a file that is about to be stored."""
    arguments = (stored.file_id, owner_id, thread, stored.bucket, stored.path, orphan_age())
    await sql.change(_ADD, arguments)


class FileRow(NamedTuple):
    """A stored file, and the thread for which it was stored: `_` for none."""

    stored: StoredObject
    thread: str


_FIND: Final = """
SELECT bucket, path, thread FROM conversations_attachment WHERE id = %s AND owner_id = %s
"""


async def find_file(file_id: UUID, *, owner_id: UUID) -> FileRow | None:
    """Return the owner's file, or None."""
    row = await sql.one(_FIND, (file_id, owner_id))
    return FileRow(StoredObject(row[0], row[1]), row[2]) if row else None


def orphan_age() -> timedelta:
    """Return how long a file stays that no message names, and until its next check."""
    return timedelta(days=settings.ATTACHMENT_ORPHAN_DAYS)


async def delete_rows(paths: Sequence[str]) -> None:
    """Delete the rows of deleted files."""
    await sql.change("DELETE FROM conversations_attachment WHERE path = ANY(%s)", (list(paths),))


# A message holds one file as an object and several as an array (DESIGN §11.3); the index takes both.
# OFFSET 0 keeps the planner from joining, so that each file costs two looks into the index.
_NAMED: Final = """
EXISTS (SELECT FROM conversations_message message
    WHERE message.metadata ? 'user_message_attachments'
        AND message.metadata->'user_message_attachments' @> jsonb_build_object('path', file.path)
        {other} OFFSET 0)
OR EXISTS (SELECT FROM conversations_message message
    WHERE message.metadata ? 'user_message_attachments'
        AND message.metadata->'user_message_attachments'
            @> jsonb_build_array(jsonb_build_object('path', file.path))
        {other} OFFSET 0)
"""

# No message names a file of our tools: it stays as long as its thread does.
_OF_THREAD: Final = """
OR (file.path LIKE '%%.json' AND EXISTS (SELECT FROM conversations_thread thread WHERE thread.id =
    CASE WHEN file.thread ~ '^[0-9a-f-]{36}$' THEN file.thread::uuid END OFFSET 0))
"""
_CHECK: Final = f"""
WITH file AS (
    SELECT id, path, thread FROM conversations_attachment
    WHERE check_at <= now() ORDER BY check_at LIMIT %s
), named AS (
    SELECT file.id FROM file WHERE {_NAMED.format(other="")} {_OF_THREAD}
), kept AS (
    UPDATE conversations_attachment SET check_at = now() + %s WHERE id IN (SELECT id FROM named)
)
SELECT path, id IN (SELECT id FROM named) FROM file
"""


async def find_orphans(count: int) -> tuple[list[str], int]:
    """Return the paths that nothing needs, of the `count` files that are due, and how many were due.

    The others are put off until they are due again, so a file whose message goes is found later.
    """
    rows = await sql.every(_CHECK, (count, orphan_age()))
    return [path for path, is_named in rows if not is_named], len(rows)


_NAMED_BY_THREAD: Final = """
SELECT seq, metadata->'user_message_attachments' FROM conversations_message
WHERE thread_id = %s AND seq > %s AND metadata ? 'user_message_attachments' ORDER BY seq LIMIT %s
"""
_NAMED_ELSEWHERE: Final = f"""
SELECT file.path FROM unnest(%(paths)s::text[]) AS file(path)
WHERE {_NAMED.format(other="AND message.thread_id <> %(thread_id)s")}
"""
_AT_ONCE: Final = 500


async def list_files_of_thread_alone(owner_id: UUID, thread_id: UUID) -> AsyncIterator[list[str]]:
    """Yield the owner's files that messages of this thread name and no other thread's do, in lists."""
    seq = 0
    while rows := await sql.every(_NAMED_BY_THREAD, (thread_id, seq, _AT_ONCE)):
        seq = rows[-1][0]
        own = {path for _, named in rows for path in _paths(named) if _is_of(path, owner_id)}
        arguments = {"paths": list(own), "thread_id": thread_id}
        elsewhere = {path for (path,) in await sql.every(_NAMED_ELSEWHERE, arguments)}
        yield sorted(own - elsewhere)


def _paths(named: object) -> list[str]:
    several = named if isinstance(named, list) else [named]
    return [str(one["path"]) for one in several if isinstance(one, dict) and "path" in one]


def _is_of(path: str, owner_id: UUID) -> bool:
    return path.startswith(owner_prefix(owner_id)) and ".." not in path


async def delete_thread_rows(owner_id: UUID, thread_id: UUID) -> None:
    await sql.change(
        "DELETE FROM conversations_attachment WHERE owner_id = %s AND thread = %s",
        (owner_id, str(thread_id)),
    )


async def delete_user_rows(owner_id: UUID) -> None:
    await sql.change("DELETE FROM conversations_attachment WHERE owner_id = %s", (owner_id,))
