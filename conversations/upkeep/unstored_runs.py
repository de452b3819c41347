"""Erase the content of runs that are not stored (OpenAI's `store: false`), or are deleted.

While such a run is live it is as durable as any other: its request and its log hold all of it. Its
messages never enter the thread, so neither history nor search, titles or exports have to omit
them. After its end nobody finds it any more (`client_queries.fetch_run`), and a minute later, when its
last reader has got the rest, upkeep empties its request and deletes its log. The numbers of the row
stay.

A run that waits for approval keeps the data that the next one needs until that has used it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from config import database
from conversations.log.fold import ENDED_BEFORE

AFTER_S: Final = 60.0
AT_ONCE: Final = 50
_DUE: Final = f"""
SELECT id FROM conversations_run run
WHERE NOT stored AND NOT folded AND {ENDED_BEFORE} AND NOT EXISTS (
    SELECT FROM conversations_interrupt held LEFT JOIN conversations_run told ON told.id = told_run_id
    WHERE held.run_id = run.id AND (told.status IN ('queued', 'running')
        OR told_run_id IS NULL AND held.status IN ('pending', 'approved', 'refused'))
)
ORDER BY finished_at LIMIT %s FOR NO KEY UPDATE SKIP LOCKED
"""
# a tool's file is kept for its thread: of no thread it is swept, as is what came with the request
_FILES: Final = """
UPDATE conversations_attachment file SET thread = '_', check_at = now() FROM conversations_run run
WHERE run.id = ANY(%s) AND file.owner_id = run.owner_id AND file.thread = run.thread_id::text
    AND (position(run.id::text IN file.path) > 0 OR position(file.path IN run.request::text) > 0)
"""
_FORGET: Final = (
    _FILES,
    "DELETE FROM conversations_interrupt WHERE run_id = ANY(%s)",
    "DELETE FROM conversations_eventbatch WHERE run_id = ANY(%s)",
    """
    UPDATE conversations_run SET folded = true, prompt_values = NULL, state = NULL,
        request = jsonb_build_object(
        'dialect', dialect, 'model', model, 'messages', jsonb_build_array(),
        'request_id', request_id, 'stored', false)
    WHERE id = ANY(%s)
    """,
)


async def erase_due() -> int:
    """Erase up to AT_ONCE runs that ended more than AFTER_S ago. Return their number."""
    async with database.connection() as connection, connection.transaction():
        rows = await (await connection.execute(_DUE, (AFTER_S, AT_ONCE))).fetchall()
        ids = [run_id for (run_id,) in rows]
        for statement in _FORGET if ids else ():
            await connection.execute(statement, (ids,))
    return len(ids)


# --- one that was stored ------------------------------------------------------------------------

_UNSTORE: Final = """
UPDATE conversations_run SET stored = false, folded = false
WHERE id = %(run_id)s AND owner_id = %(owner_id)s AND stored RETURNING thread_id
"""
# The branch that it began begins with the next run now, and the shown one ends with the run before.
_FORK_ON: Final = """
UPDATE conversations_run next SET continues_run_id = gone.continues_run_id
FROM conversations_run gone
WHERE gone.id = %(run_id)s AND gone.continues_run_id IS NOT NULL AND next.continues_run_id IS NULL
    AND next.id = (
        SELECT after.id FROM conversations_run after WHERE after.thread_id = gone.thread_id
            AND (after.thread_seq, after.id) > (gone.thread_seq, gone.id) AND after.stored
        ORDER BY after.thread_seq, after.id LIMIT 1)
"""
_HEAD_BACK: Final = """
UPDATE conversations_thread thread SET head_run_id = (
    SELECT before.id FROM conversations_run before, conversations_branch(%(run_id)s) stretch
    WHERE before.thread_id = thread.id AND before.stored
        AND (before.thread_seq, before.id) >= (stretch.first_seq, stretch.first_id)
        AND (before.thread_seq, before.id) <= (stretch.last_seq, stretch.last_id)
    ORDER BY before.thread_seq DESC, before.id DESC LIMIT 1)
WHERE thread.head_run_id = %(run_id)s
"""
_FIRST_SAID: Final = """
SELECT content FROM conversations_message
WHERE {of} = %s AND role = 'user' AND seq IS NOT NULL ORDER BY seq LIMIT 1
"""
_RETELL: Final = """
UPDATE conversations_thread SET summary = NULL,
    title = CASE WHEN title = %(old)s THEN %(new)s ELSE title END,
    last_seq = CASE WHEN %(empty)s THEN 0 ELSE last_seq END,
    updated_at = CASE WHEN %(empty)s THEN to_timestamp(0) ELSE updated_at END
WHERE id = %(thread_id)s
"""
_LEFT: Final = """
SELECT EXISTS (SELECT FROM conversations_message WHERE thread_id = %(thread_id)s AND seq IS NOT NULL)
    OR EXISTS (SELECT FROM conversations_run
        WHERE thread_id = %(thread_id)s AND finished_at IS NULL AND stored)
"""


DELETE_MESSAGES: Final = ("DELETE FROM conversations_message WHERE run_id = %s",)


async def erase_run(run_id: UUID, *, owner_id: UUID, messages: Sequence[str] = DELETE_MESSAGES) -> bool:
    """Erase the content of the owner's run: messages, approvals, title, and soon its log.

    `messages` are the statements that take the run's id and leave none of its messages in the thread.
    Return False if there is no such run. A live run goes on, and nothing of it will be kept: the caller
    ends it.
    """
    arguments: dict[str, Any] = {"run_id": run_id, "owner_id": owner_id}
    async with database.connection() as connection, connection.transaction():
        row = await (await connection.execute(_UNSTORE, arguments)).fetchone()
        if row is None:
            return False
        await connection.execute(_FORK_ON, arguments)
        await connection.execute(_HEAD_BACK, arguments)
        old = await (await connection.execute(_FIRST_SAID.format(of="run_id"), (run_id,))).fetchone()
        for statement in (*messages, "DELETE FROM conversations_interrupt WHERE run_id = %s"):
            await connection.execute(statement, (run_id,))
        thread = {"thread_id": row[0]}
        new = await (await connection.execute(_FIRST_SAID.format(of="thread_id"), row)).fetchone()
        left = await (await connection.execute(_LEFT, thread)).fetchone()
        titles = {"old": make_title(old[0] if old else ""), "new": make_title(new[0] if new else "")}
        await connection.execute(_RETELL, thread | titles | {"empty": left == (False,)})
    return True


def make_title(text: str) -> str:
    """Return the title of a thread that begins with these words."""
    return " ".join(text[:400].split())[:80]
