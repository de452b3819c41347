"""Read what a run goes on from: what was said in its thread, as far back as it can use, and the state.

The thread is read backwards, a page at a time, until there is as much as the model's context takes.
"""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from agents.requests import AskedCall, Attachment, InputMessage
from agents.runners.tokens import estimate
from config import database

MOST_MESSAGES: Final = 1_000
_FIRST_PAGE: Final = 40
_GROWTH: Final = 4
_OF_MESSAGE: Final = 4
Place = tuple[int, UUID, int]


class Summary(Struct, frozen=True):
    """What was said up to a place (run's place, run, message's place) of a thread, in short."""

    text: str
    place: Place


class Said(Struct, frozen=True):
    """A message of an earlier run, and where in the thread it stands."""

    message: InputMessage
    place: Place


class SoFar(Struct, frozen=True):
    """What a thread holds when a run begins; `interrupted` if calls wait, or did, for approval."""

    said: tuple[Said, ...] = ()
    state: Any = None
    interrupted: bool = False
    summary: Summary | None = None

    @property
    def messages(self) -> tuple[InputMessage, ...]:
        return tuple(one.message for one in self.said)


# Messages of earlier runs, a run at a time: a message that was queued behind a running answer
# belongs after that answer, whatever its place in the thread.
_PAGE: Final = """
SELECT run.thread_seq, m.run_id, m.seq,
    m.role, m.content, m.client_id, m.metadata->'tool_calls' AS calls,
    m.metadata->'user_message_attachments' AS attachments,
    m.metadata->'tool_agent_output'->>'tool_call_id' AS call_id, m.tool_name,
    m.metadata->'tool_arguments' AS arguments,
    coalesce(m.metadata->'tool_agent_output'->'result',
        m.metadata->'tool_agent_output'->'error') AS answer,
    m.metadata->'reasoning' AS reasoning
FROM conversations_message m JOIN conversations_run run ON run.id = m.run_id
WHERE m.thread_id = %s AND (run.thread_seq, run.id) < (%s, %s)
    AND run.thread_seq BETWEEN %s AND %s
    AND (run.thread_seq, m.run_id, m.seq) < (%s, %s, %s)
    AND (run.thread_seq, m.run_id, m.seq) > (%s, %s, %s)
    AND m.role IN ('user', 'assistant', 'tool', 'system', 'developer')
ORDER BY run.thread_seq DESC, m.run_id DESC, m.seq DESC LIMIT %s
"""
_STATE: Final = """
SELECT state, EXISTS (SELECT FROM conversations_interrupt WHERE thread_id = thread.id
    AND (told_run_id IS NULL OR told_run_id = %s)), summary
FROM conversations_thread thread WHERE id = %s
"""
_ENDLESS: Final = 2**31 - 1
_BEGINNING: Final[Place] = (-1, UUID(int=0), -1)
_KEEP_SUMMARY: Final = "UPDATE conversations_thread SET summary = %s::jsonb WHERE id = %s"


async def so_far(
    thread_id: UUID, *, before: int, run_id: UUID, budget: int, summaries: bool = False
) -> SoFar:
    """What was said in the thread before the run, and its state.

    The newest messages that come to `budget` tokens or a little more, at most `MOST_MESSAGES`; with
    `summaries` none that the thread's summary tells.
    """
    if before <= 1:
        return SoFar()
    async with database.connection() as connection:
        row: Any = await (await connection.execute(_STATE, (run_id, thread_id))).fetchone()
        state, interrupted, stored = row or (None, False, None)
        summary = msgspec.convert(stored, Summary) if summaries and stored else None
        since = summary.place if summary else _BEGINNING
        said = await _backwards(connection, (thread_id, before, run_id), since, budget)
    return SoFar(said, state, interrupted, summary)


async def keep_summary(thread_id: UUID, summary: Summary) -> None:
    """Remember the summary with the thread; it goes when the thread does."""
    async with database.connection() as connection:
        await connection.execute(_KEEP_SUMMARY, (msgspec.json.encode(summary).decode(), thread_id))


async def _backwards(
    connection: AsyncConnection[Any], of_run: tuple[UUID, int, UUID], since: Place, budget: int
) -> tuple[Said, ...]:
    """Pages, each larger than the last, until the budget is reached; in the order of the thread."""
    found: list[Said] = []
    before: Place = (of_run[1], of_run[2], _ENDLESS)
    page = _FIRST_PAGE
    while True:
        places = (since[0], before[0], *before, *since)
        rows = await (await connection.execute(_PAGE, (*of_run, *places, page))).fetchall()
        for row in rows:
            found.append(Said(_message(*row[3:]), row[:3]))
            budget -= _cost(found[-1].message)
        if len(rows) < page or budget < 0 or len(found) >= MOST_MESSAGES:
            return tuple(reversed(found))
        before, page = found[-1].place, min(page * _GROWTH, MOST_MESSAGES - len(found))


def _cost(said: InputMessage) -> int:
    calls = sum(estimate(call.arguments) for call in said.tool_calls)
    return _OF_MESSAGE + estimate(said.content) + calls


def _message(
    role: Any,
    content: str,
    client_id: str | None,
    calls: list[dict[str, Any]] | None,
    attachments: dict[str, Any] | list[dict[str, Any]] | None,
    call_id: str | None,
    tool_name: str | None,
    arguments: dict[str, Any] | None,
    answer: Any,
    reasoning: list[dict[str, Any]] | None,
) -> InputMessage:
    """A row as the client's own message of the same kind would be."""
    kept = tuple(reasoning or ())
    if role == "tool":
        return InputMessage(
            "tool",
            answer if isinstance(answer, str) else msgspec.json.encode(answer).decode(),
            client_id,
            name=tool_name,
            tool_call_id=call_id,
            tool_calls=_own_call(call_id, tool_name, arguments),
            reasoning=kept,
        )
    files = [attachments] if isinstance(attachments, dict) else attachments or []
    return InputMessage(
        role,
        content,
        client_id,
        attachments=tuple(msgspec.convert(file, Attachment) for file in files),
        tool_calls=tuple(msgspec.convert(call, AskedCall) for call in calls or ()),
        reasoning=kept,
    )


def _own_call(
    call_id: str | None, tool_name: str | None, arguments: dict[str, Any] | None
) -> tuple[AskedCall, ...]:
    """The call that a server tool's answer belongs to; it stands in the same row."""
    if call_id is None or tool_name is None or arguments is None:
        return ()
    return (AskedCall(call_id, tool_name, msgspec.json.encode(arguments).decode()),)
