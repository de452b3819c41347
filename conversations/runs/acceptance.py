"""Accept runs: threads, messages, rows and `run.queued` in one statement (promise P1).

Runs that start threads of their own are accepted together when they arrive together, and may be claimed
at once, because nothing in their threads goes before them; one in a thread that exists may have to wait
for its lock, and is accepted alone.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import AsyncConnection

from config import sql

_TOGETHER: Final = 64


class EarlierRun(NamedTuple):
    """The run of an earlier request with the same client-chosen id."""

    run_id: UUID
    digest: str
    created_at_ms: int
    is_forgotten: bool


_START: Final = """
WITH thread AS (
    INSERT INTO conversations_thread (id, owner_id, title, last_seq, updated_at, head_run_id)
    VALUES (%(thread_id)s, %(owner_id)s, %(title)s, %(count)s,
        CASE WHEN %(stored)s THEN statement_timestamp() ELSE to_timestamp(0) END,
        CASE WHEN %(stored)s THEN %(run_id)s::uuid END)
    ON CONFLICT (id) DO UPDATE SET
        last_seq = conversations_thread.last_seq + %(count)s,
        updated_at = CASE WHEN %(stored)s THEN statement_timestamp()
            ELSE conversations_thread.updated_at END,
        title = CASE WHEN conversations_thread.last_seq = 0 AND conversations_thread.title = ''
            THEN excluded.title ELSE conversations_thread.title END,
        head_run_id = coalesce(excluded.head_run_id, conversations_thread.head_run_id),
        fork_run_id = CASE WHEN %(continues)s::uuid <> coalesce(conversations_thread.head_run_id, (
            SELECT id FROM conversations_run WHERE thread_id = %(thread_id)s
            ORDER BY thread_seq DESC, id DESC LIMIT 1
        )) THEN %(run_id)s::uuid ELSE conversations_thread.fork_run_id END
        WHERE conversations_thread.owner_id = excluded.owner_id
    RETURNING id, last_seq - %(count)s AS base, coalesce(fork_run_id = %(run_id)s::uuid, false) AS forks
), run AS (
    INSERT INTO conversations_run (id, owner_id, thread_id, thread_seq, continues_run_id,
        client_run_id, request_digest, request_id, dialect, model, request, deadline_at, deadline_s,
        stored)
    SELECT %(run_id)s, %(owner_id)s, thread.id, thread.base + 1,
        CASE WHEN thread.forks THEN %(continues)s::uuid END, %(client_run_id)s,
        %(digest)s, %(request_id)s, %(dialect)s, %(model)s, %(request)s::jsonb,
        clock_timestamp() + make_interval(secs => %(queue_limit_s)s), %(deadline_s)s,
        %(stored)s FROM thread
    RETURNING id, created_at
), message AS (
    INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content, client_id,
        metadata)
    SELECT m.id, %(owner_id)s, thread.id, run.id, thread.base + m.seq, m.role, m.content, m.client_id,
        m.metadata
    FROM thread, run, json_populate_recordset(NULL::conversations_message, %(messages)s) m
), queued AS (
    INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
    SELECT run.id, 1, 1, json_build_array(json_build_array(
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        json_build_object('type', 'run.queued', 'position', (
            SELECT count(*) FROM conversations_run live
            WHERE live.thread_id = %(thread_id)s AND live.status IN ('queued', 'running')))))
    FROM run RETURNING events::text
)
SELECT floor(extract(epoch FROM created_at) * 1000)::bigint, 1, queued.events FROM run, queued
"""
_START_NEW: Final = """
WITH starting AS (
    SELECT *, worker <> '' AS is_claimed, clock_timestamp() AS now
    FROM json_to_recordset(%(starting)s) AS starting(run_id uuid, owner_id uuid, thread_id uuid,
        title text, count int, client_run_id text, digest text, request_id text, dialect text,
        model text, request jsonb, queue_limit_s float8, deadline_s int, stored bool,
        worker text, lease_s float8, prompt_versions jsonb)
), thread AS (
    INSERT INTO conversations_thread (id, owner_id, title, last_seq, updated_at, head_run_id)
    SELECT thread_id, owner_id, title, count,
        CASE WHEN stored THEN statement_timestamp() ELSE to_timestamp(0) END,
        CASE WHEN stored THEN run_id END FROM starting
), run AS (
    INSERT INTO conversations_run (id, owner_id, thread_id, thread_seq, client_run_id, request_digest,
        request_id, dialect, model, request, deadline_at, deadline_s, stored,
        status, worker, attempt, fence, lease_until, started_at, prompt_versions)
    SELECT run_id, owner_id, thread_id, 1, client_run_id, digest, request_id, dialect, model, request,
        now + make_interval(secs => CASE WHEN is_claimed THEN deadline_s ELSE queue_limit_s END),
        deadline_s, stored, CASE WHEN is_claimed THEN 'running' ELSE 'queued' END, worker,
        is_claimed::int, is_claimed::int,
        CASE WHEN is_claimed THEN now + make_interval(secs => lease_s) END,
        CASE WHEN is_claimed THEN now END,
        CASE WHEN is_claimed THEN coalesce(request->'prompts', prompt_versions) ELSE '[]' END
    FROM starting
    RETURNING id, status = 'running' AS is_claimed,
        floor(extract(epoch FROM created_at) * 1000)::bigint AS created_at_ms,
        floor(extract(epoch FROM deadline_at) * 1000)::bigint AS deadline_at_ms,
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at_ms
), message AS (
    INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content, client_id,
        metadata)
    SELECT id, owner_id, thread_id, run_id, seq, role, content, client_id, metadata
    FROM json_populate_recordset(NULL::conversations_message, %(messages)s)
), logged AS (
    INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
    SELECT id, 1, 1 + is_claimed::int, CASE WHEN is_claimed THEN json_build_array(
        json_build_array(at_ms, json_build_object('type', 'run.queued', 'position', 0)),
        json_build_array(at_ms, json_build_object(
            'type', 'run.started', 'attempt', 1, 'deadline_at', deadline_at_ms))
    ) ELSE json_build_array(
        json_build_array(at_ms, json_build_object('type', 'run.queued', 'position', 0))
    ) END
    FROM run RETURNING run_id, last_seq, events::text
)
SELECT id, created_at_ms, logged.last_seq, logged.events, deadline_at_ms
FROM run JOIN logged ON run_id = id
"""
_OF_RUN: Final = (
    *("run_id", "owner_id", "thread_id", "title", "count", "client_run_id", "digest"),
    *("request_id", "dialect", "model", "queue_limit_s", "deadline_s", "stored"),
    *("worker", "lease_s", "prompt_versions"),
)
_UNCLAIMED: Final = {"worker": "", "lease_s": 0, "prompt_versions": []}
_LOCK_THREAD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(thread_id)s::text, 0))"
_LIVE: Final = """
SELECT id FROM conversations_run
WHERE thread_id = %(thread_id)s AND owner_id = %(owner_id)s AND status IN ('queued', 'running')
"""
_SAME: Final = """
SELECT id, request_digest, floor(extract(epoch FROM created_at) * 1000)::bigint, NOT stored AND folded
FROM conversations_run WHERE owner_id = %s AND thread_id = %s AND client_run_id = %s
"""
_CANCEL: Final = """
UPDATE conversations_run SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp())
WHERE id = %s AND status IN ('queued', 'running') RETURNING status, fence
"""


class InsertedRun(NamedTuple):
    """What the database says of a run that it has written: its first batch, which ends with `last_seq`.

    The deadline is that of a run that was claimed.
    """

    created_at_ms: int
    last_seq: int
    events: str
    deadline_at_ms: int = 0


async def insert_run(connection: AsyncConnection[Any], row: dict[str, Any]) -> InsertedRun | None:
    """Write the run in the caller's transaction.

    Return None for another user's thread: clients name new threads by UUID, so a taken id is refused
    and a free one is used.
    """
    arguments = row | {"messages": sql.rows_as_json(row["messages"])}
    found = await (await connection.execute(_START, arguments)).fetchone()
    return InsertedRun(*found) if found else None


async def _insert_new(rows: list[dict[str, Any]]) -> list[InsertedRun]:
    arguments = {
        "starting": sql.rows_as_json(_starting(row) for row in rows),
        "messages": sql.rows_as_json(message for row in rows for message in row["messages"]),
    }
    found = {row[0]: InsertedRun(*row[1:]) for row in await sql.every(_START_NEW, arguments)}
    return [found[row["run_id"]] for row in rows]


def _starting(row: dict[str, Any]) -> dict[str, Any]:
    given = _UNCLAIMED | row
    return {name: given[name] for name in _OF_RUN} | {"request": sql.raw_json(row["request"])}


_new_runs: Final = sql.Grouped(_insert_new, most=_TOGETHER)


async def insert_in_new_thread(row: dict[str, Any]) -> InsertedRun:
    """Write a run and the thread that starts with it, together with others that arrive now.

    With a `worker` it is claimed for that one, as `leases.claim` does, for `lease_s` at first.
    """
    return await _new_runs.call(row)


async def lock_thread(connection: AsyncConnection[Any], thread_id: UUID, owner_id: UUID) -> list[UUID]:
    """Lock the thread's id until the transaction ends. Return its runs that have not ended."""
    arguments = {"thread_id": thread_id, "owner_id": owner_id}
    await connection.execute(_LOCK_THREAD, arguments)
    return [run_id for (run_id,) in await (await connection.execute(_LIVE, arguments)).fetchall()]


async def find_earlier_run(
    connection: AsyncConnection[Any], *, owner_id: UUID, thread_id: UUID, client_run_id: str | None
) -> EarlierRun | None:
    """Return the run that the client has started under this id in the thread."""
    cursor = await connection.execute(_SAME, (owner_id, thread_id, client_run_id))
    row = await cursor.fetchone()
    return EarlierRun(*row) if row else None


async def request_cancel(run_id: UUID) -> tuple[str, int] | None:
    """Mark a run for cancellation. Return its status and its fence; None if it has ended."""
    row: tuple[str, int] | None = await sql.one(_CANCEL, (run_id,))
    return row
