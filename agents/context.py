"""Read what a run goes on from: what was said in its thread, as far back as it can use, and the state.

The thread is read backwards, a page at a time, until there is as much as the model's context takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import msgspec
from msgspec import Struct
from psycopg import AsyncConnection

from agents.requests import AskedCall, Attachment, InputMessage, RunRequest
from agents.runners.tokens import estimate
from config import database
from conversations import branches
from conversations.branches import IN_BRANCH, LEADING, OF_BRANCH, leading_first, leading_place

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
    """What a thread holds when a run begins; `interrupted` if calls wait, or did, for approval.

    `leading` are the system messages that lead it, of which nothing else is in `said`; `cut` if there
    is more, which was not read.
    """

    said: tuple[Said, ...] = ()
    state: Any = None
    interrupted: bool = False
    summary: Summary | None = None
    leading: tuple[InputMessage, ...] = ()
    cut: bool = False

    @property
    def messages(self) -> tuple[InputMessage, ...]:
        return tuple(one.message for one in self.said)


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
_ENDLESS: Final = 2**31 - 1
_BEGINNING: Final[Place] = (-1, UUID(int=0), -1)
_KEEP_SUMMARY: Final = "UPDATE conversations_thread SET summary = %s::jsonb WHERE id = %s"


async def so_far(
    thread_id: UUID,
    *,
    before: int,
    run_id: UUID,
    budget: int,
    summaries: bool = False,
    answers: bool = False,
) -> SoFar:
    """What was said in the thread before the run, and its state.

    The newest messages that come to `budget` tokens or a little more, at most `MOST_MESSAGES`; with
    `summaries` none that the thread's summary tells. A run that `answers` what was asked has others
    before it though the thread holds no message of theirs (`stored`).
    """
    if before <= 1 and not answers:
        return SoFar()
    asked = {"thread_id": thread_id, "run_id": run_id, "branch": run_id, "before": before}
    async with database.connection() as connection:
        row: Any = await (await connection.execute(_STATE, asked)).fetchone()
        state, interrupted, stored, branched = row or (None, False, None, False)
        summary = msgspec.convert(stored, Summary) if summaries and stored else None
        if branched:
            state = await branches.state(connection, thread_id, run_id)
            interrupted, tells = await _own(connection, asked, summary)
            summary = summary if tells else None
        since = summary.place if summary else _BEGINNING
        page = _OF_BRANCH if branched else _OF_THREAD
        said, cut = await _backwards(connection, page, asked, since, budget)
    leading, rest = leading_first(said, _mark, _is_system)
    shown = tuple(one.message for one in leading if one.message.content)
    return SoFar(tuple(rest), state, interrupted, summary, shown, cut)


async def _own(
    connection: AsyncConnection[Any], asked: dict[str, Any], summary: Summary | None
) -> tuple[bool, bool]:
    """Whether calls of the run's own branch wait, or did, and whether the summary tells of it."""
    told = summary.place[1] if summary else None
    row: Any = await (await connection.execute(_OWN, asked | {"told": told})).fetchone()
    return row[0], row[1]


def led(
    request: RunRequest, earlier: SoFar
) -> tuple[tuple[InputMessage, ...], tuple[InputMessage, ...]]:
    """The system messages that lead the run's conversation, and what else the request says."""
    marked, own = leading_first(request.messages, _place, lambda _: False)
    leading = tuple(one for one in marked if one.content) if marked else earlier.leading
    return request.leading or leading, tuple(own)


def _place(said: InputMessage) -> int:
    return leading_place(said.metadata)


def _mark(said: Said) -> int:
    return _place(said.message)


def _is_system(said: Said) -> bool:
    return said.message.role in ("system", "developer")


async def keep_summary(thread_id: UUID, summary: Summary) -> None:
    """Remember the summary with the thread; it goes when the thread does."""
    async with database.connection() as connection:
        await connection.execute(_KEEP_SUMMARY, (msgspec.json.encode(summary).decode(), thread_id))


_ASKED: Final = f"""
SELECT m.id, {_SAID} FROM conversations_message m
WHERE m.run_id = %s AND m.owner_id = %s AND NOT m.metadata ? 'message_id' AND m.seq IS NOT NULL
ORDER BY m.seq
"""


async def asked_in(run_id: UUID, *, owner_id: UUID) -> list[tuple[UUID, InputMessage]]:
    """What the client said with this run, and the id of each message's row."""
    async with database.connection() as connection:
        rows = await (await connection.execute(_ASKED, (run_id, owner_id))).fetchall()
    return [(row[0], _message(*row[1:])) for row in rows]


# by the ids of rows, or by those that their runs gave them: for both there is an index
_NAMED: Final = f"""
SELECT m.id, {_SAID} FROM conversations_message m
WHERE m.owner_id = %(owner)s AND (m.id = ANY(%(ids)s)
    OR m.run_id = ANY(%(ids)s) AND m.client_id = ANY(%(names)s))
"""


async def named(
    ids: Sequence[UUID], names: Sequence[str], *, owner_id: UUID
) -> dict[str | UUID, InputMessage]:
    """The owner's messages of these ids, and of these runs those of these names, by either."""
    asked = {"owner": owner_id, "ids": list(ids), "names": list(names)}
    async with database.connection() as connection:
        rows = await (await connection.execute(_NAMED, asked)).fetchall()
    found: dict[str | UUID, InputMessage] = {}
    for row in rows:
        message = _message(*row[1:])
        found[row[0]] = message
        found[message.client_id or row[0]] = message
    return found


async def _backwards(
    connection: AsyncConnection[Any], statement: str, asked: dict[str, Any], since: Place, budget: int
) -> tuple[tuple[Said, ...], bool]:
    """Pages, each larger than the last, until the budget is reached, in the order of the thread; and
    whether there may be more."""
    found: list[Said] = []
    before: Place = (asked["before"], asked["run_id"], _ENDLESS)
    page = _FIRST_PAGE
    while True:
        places = _bounds("first", since) | _bounds("last", before)
        rows = await (await connection.execute(statement, asked | places | {"page": page})).fetchall()
        for row in rows:
            found.append(Said(_message(*row[3:]), row[:3]))
            budget -= _cost(found[-1].message)
        if len(rows) < page or budget < 0 or len(found) >= MOST_MESSAGES:
            return tuple(reversed(found)), len(rows) == page
        before, page = found[-1].place, min(page * _GROWTH, MOST_MESSAGES - len(found))


def _bounds(end: str, place: Place) -> dict[str, Any]:
    return {f"{end}_seq": place[0], f"{end}_id": place[1], end: place[2]}


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
    leading: Any,
    layout: list[int | None] | None,
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
        layout=tuple(layout or ()),
        tool_calls=tuple(msgspec.convert(call, AskedCall) for call in calls or ()),
        metadata={LEADING: leading} if leading else {},
        reasoning=kept,
    )


def _own_call(
    call_id: str | None, tool_name: str | None, arguments: dict[str, Any] | None
) -> tuple[AskedCall, ...]:
    """The call that a server tool's answer belongs to; it stands in the same row."""
    if call_id is None or tool_name is None or arguments is None:
        return ()
    return (AskedCall(call_id, tool_name, msgspec.json.encode(arguments).decode()),)
