"""Record which conversation contains text of another, in the transaction that copies it.

Only so can an erasure of a user, or of a conversation, erase the copies that staff made (`retention`).
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from config.errors import NotFound

# The source is locked against deletion until the copy is committed: an erasure that has not found the
# copy waits here, and finds it when it looks again.
_RECORD: Final = """
WITH source AS (
    SELECT id, owner_id FROM conversations_thread WHERE id = %(source)s FOR KEY SHARE
), recorded AS (
    INSERT INTO conversations_threadcopy (thread_id, source_id, owner_id)
    SELECT %(thread)s::uuid, id, owner_id FROM source
    UNION SELECT %(thread)s::uuid, source_id, owner_id FROM conversations_threadcopy
    WHERE thread_id = %(source)s
)
SELECT FROM source
"""


async def record_copy(connection: AsyncConnection[Any], thread_id: UUID, *, source: UUID) -> None:
    """Record that the thread contains the source's text. Raise NotFound if the source is gone."""
    cursor = await connection.execute(_RECORD, {"thread": thread_id, "source": source})
    if await cursor.fetchone() is None:
        raise NotFound("There is no such conversation.", code="conversation_not_found")
