"""The search index's upkeep (the index itself is migration 0005's).

A writer only adds the keys of a message to the index's pending list, so that starting and ending a
run costs no search in a large index. Every search scans that list, so it must stay short.
"""

from __future__ import annotations

from typing import Final

from config import sql

_MERGE: Final = "SELECT gin_clean_pending_list('message_tokens')"


async def merge_new() -> int:
    """Merge the pending list into the index. Return its number of pages."""
    row = await sql.one(_MERGE)
    return row[0] if row else 0
