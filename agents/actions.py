"""What clients may have done: start a run, cancel a run. One statement each, then a wake-up."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID, uuid4, uuid5

import msgspec
from django.conf import settings
from psycopg import AsyncConnection
from psycopg.errors import UniqueViolation

from agents import endings, requests, tasks, worker
from agents.load import load
from agents.requests import OnBusy, RunRequest
from config import database, ring
from config.errors import Conflict, NotFound
from conversations.identifiers import uuid7
from prompts import app_settings
from prompts.routing import check_model


@dataclass(frozen=True)
class Accepted:
    """A run that is durably accepted (promise P1)."""

    run_id: UUID
    thread_id: UUID
    created: bool = True


_START: Final = """
WITH thread AS (
    INSERT INTO conversations_thread (id, owner_id, title, last_seq)
    VALUES (%(thread_id)s, %(owner_id)s, %(title)s, %(count)s)
    ON CONFLICT (id) DO UPDATE SET
        last_seq = conversations_thread.last_seq + %(count)s, updated_at = statement_timestamp()
        WHERE conversations_thread.owner_id = excluded.owner_id
    RETURNING id, last_seq - %(count)s AS base
), run AS (
    INSERT INTO conversations_run (id, owner_id, thread_id, thread_seq, client_run_id,
        request_digest, request_id, dialect, model, request, deadline_at, deadline_s)
    SELECT %(run_id)s, %(owner_id)s, thread.id, thread.base + 1, %(client_run_id)s,
        %(digest)s, %(request_id)s, %(dialect)s, %(model)s, %(request)s::jsonb,
        clock_timestamp() + make_interval(secs => %(queue_limit_s)s), %(deadline_s)s FROM thread
    RETURNING id
), message AS (
    INSERT INTO conversations_message (id, thread_id, run_id, seq, role, content, client_id, metadata)
    SELECT m.id, thread.id, run.id, thread.base + m.place, m.role, m.content, m.client_id,
        %(metadata)s::jsonb
    FROM thread, run, unnest(%(ids)s::uuid[], %(roles)s::text[], %(contents)s::text[],
        %(client_ids)s::text[]) WITH ORDINALITY AS m(id, role, content, client_id, place)
), queued AS (
    INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
    SELECT run.id, 1, 1, json_build_array(json_build_array(
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        json_build_object('type', 'run.queued', 'position', (
            SELECT count(*) FROM conversations_run live
            WHERE live.thread_id = %(thread_id)s AND live.status IN ('queued', 'running')))))
    FROM run
)
SELECT id FROM run
"""
_LOCK_THREAD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(thread_id)s::text, 0))"
_LIVE: Final = """
SELECT id FROM conversations_run
WHERE thread_id = %(thread_id)s AND owner_id = %(owner_id)s AND status IN ('queued', 'running')
"""
_SAME: Final = """
SELECT id, request_digest FROM conversations_run
WHERE owner_id = %s AND thread_id = %s AND client_run_id = %s
"""


async def start_run(request: RunRequest, *, owner_id: UUID) -> Accepted:
    """Accept a run: thread, messages, run and `run.queued` in one transaction, then wake a worker.

    With a `client_run_id` the same request gives the run that it gave before (promise P5). Raises
    InvalidRequest for a model that is not served, NotFound for another user's thread, Conflict for
    a `client_run_id` that was used with another request or for a busy thread (`on_busy` reject),
    TooManyRequests or Unavailable when too much is waiting.
    """
    model = await check_model(request.model)
    request = await _with_defaults(request)
    thread_id = _thread_of(request, owner_id)
    run_id = uuid7()
    arguments = _start_arguments(request, owner_id, thread_id, run_id, model)
    load.admit(owner_id)
    in_the_way: list[UUID] = []
    async with database.connection() as connection:
        try:
            if request.on_busy == "enqueue":
                await _insert(connection, arguments)
            else:
                in_the_way = await _insert_alone(connection, arguments, request.on_busy)
        except UniqueViolation:
            return await _already(connection, request, owner_id, thread_id, arguments["digest"])
    for live_id in in_the_way:  # not while a connection is held: all of them could wait for one more
        await cancel_run(live_id)
    tasks.wake_workers(run_id)
    return Accepted(run_id, thread_id)


async def _insert(connection: AsyncConnection[Any], arguments: dict[str, Any]) -> None:
    if await (await connection.execute(_START, arguments)).fetchone() is None:
        raise NotFound("There is no such conversation.", code="conversation_not_found")


async def _insert_alone(
    connection: AsyncConnection[Any], arguments: dict[str, Any], on_busy: OnBusy
) -> list[UUID]:
    """Start the run on a thread without a live one, or refuse it (reject); the live ones to end.

    Looking and inserting happen under a lock on the thread's id, so of two that reject one starts.
    """
    async with connection.transaction():
        await connection.execute(_LOCK_THREAD, arguments)
        live = await (await connection.execute(_LIVE, arguments)).fetchall()
        if live and on_busy == "reject":
            raise Conflict("The conversation is busy with another run.", code="thread_busy")
        await _insert(connection, arguments)
    return [live_id for (live_id,) in live]


def _thread_of(request: RunRequest, owner_id: UUID) -> UUID:
    """The thread asked for, or a new one; for a repeatable request always the same new one."""
    if request.thread_id:
        return UUID(request.thread_id)
    return uuid5(owner_id, request.client_run_id) if request.client_run_id else uuid4()


async def _with_defaults(request: RunRequest) -> RunRequest:
    """The request with what staff decide where the client did not."""
    if request.result_mode is not None:
        return request
    mode = await app_settings.aget("default_result_mode")
    return msgspec.structs.replace(request, result_mode=mode)


async def _already(
    connection: AsyncConnection[Any], request: RunRequest, owner_id: UUID, thread_id: UUID, digest: str
) -> Accepted:
    cursor = await connection.execute(_SAME, (owner_id, thread_id, request.client_run_id))
    row = await cursor.fetchone()
    if row is None or row[1] != digest:
        raise Conflict("runId already used", code="run_id_already_used")
    return Accepted(row[0], thread_id, created=False)


def _start_arguments(
    request: RunRequest, owner_id: UUID, thread_id: UUID, run_id: UUID, model: str
) -> dict[str, Any]:
    said = request.messages
    first = next((message.content for message in said if message.role == "user"), "")
    return {
        "thread_id": thread_id,
        "owner_id": owner_id,
        "title": " ".join(first[:400].split())[:80],
        "count": len(said),
        "run_id": run_id,
        "client_run_id": request.client_run_id,
        "digest": _digest(request),
        "request_id": request.request_id,
        "dialect": request.dialect,
        "model": model,
        "request": requests.dump(request).decode(),
        "queue_limit_s": settings.RUN_QUEUE_LIMIT_S,
        "deadline_s": request.deadline_s or settings.RUN_DEADLINE_S,
        "metadata": f'{{"run_id": "{run_id.hex}"}}',
        "ids": [uuid7() for _ in said],
        "roles": [message.role for message in said],
        "contents": [message.content for message in said],
        "client_ids": [message.client_id for message in said],
    }


def _digest(request: RunRequest) -> str:
    """What tells a repeated request from another one; the request id is not part of it."""
    return hashlib.sha256(requests.dump(requests.without_request_id(request))).hexdigest()


_CANCEL: Final = """
UPDATE conversations_run SET cancel_requested_at = coalesce(cancel_requested_at, clock_timestamp())
WHERE id = %s AND status IN ('queued', 'running') RETURNING status, fence
"""


async def cancel_run(run_id: UUID) -> None:
    """Ask for a run's end: a waiting one ends now, a running one within two seconds (promise P9).

    The caller has checked whose run it is. A run that has ended stays as it is.
    """
    async with database.connection() as connection:
        row = await (await connection.execute(_CANCEL, (run_id,))).fetchone()
    if row is None:
        return
    status, fence = row
    if status == "queued":
        await endings.settle(run_id, "cancelled", fence=fence)
    else:
        ring.ring(worker.GROUP, {"cancel": run_id.bytes})
