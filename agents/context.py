"""Build what a runner is given: the system message, the conversation so far and the findings."""

from __future__ import annotations

from typing import Final, Literal
from uuid import UUID

from agents.runners.base import ChatMessage
from config import database

WINDOW: Final = 40

# Messages of earlier runs, a run at a time: a message that was queued behind a running answer
# belongs after that answer, whatever its place in the thread.
_HISTORY: Final = """
SELECT role, content FROM (
    SELECT m.role, m.content, run.thread_seq, m.seq FROM conversations_message m
    JOIN conversations_run run ON run.id = m.run_id
    WHERE m.thread_id = %s AND run.thread_seq < %s AND m.role IN ('user', 'assistant')
    ORDER BY run.thread_seq DESC, m.seq DESC LIMIT %s
) newest ORDER BY thread_seq, seq
"""


async def history(thread_id: UUID, *, before: int) -> tuple[ChatMessage, ...]:
    """What was said in the thread before the run whose place is `before`; the newest `WINDOW`."""
    if before <= 1:
        return ()
    async with database.connection() as connection:
        cursor = await connection.execute(_HISTORY, (thread_id, before, WINDOW))
        return tuple(ChatMessage(_role(role), content) for role, content in await cursor.fetchall())


def _role(stored: str) -> Literal["user", "assistant"]:
    return "assistant" if stored == "assistant" else "user"
