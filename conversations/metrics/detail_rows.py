"""Lists of single users, runs and messages, without any text of the messages.

A run includes its client's `metadata` as JSON text, by which a client compares its records with ours.

All lists are paged by key, so a slow reader holds neither a transaction nor a connection, and the
process holds one page. Users are first ordered, as ids alone, and then added up a page at a time.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from psycopg import AsyncConnection

from config import database
from config.errors import InvalidRequest
from conversations.identifiers import lowest_uuid7
from conversations.metrics import query_sql, rollup_sql
from conversations.metrics.query import MetricsQuery
from conversations.metrics.rollup_reads import Row, open_snapshot
from conversations.threads.cursors import Place, read_cursor, write_cursor

AT_ONCE: Final = 2_000  # some milliseconds of the loop that serves
RANKED_AT_ONCE: Final = 250_000  # users, of 16 bytes each
_CURSOR: Final = re.compile(r"([0-9]{1,18})\.([0-9a-f]{32})")

USER_COLUMNS: Final = (
    "user_id",
    "username",
    "runs",
    "conversations",
    "turns_per_conversation",
    "completed",
    "failed",
    "cancelled",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "cost_usd",
    "last_active_at",
)
# of runs and of messages: each column and its SQL
RUN_COLUMNS: Final = {
    "created_at": "run.created_at",
    "run_id": "replace(run.id::text, '-', '')",
    "conversation_id": "run.thread_id::text",
    "user_id": "run.owner_id::text",
    "model": "run.model",
    "resolved_model": "run.resolved_model",
    "provider": "run.provider",
    "dialect": "run.dialect",
    "runner": "run.runner",
    "prompt_versions": f"array_to_string({rollup_sql.VERSIONS}, '+')",
    "status": "run.status",
    "error_code": "run.error_code",
    "finish_reason": "run.finish_reason",
    "queue_wait_ms": rollup_sql.MS.format("run.started_at"),
    "first_token_ms": rollup_sql.MS.format("run.first_token_at"),
    "duration_ms": rollup_sql.MS.format("run.finished_at"),
    "input_tokens": "run.input_tokens",
    "output_tokens": "run.output_tokens",
    "cached_tokens": "run.cached_tokens",
    "reasoning_tokens": "run.reasoning_tokens",
    "cost_usd": "run.cost_usd::float8",
    "feedback_score": "judged.score",
    "metadata": """coalesce(CASE WHEN run.stored THEN run.request->'metadata' END,
        jsonb_build_object())::text""",
}
MESSAGE_COLUMNS: Final = {
    "message_id": "replace(id::text, '-', '')",
    "created_at": "created_at",
    "run_id": "replace(run_id::text, '-', '')",
    "conversation_id": "thread_id::text",
    "user_id": "owner_id::text",
    "seq": "seq",
    "role": "role",
    "stage": "stage",
    "tool": "tool_name",
    "ok": "tool_ok = 'true'",
    "latency_ms": "latency_ms",
    "characters": "char_length(content)",
}


# --- users --------------------------------------------------------------------------------------


_RANKED: Final = """
SELECT coalesce(string_agg(uuid_send(owner_id), ''::bytea ORDER BY runs DESC, owner_id), ''),
    min(runs)::bigint
FROM (SELECT owner_id, sum(runs) AS runs FROM ({members}) members GROUP BY owner_id {after}
    ORDER BY sum(runs) DESC, owner_id LIMIT %(limit)s) most
"""
_AFTER: Final = "HAVING sum(runs) < %(runs)s OR sum(runs) = %(runs)s AND owner_id > %(owner)s"
_ID_BYTES: Final = 16
UserPlace = tuple[int, UUID]


async def _rank_users(
    connection: AsyncConnection[Any], query: MetricsQuery, *, after: UserPlace | None, limit: int
) -> tuple[bytes, int]:
    """Return the ids of the users with the most runs, joined, and the number of the last one's runs.

    The database joins them: one value per user would take too much time of the serving loop.
    """
    arguments = query_sql.arguments(query) | {"limit": limit}
    if after is not None:
        arguments |= {"runs": after[0], "owner": after[1]}
    statement = _RANKED.format(members=query_sql.members(query), after=_AFTER if after else "")
    row: Any = await (
        await connection.execute(statement, arguments, prepare=False, binary=True)
    ).fetchone()
    return row[0], row[1] or 0


def _ids(joined: bytes) -> list[UUID]:
    return [UUID(bytes=joined[at : at + _ID_BYTES]) for at in range(0, len(joined), _ID_BYTES)]


def _user_sums_sql(query: MetricsQuery) -> str:
    """Return the sums by thread and then by user: counting distinct threads would sort every row."""
    sums = ", ".join(f"sum({name}) AS {name}" for name in rollup_sql.THREAD_MEASURES)
    return f"""
    SELECT part.owner_id, account.username, runs, conversations, completed, failed, cancelled,
        input_tokens, output_tokens, cached_tokens, cost_usd, last_at
    FROM (SELECT owner_id, count(*) AS conversations, max(at) AS last_at, {sums}
        FROM (SELECT owner_id, thread_id, max(at) AS at, {sums}
            FROM ({query_sql.members(query)}) members WHERE owner_id = ANY(%(owners)s)
            GROUP BY owner_id, thread_id) threads
        GROUP BY owner_id) part
    LEFT JOIN accounts_user account ON account.id = part.owner_id
    ORDER BY runs DESC, part.owner_id"""


async def _fetch_users(
    connection: AsyncConnection[Any], query: MetricsQuery, owners: list[UUID]
) -> list[Row]:
    arguments = query_sql.arguments(query) | {"owners": owners}
    cursor = await connection.execute(_user_sums_sql(query), arguments, prepare=False)
    return [_to_row(row) for row in await cursor.fetchall()]


async def fetch_user_page(
    query: MetricsQuery, *, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """Return the users with the most runs, and the cursor of the next page.

    Users are ranked by their runs alone; the other sums are computed for this page only.
    """
    after = _user_place(cursor) if cursor else None
    async with open_snapshot() as connection:
        ranked, _ = await _rank_users(connection, query, after=after, limit=limit + 1)
        owners = _ids(ranked)
        rows = await _fetch_users(connection, query, owners[:limit])
    last = rows[-1] if len(owners) > limit else None
    return rows, f"{last['runs']}.{UUID(last['user_id']).hex}" if last else None


def _user_place(cursor: str) -> UserPlace:
    found = _CURSOR.fullmatch(cursor)
    if not found:
        raise _invalid_cursor()
    return int(found[1]), UUID(found[2])


def _invalid_cursor() -> InvalidRequest:
    return InvalidRequest("cursor must be a next_cursor of this list.", code="invalid_cursor")


async def stream_users(query: MetricsQuery) -> AsyncGenerator[list[Row]]:
    """Yield every user with runs, in lists; each list has the numbers of its own reading time."""
    after: UserPlace | None = None
    while True:
        async with open_snapshot() as connection:
            ranked, runs = await _rank_users(connection, query, after=after, limit=RANKED_AT_ONCE)
        size = AT_ONCE * _ID_BYTES
        for at in range(0, len(ranked), size):
            owners = _ids(ranked[at : at + size])
            async with open_snapshot() as connection:
                rows = await _fetch_users(connection, query, owners)
            yield rows
        if len(ranked) < RANKED_AT_ONCE * _ID_BYTES:
            return
        after = runs, owners[-1]


def _to_row(found: Sequence[Any]) -> Row:
    owner_id, username, runs, conversations, *counts, cost, last_at = found
    turns = round(int(runs) / conversations, 4)
    values = (str(owner_id), username, int(runs), conversations, turns, *map(int, counts))
    return dict(zip(USER_COLUMNS, (*values, float(cost), last_at), strict=True))


# --- runs and messages --------------------------------------------------------------------------


class RunCursor(Place, frozen=True, array_like=True):
    """The place of a run in the list, newest first."""

    id: UUID


_RUNS: Final = f"""
SELECT {", ".join(RUN_COLUMNS.values())}
FROM conversations_run run
LEFT JOIN conversations_feedback judged ON judged.run_id = run.id AND judged.user_id = run.owner_id
WHERE run.created_at >= %(begin)s AND run.created_at <= %(at)s
    AND (run.created_at, run.id) < (%(at)s, %(id)s) {{filters}}
ORDER BY run.created_at DESC, run.id DESC LIMIT %(limit)s
"""


async def fetch_run_page(
    query: MetricsQuery, *, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """Return runs, newest first, and the cursor of the next page."""
    newest = {"at": query.end, "id": UUID(int=0)}
    place = read_cursor(cursor, RunCursor).arguments if cursor else newest
    statement = _RUNS.format(filters=query_sql.run_filters(query))
    arguments = query_sql.arguments(query) | place
    rows, last = await _fetch_page(statement, arguments, RUN_COLUMNS, limit)
    return rows, write_cursor(last["created_at"], UUID(last["run_id"])) if last else None


async def _fetch_page(
    statement: str, arguments: query_sql.Arguments, columns: Iterable[str], limit: int
) -> tuple[list[Row], Row | None]:
    """Return the rows of a page, and the last of them if there are more."""
    async with database.connection("analytics") as connection:
        cursor = await connection.execute(
            statement, arguments | {"limit": limit + 1}, prepare=False, binary=True
        )
        rows = [dict(zip(columns, row, strict=True)) for row in await cursor.fetchall()]
    return rows[:limit], rows[limit - 1] if len(rows) > limit else None


_MESSAGES: Final = f"""
SELECT {", ".join(MESSAGE_COLUMNS.values())}
FROM conversations_message
WHERE id > %(id)s AND id < %(until)s {{user}} ORDER BY id LIMIT %(limit)s
"""


async def fetch_message_page(
    query: MetricsQuery, *, limit: int, cursor: str | None
) -> tuple[list[Row], str | None]:
    """Return messages in the order of writing, and the cursor of the next page.

    The time range is one of ids: an id contains the time at which it was made.
    """
    if any((query.model, query.dialect, query.runner, query.prompt_version is not None)):
        raise InvalidRequest(
            "Messages can be filtered by from, to and user only.", code="invalid_filter"
        )
    statement = _MESSAGES.format(user="AND owner_id = %(user)s" if query.user else "")
    until = lowest_uuid7(query.end)
    arguments = {"id": _after(query, cursor), "until": until, "user": query.user}
    rows, last = await _fetch_page(statement, arguments, MESSAGE_COLUMNS, limit)
    return rows, last["message_id"] if last else None


def _after(query: MetricsQuery, cursor: str | None) -> UUID:
    if not cursor:
        return UUID(int=lowest_uuid7(query.begin).int - 1)
    try:
        return UUID(cursor)
    except ValueError:
        raise _invalid_cursor() from None
