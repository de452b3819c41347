"""The messages of a thread as a model reads them again: one page at a time, backwards, as plain rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from config import sql
from conversations.threads.branches import IN_BRANCH, OF_BRANCH

MessagePlace = tuple[int, UUID, int]
"""Where a message stands: the place of its run in the thread, its run, its own place there."""
BEGINNING: Final[MessagePlace] = (-1, UUID(int=0), -1)


class EarlierMessage(NamedTuple):
    """A stored message, as far as a model reads it again; JSON columns as stored."""

    role: str
    content: str
    client_id: str | None
    calls: list[dict[str, Any]] | None
    attachments: dict[str, Any] | list[dict[str, Any]] | None
    call_id: str | None
    tool_name: str | None
    arguments: dict[str, Any] | None
    answer: Any
    reasoning: list[dict[str, Any]] | None
    leading: Any
    layout: list[int | None] | None


class ThreadContext(NamedTuple):
    """A thread beside its messages: `interrupted` if calls wait, or did, for approval."""

    state: Any = None
    interrupted: bool = False
    summary: Any = None
    branched: bool = False


# Messages of earlier runs, a run at a time: a message that was queued behind a running answer
# belongs after that answer, whatever its place in the thread.
_SAID: Final = """
    m.role, m.content, m.client_id, m.metadata->'tool_calls' AS calls,
    m.metadata->'user_message_attachments' AS attachments,
    m.metadata->'tool_agent_output'->>'tool_call_id' AS call_id, m.tool_name,
    m.metadata->'tool_arguments' AS arguments,
    coalesce(m.metadata->'tool_agent_output'->'result',
        m.metadata->'tool_agent_output'->'error') AS answer,
    m.metadata->'reasoning' AS reasoning,
    CASE WHEN NOT m.metadata ? 'message_id' THEN m.metadata->'leading' END AS leading,
    m.metadata->'content_layout' AS layout
"""
_PAGE: Final = (
    f"SELECT run.thread_seq, m.run_id, m.seq, {_SAID}"
    """
FROM conversations_message m JOIN conversations_run run ON run.id = m.run_id
WHERE m.thread_id = %(thread_id)s AND (run.thread_seq, run.id) < (%(before)s, %(run_id)s)
    AND run.thread_seq BETWEEN %(first_seq)s AND %(last_seq)s
    AND (run.thread_seq, m.run_id, m.seq) < (%(last_seq)s, %(last_id)s, %(last)s)
    AND (run.thread_seq, m.run_id, m.seq) > (%(first_seq)s, %(first_id)s, %(first)s)
    AND m.role IN ('user', 'assistant', 'tool', 'system', 'developer'){of_branch}
ORDER BY run.thread_seq DESC, m.run_id DESC, m.seq DESC LIMIT %(page)s
"""
)
_OF_THREAD: Final = _PAGE.format(of_branch="")
_OF_BRANCH: Final = OF_BRANCH + _PAGE.format(of_branch=f"\n    AND {IN_BRANCH}")
_STATE: Final = """
SELECT state, EXISTS (SELECT FROM conversations_interrupt WHERE thread_id = thread.id
    AND (told_run_id IS NULL OR told_run_id = %(run_id)s)), summary, fork_run_id IS NOT NULL
FROM conversations_thread thread WHERE id = %(thread_id)s
"""
_OWN: Final = """
SELECT EXISTS (SELECT FROM conversations_interrupt WHERE thread_id = %(thread_id)s
    AND (told_run_id IS NULL OR told_run_id = %(run_id)s)
    AND conversations_in_branch(%(run_id)s, run_id)), conversations_in_branch(%(run_id)s, %(told)s)
"""
_KEEP_SUMMARY: Final = "UPDATE conversations_thread SET summary = %s::jsonb WHERE id = %s"
_OF_RUN: Final = f"""
SELECT m.id, {_SAID} FROM conversations_message m
WHERE m.run_id = %s AND m.owner_id = %s AND NOT m.metadata ? 'message_id' AND m.seq IS NOT NULL
ORDER BY m.seq
"""
# by the ids of rows, or by those that their runs gave them: both have an index
_NAMED: Final = f"""
SELECT m.id, {_SAID} FROM conversations_message m
WHERE m.owner_id = %(owner)s AND (m.id = ANY(%(ids)s)
    OR m.run_id = ANY(%(ids)s) AND m.client_id = ANY(%(names)s))
"""


async def fetch_context(
    connection: AsyncConnection[Any], thread_id: UUID, run_id: UUID
) -> ThreadContext:
    """Return the thread beside its messages, as the run finds it."""
    arguments = {"thread_id": thread_id, "run_id": run_id}
    row: Any = await (await connection.execute(_STATE, arguments)).fetchone()
    return ThreadContext(*row) if row else ThreadContext()


async def check_own_branch(
    connection: AsyncConnection[Any], thread_id: UUID, run_id: UUID, *, told: UUID | None
) -> tuple[bool, bool]:
    """Return whether calls of the run's own branch wait, or did, and whether the run `told` is in it."""
    arguments = {"thread_id": thread_id, "run_id": run_id, "told": told}
    row: Any = await (await connection.execute(_OWN, arguments)).fetchone()
    return row[0], row[1]


async def fetch_page(
    connection: AsyncConnection[Any],
    thread_id: UUID,
    run_id: UUID,
    *,
    seq: int,
    after: MessagePlace,
    before: MessagePlace,
    branched: bool,
    limit: int,
) -> list[tuple[MessagePlace, EarlierMessage]]:
    """Return the newest messages between two places and before the run, newest first;
    only those of its own branch where the thread is `branched`. `seq` is the run's place."""
    arguments = {
        "thread_id": thread_id,
        "run_id": run_id,
        "branch": run_id,
        "before": seq,
        "page": limit,
    }
    arguments |= _bounds("first", after) | _bounds("last", before)
    statement = _OF_BRANCH if branched else _OF_THREAD
    rows = await (await connection.execute(statement, arguments)).fetchall()
    return [(row[:3], EarlierMessage(*row[3:])) for row in rows]


def _bounds(end: str, place: MessagePlace) -> dict[str, Any]:
    return {f"{end}_seq": place[0], f"{end}_id": place[1], end: place[2]}


async def fetch_input_messages(run_id: UUID, *, owner_id: UUID) -> list[tuple[UUID, EarlierMessage]]:
    """Return the client's messages of this run, and the id of each message's row."""
    return [(row[0], EarlierMessage(*row[1:])) for row in await sql.every(_OF_RUN, (run_id, owner_id))]


async def fetch_messages_by_id(
    ids: Sequence[UUID], names: Sequence[str], *, owner_id: UUID
) -> list[tuple[UUID, EarlierMessage]]:
    """Return the owner's messages with these ids, and of these runs those with these names."""
    arguments = {"owner": owner_id, "ids": list(ids), "names": list(names)}
    return [(row[0], EarlierMessage(*row[1:])) for row in await sql.every(_NAMED, arguments)]


_OF_CLIENT: Final = """
SELECT message.client_id, message.role, message.content
FROM conversations_message message JOIN conversations_thread thread ON thread.id = message.thread_id
WHERE message.thread_id = %(thread_id)s AND thread.owner_id = %(owner_id)s
    AND message.client_id = ANY(%(ids)s) AND (
        %(continues)s::uuid IS NULL AND thread.fork_run_id IS NULL OR conversations_in_branch(
            coalesce(%(continues)s::uuid, thread.head_run_id), message.run_id))
"""


async def find_client_messages(
    client_ids: Sequence[str], *, thread_id: UUID, owner_id: UUID, continues: UUID | None
) -> list[tuple[str, str, str]]:
    """Return id, role and text of the messages that the branch (of the run that it `continues`, or the
    one last continued) holds under these ids of the client."""
    arguments = {"thread_id": thread_id, "owner_id": owner_id, "ids": list(client_ids)}
    return await sql.every(_OF_CLIENT, arguments | {"continues": continues})


async def store_summary(thread_id: UUID, summary: str) -> None:
    """Store the summary (JSON) with the thread; it is deleted with the thread."""
    await sql.change(_KEEP_SUMMARY, (summary, thread_id))
