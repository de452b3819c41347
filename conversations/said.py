"""The messages of a thread in the order of its runs, the newest of them; always the owner's own (P10).

A message that was queued behind a running answer belongs after that answer, whatever its place.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from config import database
from config.errors import NotFound

MOST: Final = 500

_COLUMNS: Final = """
SELECT id, role, content, metadata, client_id FROM (
    SELECT m.id::text, m.role, m.content, m.metadata, m.client_id, run.thread_seq, m.run_id, m.seq
    FROM conversations_message m JOIN conversations_run run ON run.id = m.run_id
    WHERE m.thread_id = %(thread_id)s AND run.owner_id = %(owner_id)s AND m.seq IS NOT NULL
"""
_NEWEST: Final = """
    ORDER BY run.thread_seq DESC, m.run_id DESC, m.seq DESC LIMIT %(most)s
) newest ORDER BY thread_seq, run_id, seq
"""
_BEFORE: Final = (
    _COLUMNS
    + """ AND (m.run_id = %(run_id)s AND NOT m.metadata ? 'message_id' OR (run.thread_seq, run.id) <
        (SELECT thread_seq, id FROM conversations_run WHERE id = %(run_id)s))
"""
    + _NEWEST
)
_THREAD: Final = """
SELECT thread.state, (
    SELECT id FROM conversations_run WHERE thread_id = thread.id AND owner_id = thread.owner_id
    ORDER BY status = 'running' DESC, status = 'queued' DESC, thread_seq DESC, id DESC LIMIT 1
) FROM conversations_thread thread WHERE id = %(thread_id)s AND owner_id = %(owner_id)s
"""


class Said(Struct, frozen=True):
    """A stored message, as far as a dialect needs it."""

    id: str
    role: str
    content: str
    metadata: dict[str, Any]
    client_id: str | None


class ThreadHead(Struct, frozen=True):
    """A thread's state, and the run that a reader would follow: the live one, else the newest."""

    state: Any
    run_id: UUID | None


async def whole(thread_id: UUID, *, owner_id: UUID) -> list[Said]:
    """The newest messages of the thread."""
    return await _rows(_COLUMNS + _NEWEST, thread_id, owner_id)


async def before(run_id: UUID, *, thread_id: UUID, owner_id: UUID) -> list[Said]:
    """The newest messages up to the run's input, without what the run has said itself."""
    return await _rows(_BEFORE, thread_id, owner_id, run_id)


async def _rows(query: str, thread_id: UUID, owner_id: UUID, run_id: UUID | None = None) -> list[Said]:
    told = {"thread_id": thread_id, "owner_id": owner_id, "run_id": run_id, "most": MOST}
    async with database.connection() as connection:
        return [Said(*row) for row in await (await connection.execute(query, told)).fetchall()]


async def thread_head(thread_id: UUID, *, owner_id: UUID) -> ThreadHead:
    """The head of the user's thread; NotFound for an unknown and for a foreign one alike."""
    async with database.connection() as connection:
        told = {"thread_id": thread_id, "owner_id": owner_id}
        row = await (await connection.execute(_THREAD, told)).fetchone()
    if row is None:
        raise NotFound("There is no such thread.", code="thread_not_found")
    return ThreadHead(*row)
