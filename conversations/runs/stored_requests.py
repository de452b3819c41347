"""Accepted requests of runs, as stored in the runs' rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from config import sql


class StoredRequest(NamedTuple):
    """The request of a run as JSON, and the place of the run in its thread."""

    thread_id: UUID
    thread_seq: int
    request: str
    client_run_id: str | None
    stored: bool


_REQUEST: Final = """
SELECT thread_id, thread_seq, request::text, client_run_id, stored FROM conversations_run WHERE id = %s
"""
_KNOWN: Final = """
SELECT id FROM conversations_run
WHERE id = ANY(%(ids)s) AND owner_id = %(owner)s AND stored AND finished_at IS NOT NULL
UNION ALL SELECT id FROM conversations_interrupt WHERE id = ANY(%(ids)s) AND owner_id = %(owner)s
"""
_KEEP_VALUES: Final = """
UPDATE conversations_run SET prompt_values = %s WHERE id = %s AND fence = %s AND status = 'running'
"""


async def fetch_request(run_id: UUID) -> StoredRequest | None:
    """Return the run's request, whoever owns it; None where there is no such run."""
    row: Any = await sql.one(_REQUEST, (run_id,))
    return StoredRequest(*row) if row else None


async def find_known_ids(ids: Iterable[UUID], *, owner_id: UUID) -> set[UUID]:
    """Return the ids among these that are ended runs, or interrupts, of the owner."""
    return {row[0] for row in await sql.every(_KNOWN, {"ids": list(ids), "owner": owner_id})}


async def record_prompt_values(run_id: UUID, *, fence: int, values: dict[str, str]) -> None:
    """Record on the run the values of its prompt's variables; with a lost fence nothing."""
    await sql.change(_KEEP_VALUES, (msgspec.json.encode(values).decode(), run_id, fence))
