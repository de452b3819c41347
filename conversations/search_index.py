"""The search index's upkeep (the index itself is migration 0005's).

A writer only notes the keys of a message in the index's pending list, so that starting and ending a
run costs no search in a large index. Every search looks through that list, so it must stay short.
"""

from __future__ import annotations

from typing import Final

from config import database

_MERGE: Final = "SELECT gin_clean_pending_list('message_tokens')"


async def merge_new() -> int:
    """Merge what was noted lately into the index proper; how many pages of notes there were."""
    async with database.connection() as connection:
        row = await (await connection.execute(_MERGE)).fetchone()
    return row[0] if row else 0
