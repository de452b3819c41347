"""The newest messages of a thread in the order of its runs; always the owner's own (P10).

A message that was queued behind a running answer belongs after that answer, whatever its place. Of a
thread with branches one branch is read; the system messages that lead it come first.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from config import database, sql
from conversations.threads import branches
from conversations.threads.branches import IN_BRANCH, OF_BRANCH, leading_place, split_leading
from conversations.threads.ownership import thread_not_found

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
_BEFORE: Final = """
    AND (m.run_id = %(run_id)s AND NOT m.metadata ? 'message_id' OR (run.thread_seq, run.id) <
        (SELECT thread_seq, id FROM conversations_run WHERE id = %(run_id)s))
"""
_BRANCH: Final = f" AND {IN_BRANCH}"
_THREAD: Final = """
SELECT thread.state, (
    SELECT id FROM conversations_run WHERE thread_id = thread.id AND owner_id = thread.owner_id
        AND (stored OR status IN ('queued', 'running'))
    ORDER BY status = 'running' DESC, status = 'queued' DESC, thread_seq DESC, id DESC LIMIT 1
), CASE WHEN fork_run_id IS NOT NULL THEN head_run_id END
FROM conversations_thread thread WHERE id = %(thread_id)s AND owner_id = %(owner_id)s
"""


class ThreadMessage(Struct, frozen=True):
    """A stored message, as far as a dialect needs it."""

    id: str
    role: str
    content: str
    metadata: dict[str, Any]
    client_id: str | None


class ThreadHead(Struct, frozen=True):
    """A thread's state, and the run that a reader would follow: the live one, else the newest.

    `branch` is the last run of the branch last continued; None while there is one branch only.
    """

    state: Any
    run_id: UUID | None
    branch: UUID | None = None


async def fetch_messages(
    thread_id: UUID, *, owner_id: UUID, branch: UUID | None = None
) -> list[ThreadMessage]:
    """Return the newest messages of the thread, or of the branch that ends with this run."""
    return await _fetch_rows("", thread_id, owner_id, branch)


async def fetch_messages_before(
    run_id: UUID, *, thread_id: UUID, owner_id: UUID, branched: bool = False
) -> list[ThreadMessage]:
    """Return the newest messages up to the run's input, without the run's own messages."""
    return await _fetch_rows(_BEFORE, thread_id, owner_id, run_id if branched else None, run_id)


async def _fetch_rows(
    condition: str, thread_id: UUID, owner_id: UUID, branch: UUID | None, run_id: UUID | None = None
) -> list[ThreadMessage]:
    arguments = {"thread_id": thread_id, "owner_id": owner_id, "run_id": run_id, "most": MOST}
    query = f"{_COLUMNS}{condition}{_NEWEST}"
    if branch is not None:
        query = f"{OF_BRANCH}{_COLUMNS}{condition}{_BRANCH}{_NEWEST}"
    rows = [ThreadMessage(*row) for row in await sql.every(query, arguments | {"branch": branch})]
    leading, rest = split_leading(rows, lambda row: leading_place(row.metadata), _is_system)
    return [*(row for row in leading if row.content), *rest]


def _is_system(row: ThreadMessage) -> bool:
    return row.role in ("system", "developer")


async def fetch_thread_head(
    thread_id: UUID, *, owner_id: UUID, branch: UUID | None = None
) -> ThreadHead:
    """Return the head of the user's thread. Raise NotFound for an unknown and a foreign one alike.

    With `branch`, a run of the thread, return the head of the branch that ends with it.
    """
    async with database.connection() as connection:
        arguments = {"thread_id": thread_id, "owner_id": owner_id}
        row = await (await connection.execute(_THREAD, arguments)).fetchone()
        if row is None:
            raise thread_not_found()
        head = ThreadHead(*row)
        shown = branch or (head.run_id if head.branch else None)
        if shown is None:
            return head
        state = await branches.fetch_state(connection, thread_id, shown)
    return ThreadHead(state, shown, branch or head.branch)
