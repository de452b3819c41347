"""History: one whole day of a thread, newest day first (specs/run-agent-input.md §4).

Two statements per page, both on the index (thread, created_at): one finds the day, one its messages
and whether an older one exists. Neither grows with the thread or the database. A day of more than
DAY_LIMIT messages comes in parts: `nextBefore` is where the previous part begins. A thread with
branches costs one statement more, and its days are those of one branch.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from django.utils import timezone
from msgspec import UNSET, UnsetType
from psycopg import AsyncConnection

from config import database
from config.errors import InvalidRequest
from config.http.documentation.json_types import Day, Shown, noted
from conversations.threads import history_message
from conversations.threads.branches import IN_BRANCH, OF_BRANCH
from conversations.threads.cursors import Place, read_cursor, write_cursor
from conversations.threads.history_message import Content, HistoryMessage, Stored
from conversations.threads.ownership import thread_not_found

DAY_LIMIT: Final = 500
_NEXT: Final = noted("Only if the day has more messages: the `before` of the next request.")
_AT_ONCE: Final = 25  # messages shown before other work of the loop runs
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SHOWN: Final = "role IN ('user', 'assistant', 'tool')"
_BELOW: Final = "created_at <= %(until)s AND (created_at, seq) < (%(until)s, %(seq)s)"

_NEWEST: Final = f"""
SELECT thread.id, (
    SELECT created_at FROM conversations_message WHERE thread_id = thread.id AND {_SHOWN}
    AND {_BELOW} ORDER BY created_at DESC LIMIT 1),
    CASE WHEN fork_run_id IS NOT NULL THEN head_run_id END
FROM conversations_thread thread WHERE owner_id = %(owner_id)s
"""
_OF_THREAD: Final = f"{_NEWEST} AND id = %(thread_id)s"
_OF_NEWEST_THREAD: Final = (
    f"{_NEWEST} AND archived_at IS NULL AND updated_at > to_timestamp(0)"
    " ORDER BY updated_at DESC LIMIT 1"
)
_MESSAGES: Final = f"""
SELECT id, client_id, seq, role, content, created_at, ({history_message.RELEVANT})::text, EXISTS (
    SELECT 1 FROM conversations_message message WHERE thread_id = %(thread_id)s AND {_SHOWN}
    AND created_at < %(begin)s{{of_branch}})
FROM conversations_message message WHERE thread_id = %(thread_id)s AND {_SHOWN}
AND created_at >= %(begin)s AND created_at < %(end)s AND {_BELOW}{{of_branch}}
ORDER BY created_at DESC, seq DESC LIMIT {DAY_LIMIT + 1}
"""
_IN_BRANCH: Final = f"""
AND (run_id IS NULL OR EXISTS (
    SELECT FROM conversations_run run WHERE run.id = message.run_id AND {IN_BRANCH}))
"""
_DAY_OF_THREAD: Final = _MESSAGES.replace("{of_branch}", "")
_DAY_OF_BRANCH: Final = OF_BRANCH + _MESSAGES.replace("{of_branch}", _IN_BRANCH)
_NEWEST_OF_BRANCH: Final = f"""
{OF_BRANCH}
SELECT created_at FROM conversations_message message WHERE thread_id = %(thread_id)s AND {_SHOWN}
AND {_BELOW} {_IN_BRANCH} ORDER BY created_at DESC LIMIT 1
"""


class HistoryDay(Shown, frozen=True, tag="history_day", tag_field="scope", rename="camel"):
    """One day of a thread: the `HistorySnapshotResponse`."""

    thread_id: str | None
    day: Day | None
    has_more: bool
    messages: list[HistoryMessage]
    next_before: Annotated[str | UnsetType, _NEXT] = UNSET


class _Place(Place, frozen=True, array_like=True):
    """The beginning of a part of a day."""

    seq: int


async def fetch_history_day(
    user_id: UUID,
    *,
    thread_id: UUID | None,
    before: str | None,
    content: Content = "text",
    branch: UUID | None = None,
) -> HistoryDay:
    """Return the newest day with messages before `before` (or at all).

    `before` is a day, or the `nextBefore` of a day that came in parts. `branch` is the last run of the
    branch to read; without it that is the one last continued. Raise NotFound for a thread that is
    not the user's, InvalidRequest for a bad date.
    """
    until = _parse_before(before)
    async with database.connection() as connection:
        thread, newest, last = await _find_newest(connection, user_id, thread_id, until)
        arguments = {"thread_id": thread, "branch": branch or last} | until
        if arguments["branch"]:
            newest = await _find_newest_of_branch(connection, arguments)
        if thread is None or newest is None:
            return HistoryDay(str(thread) if thread else None, None, False, [])
        day = timezone.localtime(newest).date()
        of_day = {"begin": _midnight(day), "end": _midnight(day + timedelta(days=1))}
        statement = _DAY_OF_BRANCH if arguments["branch"] else _DAY_OF_THREAD
        rows = await (await connection.execute(statement, arguments | of_day)).fetchall()
    cut = len(rows) > DAY_LIMIT
    stored = [Stored(*row[:-1]) for row in rows[:DAY_LIMIT]]
    more = write_cursor(stored[-1].created_at, stored[-1].seq) if cut else UNSET
    has_more = cut or any(row[-1] for row in rows)
    shown = await _show(sorted(stored, key=lambda message: message.seq), content)
    return HistoryDay(str(thread), day.isoformat(), has_more, shown, more)


async def _find_newest(
    connection: AsyncConnection[Any], user_id: UUID, thread_id: UUID | None, until: dict[str, Any]
) -> tuple[UUID | None, datetime | None, UUID | None]:
    """Return the thread, the time of its newest message before `until`, and, where it has branches,
    the last run of the branch last continued."""
    arguments = {"owner_id": user_id, "thread_id": thread_id} | until
    statement = _OF_THREAD if thread_id else _OF_NEWEST_THREAD
    row = await (await connection.execute(statement, arguments)).fetchone()
    if row is None and thread_id:
        raise thread_not_found()
    return row or (None, None, None)


async def _find_newest_of_branch(
    connection: AsyncConnection[Any], arguments: dict[str, Any]
) -> datetime | None:
    """Return the time of the branch's newest message before `until`."""
    row = await (await connection.execute(_NEWEST_OF_BRANCH, arguments)).fetchone()
    return row[0] if row else None


def parse_content_form(parameter: str | None) -> Content:
    """Return the form of users' messages: `?content=text` (000, the default) or `blocks` (001)."""
    if parameter in (None, "", "text"):
        return "text"
    if parameter == "blocks":
        return "blocks"
    raise InvalidRequest("content must be text or blocks.", code="invalid_content")


def _parse_before(before: str | None) -> dict[str, Any]:
    """Return the time and seq below which to read."""
    if not before:
        return {"until": "infinity", "seq": 0}
    try:
        if _DAY.fullmatch(before):
            return {"until": _midnight(date.fromisoformat(before)), "seq": 0}
        place = read_cursor(before, _Place)
    except (ValueError, InvalidRequest):
        raise InvalidRequest("before must be YYYY-MM-DD", code="invalid_before") from None
    return {"until": place.at, "seq": place.seq}


def _midnight(day: date) -> datetime:
    """Return a day's beginning in the server's time zone, in UTC, clamped to the range of time."""
    try:
        return timezone.make_aware(datetime.combine(day, time.min)).astimezone(UTC)
    except OverflowError:
        return datetime.combine(day, time.min, UTC)


async def _show(stored: list[Stored], content: Content) -> list[HistoryMessage]:
    """Return the messages. Cards and signatures take CPU: other tasks run in between."""
    shown: list[HistoryMessage] = []
    for number, message in enumerate(stored, 1):
        shown.append(history_message.show_message(message, content))
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return shown
