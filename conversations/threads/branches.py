"""Branches of a thread: which runs belong together, and which other ends exist.

A run continues the one before it in the thread, or the one that its row names
(`continues_run_id`). `conversations_branch` (migration 0021) walks back along these; a thread of one
branch, whose row names no `fork_run_id`, is read without it. Readers see the branch last continued.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, TypeVar
from uuid import UUID

from msgspec import Struct
from psycopg import AsyncConnection

BEGINNING: Final = UUID(int=0)
"""What a run continues that begins its conversation anew."""
MOST_TIPS: Final = 50
LEADING: Final = "leading"
"""In a message's metadata: its place among the system messages that lead the conversation."""

OF_BRANCH: Final = "WITH branch AS MATERIALIZED (SELECT * FROM conversations_branch(%(branch)s))\n"
IN_BRANCH: Final = """EXISTS (SELECT FROM branch
    WHERE (run.thread_seq, run.id) >= (branch.first_seq, branch.first_id)
    AND (run.thread_seq, run.id) <= (branch.last_seq, branch.last_id))
"""

OWN_BRANCH: Final = """(NOT EXISTS (
        SELECT FROM conversations_thread WHERE id = %(thread_id)s AND fork_run_id IS NOT NULL
    ) OR conversations_in_branch(%(run_id)s, run.id))"""
"""That a run belongs to the branch of `%(run_id)s`, in a statement without OF_BRANCH."""

T = TypeVar("T")


def split_leading(
    messages: Sequence[T], place: Callable[[T], int], is_system: Callable[[T], bool]
) -> tuple[list[T], list[T]]:
    """Return the system messages that lead the conversation now, and the rest of it.

    `place` gives a message's place among those that a client showed together, or 0. Former leading
    messages are in neither, also if older than the marks; without any mark all messages are the rest.
    """
    led: list[T] = []
    rest: list[T] = []
    for one in messages:
        number = place(one)
        if number == 1:
            led.clear()
        (led if number else rest).append(one)
    return led, rest[count_leading(rest, is_system) :] if led else rest


def count_leading(messages: Sequence[T], is_system: Callable[[T], bool]) -> int:
    """Return the number of system messages at the beginning."""
    return next((at for at, one in enumerate(messages) if not is_system(one)), len(messages))


def leading_place(metadata: dict[str, Any]) -> int:
    """Return the place in the metadata of a client's message; a run's own messages have no mark."""
    found = metadata.get(LEADING)
    return found if isinstance(found, int) and "message_id" not in metadata else 0


# --- what a client may show -----------------------------------------------------------------------

MOST_ENTRIES: Final = 20_000  # a client shows 10,000 messages at most, and a tool's row is two of them
_BLANKS: Final = r"E' \t\r\n'"
_ENTRIES: Final = f"""
SELECT thread.fork_run_id IS NOT NULL, thread.head_run_id, run.id, run.client_run_id,
    run.status IN ('queued', 'running'), message.id::text, message.client_id, message.role,
    message.metadata->>'message_id', message.text, message.size, message.hash, message.head,
    message.tail, message.metadata->'tool_calls',
    coalesce(message.metadata->'tool_agent_output'->>'tool_call_id',
        message.metadata->>'tool_call_id'),
    message.metadata->'tool_agent_output'->>'asked_in', message.metadata->'{LEADING}',
    message.metadata->'user_message_attachments', message.metadata ? 'awaits'
FROM conversations_thread thread
LEFT JOIN conversations_run run ON run.thread_id = thread.id AND run.stored {{of_branch}}
LEFT JOIN LATERAL (
    SELECT id, client_id, role, metadata, seq, length(btrim(content, {_BLANKS})) AS size,
        CASE WHEN metadata ? 'message_id' THEN '' ELSE content END AS text,
        CASE WHEN metadata ? 'message_id' THEN md5(btrim(content, {_BLANKS})) END AS hash,
        CASE WHEN metadata ? 'message_id' THEN left(btrim(content, {_BLANKS}), 200) END AS head,
        CASE WHEN metadata ? 'message_id' THEN right(btrim(content, {_BLANKS}), 60) END AS tail
    FROM conversations_message WHERE run_id = run.id AND seq IS NOT NULL
) message ON true
WHERE thread.id = %(thread_id)s AND thread.owner_id = %(owner_id)s
ORDER BY run.thread_seq DESC, run.id DESC, message.seq DESC LIMIT {MOST_ENTRIES}
"""
_OF_THREAD: Final = _ENTRIES.format(of_branch="")
_OF_BRANCH: Final = OF_BRANCH + _ENTRIES.format(of_branch=f"AND {IN_BRANCH}")


class Entry(Struct, frozen=True):
    """A stored message, as far as a client's own copy of it is compared with it.

    `run_message_id` is the id that a run gave it. A run's message is known by its size, hash, beginning
    and end, a client's message by its `text`. We answer a call that `awaits`, once it is approved.
    """

    id: str
    client_id: str | None
    role: str
    run_message_id: str | None
    text: str
    size: int
    hash: str | None
    head: str | None
    tail: str | None
    calls: Any
    call_id: str | None
    asked_in: str | None
    leading: Any
    files: Any
    awaits: bool | None = None


class Turn(Struct, frozen=True):
    """A run and its messages: first those of its request, then its own."""

    run_id: UUID
    client_run_id: str | None
    live: bool
    entries: tuple[Entry, ...]


class ThreadTurns(Struct, frozen=True):
    """A thread's turns on one branch, oldest first; `head` is the thread's newest run."""

    turns: tuple[Turn, ...] = ()
    branched: bool = False
    head: UUID | None = None

    def holds(self, run_id: UUID) -> bool:
        return any(turn.run_id == run_id for turn in self.turns)


async def fetch_turns(
    connection: AsyncConnection[Any], thread_id: UUID, *, owner_id: UUID, branch: UUID | None = None
) -> ThreadTurns:
    """Return the owner's thread: all of its runs, or those of the branch that ends with this run."""
    arguments = {"thread_id": thread_id, "owner_id": owner_id, "branch": branch}
    statement = _OF_BRANCH if branch else _OF_THREAD
    rows = await (await connection.execute(statement, arguments)).fetchall()
    if not rows:
        return ThreadTurns()
    return ThreadTurns(tuple(_make_turns(rows)), rows[0][0], rows[0][1])


def _make_turns(rows: Sequence[Sequence[Any]]) -> list[Turn]:
    found: dict[UUID, tuple[Sequence[Any], list[Entry]]] = {}
    for row in reversed(rows):
        if row[2] is not None:
            _, entries = found.setdefault(row[2], (row, []))
            if row[5] is not None:
                entries.append(Entry(*row[5:]))
    return [Turn(run_id, head[3], head[4], tuple(entries)) for run_id, (head, entries) in found.items()]


# --- the state, and the other ends ------------------------------------------------------------------

_STATE: Final = f"""
{OF_BRANCH}
SELECT state FROM conversations_run run WHERE thread_id = %(thread_id)s AND state IS NOT NULL
    AND {IN_BRANCH}
ORDER BY thread_seq DESC, id DESC LIMIT 1
"""


async def fetch_state(connection: AsyncConnection[Any], thread_id: UUID, branch: UUID) -> Any:
    """Return the thread's state at the end of the branch that ends with this run."""
    arguments = {"thread_id": thread_id, "branch": branch}
    row = await (await connection.execute(_STATE, arguments)).fetchone()
    return row[0] if row else {}


TIPS: Final = f"""
SELECT tip.id, tip.created_at, coalesce((
    SELECT left(content, 200) FROM conversations_message
    WHERE run_id = tip.id AND role = 'user' AND seq IS NOT NULL ORDER BY seq DESC LIMIT 1), '')
FROM (
    SELECT head_run_id AS id FROM conversations_thread
    WHERE id = %(thread_id)s AND fork_run_id IS NOT NULL
    UNION SELECT (
        SELECT before.id FROM conversations_run before WHERE before.thread_id = fork.thread_id
            AND before.stored AND (before.thread_seq, before.id) < (fork.thread_seq, fork.id)
        ORDER BY before.thread_seq DESC, before.id DESC LIMIT 1
    ) FROM conversations_run fork
    WHERE fork.thread_id = %(thread_id)s AND fork.continues_run_id IS NOT NULL AND fork.stored
) ends JOIN conversations_run tip ON tip.id = ends.id
WHERE tip.stored AND NOT EXISTS (
    SELECT FROM conversations_run later WHERE later.continues_run_id = tip.id AND later.stored)
ORDER BY tip.thread_seq DESC, tip.id DESC LIMIT {MOST_TIPS}
"""


class Tip(Struct, frozen=True):
    """The last run of a branch, the time of its request, and its question."""

    run_id: UUID
    created_at: datetime
    question: str
