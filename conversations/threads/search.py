"""Search in the messages of the caller and the assistant, newest first (specs/run-agent-input.md §4).

A search has two steps. It first walks back over the caller's newest messages, as long as they fill the
page: so it finds any word that is not rare, and everything of a caller with few messages. Otherwise
the index (migration 0005) gives the older messages that hold the terms; they are few, since the walk
found few. Neither step grows with other users' messages.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Annotated, Any, Final, NamedTuple
from uuid import UUID

from django.utils import timezone
from msgspec import Meta
from psycopg import AsyncClientCursor, AsyncConnection

from config import database
from config.errors import InvalidRequest
from config.http.documentation.json_types import Day, Shown, Time, Uuid, one_of
from conversations.threads.cursors import Place, read_cursor, read_limit, write_cursor
from conversations.threads.history_message import timestamp
from conversations.threads.ownership import thread_not_found
from conversations.threads.search_terms import SnippetPart, Terms, make_terms, spaced

LONGEST: Final = 200
_DEFAULT: Final = 20
_WINDOW: Final = 1_000  # messages per step of the walk
_WINDOWS: Final = 4  # as long as each step gives its share of a page
_SEARCHED_TEXT: Final = 20_000  # characters, as in the migration
_MUCH_TEXT: Final = 100_000


class _Place(Place, frozen=True, array_like=True):
    """A message's place among those of one user."""

    seq: Annotated[int, Meta(ge=1, lt=2**31)]
    id: UUID


class SearchHit(Shown, frozen=True, rename="camel"):
    """A message that was found, and the text about its first match."""

    id: str
    thread_id: Uuid
    thread_title: str
    seq: int
    role: Annotated[str, one_of("user", "assistant")]
    day: Day
    timestamp: Time
    snippet: list[SnippetPart]


class SearchResults(Shown, frozen=True, rename="camel"):
    results: list[SearchHit]
    next_cursor: str | None


_NEWEST: Final = {"at": "infinity", "seq": 0, "id": UUID(int=0)}


class Found(NamedTuple):
    """A message that holds every term."""

    message_id: UUID
    client_id: str | None
    thread_id: UUID
    title: str
    seq: int
    role: str
    created_at: datetime
    content: str


def _read_words(query: str | None) -> str:
    text = (query or "").strip()
    if not 1 <= len(text) <= LONGEST:
        raise InvalidRequest(f"q must have 1 to {LONGEST} characters.", code="invalid_query")
    if "\x00" in text:
        raise InvalidRequest("q holds a NUL character.", code="invalid_characters")
    return text


_ORDER: Final = "created_at DESC, seq DESC, id DESC"
_COLUMNS: Final = f"""
SELECT found.id, client_id, thread_id, (
    SELECT title FROM conversations_thread thread WHERE thread.id = found.thread_id
), seq, role, created_at, left(content, {_SEARCHED_TEXT})
"""
_OWN: Final = "owner_id = %(owner_id)s AND role IN ('user', 'assistant') {of_thread}"
_OF_THREAD: Final = "AND thread_id = %(thread_id)s"
# The branch is checked last: by then the words match, and most threads have but one.
_HOLDS: Final = """
CASE WHEN conversations_folded(content) LIKE ALL(%(rough)s)
        AND conversations_spaced(content) LIKE ALL(%(exact)s)
    THEN run_id IS NULL OR NOT EXISTS (
        SELECT FROM conversations_thread thread WHERE thread.id = found.thread_id
        AND fork_run_id IS NOT NULL AND NOT conversations_in_branch(head_run_id, found.run_id))
    ELSE false END
"""
_BELOW: Final = f"""
{_OWN} AND created_at <= %(at)s AND (created_at, seq, id) < (%(at)s, %(seq)s, %(id)s)
"""
_WALK: Final = f"""
{_COLUMNS} FROM (
    SELECT * FROM conversations_message WHERE {_BELOW} ORDER BY {_ORDER} LIMIT {_WINDOW}
) found WHERE {_HOLDS} ORDER BY {_ORDER} LIMIT %(limit)s
"""
_WALKED: Final = f"""
SELECT created_at, seq, id FROM conversations_message WHERE {_BELOW}
ORDER BY {_ORDER} OFFSET {_WINDOW - 1} LIMIT 1
"""
_INDEXED: Final = f"""
WITH held AS MATERIALIZED (
    SELECT * FROM conversations_message
    WHERE conversations_tokens(owner_id, content) @@ %(tsquery)s::tsquery
    AND role IN ('user', 'assistant')
)
{_COLUMNS} FROM (SELECT * FROM held WHERE {_BELOW} ORDER BY {_ORDER} OFFSET 0) found
WHERE {_HOLDS} ORDER BY {_ORDER} LIMIT %(limit)s
"""
_OWN_THREAD: Final = "SELECT FROM conversations_thread WHERE id = %s AND owner_id = %s"


async def search(
    user_id: UUID, query: str | None, *, thread_id: UUID | None, limit: str | None, cursor: str | None
) -> SearchResults:
    """Return a page of the caller's messages that hold every term, newest first.

    Raise InvalidRequest for an invalid search, NotFound for a thread that is not the caller's. A query
    without a word finds nothing.
    """
    text, most = _read_words(query), read_limit(limit, default=_DEFAULT)
    place = read_cursor(cursor, _Place).arguments if cursor else _NEWEST
    terms = make_terms(await spaced(text))
    arguments = {"owner_id": user_id, "thread_id": thread_id, "limit": most + 1} | place
    arguments |= {"rough": terms.rough, "exact": terms.exact, "tsquery": terms.tsquery(user_id)}
    async with database.connection() as connection:
        await _check_thread(connection, user_id, thread_id)
        found = await _find(connection, arguments, most) if terms.texts else []
    page = found[:most]
    if sum(len(one.content) for one in page) > _MUCH_TEXT:
        results = await asyncio.to_thread(_results, page, terms)
    else:
        results = _results(page, terms)
    last = page[-1] if len(found) > most else None
    more = write_cursor(last.created_at, last.seq, last.message_id) if last else None
    return SearchResults(results, more)


async def _find(connection: AsyncConnection[Any], arguments: dict[str, Any], most: int) -> list[Found]:
    """Return the newest messages past the cursor that hold the terms: one more than `most`, if any.

    They are kept by id: a new message moves a window, so that a message may be found twice.
    """
    found: dict[UUID, Found] = {}
    for _ in range(_WINDOWS):
        found |= await _fetch_found(connection, _WALK, arguments)
        if len(found) > most:
            return list(found.values())
        floor = await _fetch_rows(connection, _WALKED, arguments)
        if not floor:
            return list(found.values())
        arguments |= dict(zip(("at", "seq", "id"), floor[0], strict=True))
        if len(found) < most / _WINDOWS:
            break
    return list((found | await _fetch_found(connection, _INDEXED, arguments)).values())


async def _check_thread(connection: AsyncConnection[Any], user_id: UUID, thread_id: UUID | None) -> None:
    if thread_id is None:
        return
    if await (await connection.execute(_OWN_THREAD, (thread_id, user_id))).fetchone() is None:
        raise thread_not_found()


async def _fetch_found(
    connection: AsyncConnection[Any], statement: str, arguments: dict[str, Any]
) -> dict[UUID, Found]:
    return {row[0]: Found(*row) for row in await _fetch_rows(connection, statement, arguments)}


async def _fetch_rows(
    connection: AsyncConnection[Any], statement: str, arguments: dict[str, Any]
) -> list[Any]:
    """Return the rows, by a plan for just these arguments: no plan fits all owners and words.

    A plan is made for the arguments only if they stand in the statement, so psycopg writes them there.
    """
    whole = statement.format(of_thread=_OF_THREAD if arguments["thread_id"] else "")
    async with AsyncClientCursor(connection) as cursor:
        await cursor.execute(whole, arguments)
        return await cursor.fetchall()


def _results(page: list[Found], terms: Terms) -> list[SearchHit]:
    return [
        SearchHit(
            id=one.client_id or str(one.message_id),
            thread_id=str(one.thread_id),
            thread_title=one.title,
            seq=one.seq,
            role=one.role,
            day=timezone.localtime(one.created_at).date().isoformat(),
            timestamp=timestamp(one.created_at),
            snippet=terms.snippet(one.content),
        )
        for one in page
    ]
