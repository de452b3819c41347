"""The caller's threads: list, read, rename, archive, delete.

A thread's place in the list is the time of its last activity. Renaming and archiving are no
activity; a thread with a new message during paging moves to the top, and never appears twice.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, NamedTuple
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import connection
from msgspec import UNSET, Meta, Struct, UnsetType

from config import sql
from config.errors import InvalidRequest
from config.http.documentation.json_types import Hex, Shown, Time, Uuid
from conversations.runs import recent_starts
from conversations.threads import branches
from conversations.threads.cursors import Place, read_cursor, read_limit, write_cursor
from conversations.threads.history_message import timestamp
from conversations.threads.ownership import parse_thread_id, thread_not_found
from conversations.upkeep import retention

TITLE_LENGTH: Final = 200
_DEFAULT: Final = 30
_LOOKED_AT: Final = 20  # of a thread's newest runs; older ones can only wait behind one that is running


class Thread(Shown, frozen=True, rename="camel"):
    """A thread as it is shown."""

    id: Uuid
    title: str
    archived: bool
    created_at: Time
    updated_at: Time
    last_message_at: Time | None
    live_run_id: Hex | None


class Threads(Shown, frozen=True, rename="camel"):
    threads: list[Thread]
    next_cursor: str | None


class Branch(Shown, frozen=True, rename="camel"):
    """The end of a branch: its last run and that run's question."""

    run_id: Hex
    created_at: Time
    question: str


class ThreadRow(NamedTuple):
    """The columns of a thread."""

    thread_id: UUID
    title: str
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    last_message_at: datetime | None
    live_run_id: UUID | None


_SELECT: Final = f"""
SELECT id, title, created_at, updated_at, archived_at,
    (SELECT created_at FROM conversations_message WHERE thread_id = thread.id
        ORDER BY created_at DESC LIMIT 1),
    coalesce(
        (SELECT id FROM conversations_run WHERE thread_id = thread.id AND status = 'running'),
        (SELECT id FROM (SELECT id, status, thread_seq FROM conversations_run
                WHERE thread_id = thread.id ORDER BY thread_seq DESC LIMIT {_LOOKED_AT}) newest
            WHERE status = 'queued' ORDER BY thread_seq LIMIT 1))
FROM conversations_thread thread WHERE owner_id = %(owner_id)s
"""
_ONE: Final = f"{_SELECT} AND id = %(thread_id)s"
_PAGE: Final = f"""
{_SELECT} AND updated_at > to_timestamp(0) AND updated_at <= %(at)s
    AND (updated_at, id) < (%(at)s, %(id)s) {{archived}}
ORDER BY updated_at DESC, id DESC LIMIT %(limit)s
"""
_ARCHIVED: Final = {
    None: "AND archived_at IS NULL",
    "": "AND archived_at IS NULL",
    "false": "AND archived_at IS NULL",
    "true": "AND archived_at IS NOT NULL",
    "all": "",
}


async def fetch_thread_page(
    user_id: UUID, *, archived: str | None, limit: str | None, cursor: str | None
) -> Threads:
    """Return a page of the user's threads, latest first. Raise InvalidRequest."""
    if archived not in _ARCHIVED:
        raise InvalidRequest("archived must be true, false or all.", code="invalid_archived")
    most = read_limit(limit, default=_DEFAULT)
    place = read_cursor(cursor, _Place).arguments if cursor else _NEWEST
    arguments = {"owner_id": user_id, "limit": most + 1} | place
    rows = await sql.every(_PAGE.format(archived=_ARCHIVED[archived]), arguments)
    page = [ThreadRow(*row) for row in rows[:most]]
    more = write_cursor(page[-1].updated_at, page[-1].thread_id) if len(rows) > most else None
    return Threads([_show(row) for row in page], more)


class _Place(Place, frozen=True, array_like=True):
    """A thread's place in the list."""

    id: UUID


_NEWEST: Final = {"at": "infinity", "id": UUID(int=0)}


async def fetch_thread(user_id: UUID, thread: str) -> Thread:
    """Return the user's thread. Raise NotFound for an unknown and for a foreign one alike."""
    arguments = {"owner_id": user_id, "thread_id": parse_thread_id(thread)}
    row = await sql.one(_ONE, arguments)
    if row is None:
        raise thread_not_found()
    return _show(ThreadRow(*row))


async def list_branches(thread_id: UUID) -> list[Branch]:
    """Return the thread's branches, newest first. The caller has checked the thread's owner."""
    rows = await sql.every(branches.TIPS, {"thread_id": thread_id})
    return [Branch(run_id.hex, timestamp(created_at), question) for run_id, created_at, question in rows]


class Changes(Struct, frozen=True, forbid_unknown_fields=True):
    """The changes of a thread; a field that is not named stays."""

    title: Annotated[str, Meta(extra_json_schema={"maxLength": TITLE_LENGTH})] | UnsetType = UNSET
    archived: bool | UnsetType = UNSET


_CHANGE: Final = """
UPDATE conversations_thread SET title = coalesce(%(title)s, title), archived_at = CASE %(archived)s::bool
    WHEN true THEN coalesce(archived_at, clock_timestamp()) WHEN false THEN NULL ELSE archived_at END
WHERE id = %(thread_id)s AND owner_id = %(owner_id)s
"""


async def change_thread(user_id: UUID, thread: str, changes: Changes) -> Thread:
    """Rename or archive the user's thread. Return it afterwards. Raise NotFound as `fetch_thread`."""
    arguments = {
        "owner_id": user_id,
        "thread_id": parse_thread_id(thread),
        "title": None if changes.title is UNSET else _title(changes.title),
        "archived": None if changes.archived is UNSET else changes.archived,
    }
    await sql.change(_CHANGE, arguments)
    return await fetch_thread(user_id, thread)


async def delete_thread(user_id: UUID, thread: str) -> None:
    """Delete all of the user's thread, which ends its live run. Raise NotFound as `fetch_thread`.

    Return when everything is gone. The caller should let it finish even if its client is gone.
    """
    await fetch_thread(user_id, thread)
    thread_id = parse_thread_id(thread)
    await sync_to_async(_erase, thread_sensitive=False)(user_id, thread_id)
    recent_starts.forget_thread(thread_id)


def _erase(user_id: UUID, thread_id: UUID) -> None:
    try:
        retention.erase_thread(thread_id, owner_id=user_id)
    finally:
        connection.close()  # this operating-system thread of the pool may never need one again


def _title(text: str) -> str:
    title = " ".join(text.split())
    if len(title) > TITLE_LENGTH:
        raise InvalidRequest(f"title must have at most {TITLE_LENGTH} characters.", code="invalid_title")
    return title


def _show(row: ThreadRow) -> Thread:
    return Thread(
        id=str(row.thread_id),
        title=row.title,
        archived=row.archived_at is not None,
        created_at=timestamp(row.created_at),
        updated_at=timestamp(row.updated_at),
        last_message_at=timestamp(row.last_message_at) if row.last_message_at else None,
        live_run_id=row.live_run_id.hex if row.live_run_id else None,
    )
