"""History: one whole day of a thread, newest day first (specs/run-agent-input.md §4).

Two statements a page, both on the index (thread, created_at): which day, then its messages and whether
there is an older one. Nothing in them grows with the thread or the database.
"""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, Final, Literal
from uuid import UUID

from django.utils import timezone
from psycopg import AsyncConnection

from config import database
from config.errors import InvalidRequest
from conversations import showing
from conversations.access import thread_id_of, thread_not_found
from conversations.showing import Content, Stored

DAY_LIMIT: Final = 500
_AT_ONCE: Final = 25  # messages shown before other work of the loop has its turn
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_SHOWN: Final = "role IN ('user', 'assistant', 'tool')"

_NEWEST: Final = f"""
SELECT thread.id, (
    SELECT created_at FROM conversations_message WHERE thread_id = thread.id AND {_SHOWN}
    AND created_at < %(until)s ORDER BY created_at DESC LIMIT 1)
FROM conversations_thread thread WHERE owner_id = %(owner_id)s
"""
_OF_THREAD: Final = f"{_NEWEST} AND id = %(thread_id)s"
_OF_NEWEST_THREAD: Final = f"{_NEWEST} AND archived_at IS NULL ORDER BY updated_at DESC LIMIT 1"
_MESSAGES: Final = f"""
SELECT id, client_id, seq, role, content, created_at, ({showing.RELEVANT})::text, EXISTS (
    SELECT 1 FROM conversations_message WHERE thread_id = %(thread_id)s AND {_SHOWN}
    AND created_at < %(begin)s)
FROM conversations_message WHERE thread_id = %(thread_id)s AND {_SHOWN}
AND created_at >= %(begin)s AND created_at < %(end)s
ORDER BY created_at DESC, seq DESC LIMIT {DAY_LIMIT + 1}
"""


async def history_day(
    user_id: UUID, *, thread_id: str | None, before: str | None, content: Content = "text"
) -> dict[str, Any]:
    """The `HistorySnapshotResponse` for the newest day with messages before `before` (or at all).

    Raises NotFound for a thread that is not the user's, InvalidRequest for a bad date.
    """
    until = _until(before)
    async with database.connection() as connection:
        thread, newest = await _newest(connection, user_id, thread_id, until)
        if thread is None or newest is None:
            return _snapshot(thread, None, [], has_more=False)
        day = timezone.localtime(newest).date()
        of_day = {"begin": _midnight(day), "end": _midnight(day + timedelta(days=1))}
        cursor = await connection.execute(_MESSAGES, {"thread_id": thread} | of_day)
        rows = await cursor.fetchall()
    has_more = len(rows) > DAY_LIMIT or any(row[-1] for row in rows)
    stored = sorted((Stored(*row[:-1]) for row in rows[:DAY_LIMIT]), key=lambda message: message.seq)
    return _snapshot(thread, day, await _shown(stored, content), has_more=has_more)


async def _newest(
    connection: AsyncConnection[Any], user_id: UUID, thread_id: str | None, until: datetime | None
) -> tuple[UUID | None, datetime | None]:
    """The thread, and when the newest of its messages before `until` was written."""
    arguments = {"owner_id": user_id, "until": until or "infinity"}
    if not thread_id:
        row = await (await connection.execute(_OF_NEWEST_THREAD, arguments)).fetchone()
        return row or (None, None)
    arguments["thread_id"] = thread_id_of(thread_id)
    row = await (await connection.execute(_OF_THREAD, arguments)).fetchone()
    if row is None:
        raise thread_not_found()
    return row[0], row[1]


def content_form(given: str | None) -> Content:
    """How users' messages are shown: `?content=text` (000, the default) or `blocks` (001)."""
    match given:
        case None | "" | "text":
            return "text"
        case "blocks":
            return "blocks"
    raise InvalidRequest("content must be text or blocks.", code="invalid_content")


def _until(before: str | None) -> datetime | None:
    if not before:
        return None
    try:
        if _DAY.fullmatch(before):
            return _midnight(date.fromisoformat(before))
    except ValueError:
        pass
    raise InvalidRequest("before must be YYYY-MM-DD", code="invalid_before")


def _midnight(day: date) -> datetime:
    """When a day begins in the server's time zone, in UTC; at the ends of time, that end."""
    try:
        return timezone.make_aware(datetime.combine(day, time.min)).astimezone(UTC)
    except OverflowError:
        return datetime.combine(day, time.min, UTC)


async def _shown(stored: list[Stored], content: Content) -> list[dict[str, Any]]:
    """The messages as JSON. Cards and signatures take CPU: others have their turn in between."""
    shown: list[dict[str, Any]] = []
    for number, message in enumerate(stored, 1):
        shown.append(showing.shown(message, content))
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)
    return shown


def _snapshot(
    thread_id: UUID | None, day: date | None, messages: list[dict[str, Any]], *, has_more: bool
) -> dict[str, Any]:
    scope: Literal["history_day"] = "history_day"
    return {
        "scope": scope,
        "threadId": str(thread_id) if thread_id else None,
        "day": day.isoformat() if day else None,
        "hasMore": has_more,
        "messages": messages,
    }
