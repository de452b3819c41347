"""What clients may have done: start a run, cancel a run. One statement each, then a wake-up."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import msgspec
from django.conf import settings
from psycopg import AsyncConnection
from psycopg.errors import UniqueViolation

from agents import (
    answer_form,
    approvals,
    budgets,
    incoming,
    request_limits,
    requests,
    settling,
    tasks,
    worker,
)
from agents.load import load
from agents.prefetching import prefetch_with_defaults
from agents.providers.base import unsaid
from agents.requests import Generation, OnBusy, RunRequest
from agents.settling import Due
from agents.tools import granting
from config import database, ring
from config.errors import Conflict, InvalidRequest, NotFound
from conversations import copies
from conversations.identifiers import uuid7
from conversations.unstored import title_of
from prompts import app_settings, quotas
from prompts.routing import Served, check_model, default_model


@dataclass(frozen=True)
class Accepted:
    """A run that is durably accepted (promise P1); `created` is False for a repeated request."""

    run_id: UUID
    thread_id: UUID
    created_at_ms: int
    created: bool = True


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
    SELECT m.id, %(owner_id)s, thread.id, run.id, thread.base + m.place, m.role, m.content, m.client_id,
        m.metadata::jsonb
    FROM thread, run, unnest(%(ids)s::uuid[], %(roles)b::text[], %(contents)b::text[],
        %(client_ids)b::text[], %(metadata)b::text[])
        WITH ORDINALITY AS m(id, role, content, client_id, metadata, place)
), queued AS (
    INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
    SELECT run.id, 1, 1, json_build_array(json_build_array(
        floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
        json_build_object('type', 'run.queued', 'position', (
            SELECT count(*) FROM conversations_run live
            WHERE live.thread_id = %(thread_id)s AND live.status IN ('queued', 'running')))))
    FROM run
)
SELECT floor(extract(epoch FROM created_at) * 1000)::bigint FROM run
"""
_LOCK_THREAD: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%(thread_id)s::text, 0))"
_LIVE: Final = """
SELECT id FROM conversations_run
WHERE thread_id = %(thread_id)s AND owner_id = %(owner_id)s AND status IN ('queued', 'running')
"""
_SAME: Final = """
SELECT id, request_digest, floor(extract(epoch FROM created_at) * 1000)::bigint
FROM conversations_run WHERE owner_id = %s AND thread_id = %s AND client_run_id = %s
"""


async def start_run(
    request: RunRequest, *, owner_id: UUID, thread_id: UUID, copied_from: UUID | None = None
) -> Accepted:
    """Accept a run: thread, messages, run and `run.queued` in one transaction, then wake a worker.

    `thread_id` is the thread that the request means, or a new one's; `copied_from` the thread whose
    messages the request repeats in a new one. With a `client_run_id` the same request gives the run
    that it gave before (promise P5). Raises InvalidRequest for a model that is not served, a file that
    is not the caller's or an answer's form that cannot be used, NotFound for another user's thread,
    Conflict for a `client_run_id` that was used with another request or for a busy thread (`on_busy`
    reject), TooManyRequests or Unavailable when too much is waiting, and TooManyRequests
    `model_daily_quota_exceeded` when the account's runs of the day are used up, or `budget_exceeded`
    when its money, or everybody's, is.
    """
    digest = _digest(request)
    if request.client_run_id and (repeated := await _repeated(request, owner_id, thread_id, digest)):
        return repeated
    prepared = await prepare(request, owner_id=owner_id, thread_id=thread_id)
    async with database.connection() as connection:
        try:
            created_at_ms, in_the_way = await _write(connection, prepared, copied_from)
        except UniqueViolation:
            return await _already(connection, request, owner_id, thread_id, digest)
    tasks.wake_workers(prepared.run_id)
    for live_id in in_the_way:  # not while a connection is held: all of them could wait for one more
        await cancel_run(live_id)
    return Accepted(prepared.run_id, prepared.thread_id, created_at_ms)


@dataclass(frozen=True)
class Prepared:
    """A run that may be started: everything is checked that can be before it is written."""

    request: RunRequest
    owner_id: UUID
    thread_id: UUID
    arguments: dict[str, Any]
    quota: str
    budgeted: bool

    @property
    def run_id(self) -> UUID:
        found: UUID = self.arguments["run_id"]
        return found


async def prepare(
    request: RunRequest, *, owner_id: UUID, thread_id: UUID, counts: bool = True
) -> Prepared:
    """Check and complete a request; raises what `start_run` does.

    One that only goes on with an interrupted run does not count towards the runs of the day, and the
    budget is asked before its first model call only.
    """
    digest = _digest(request)
    served = await check_model(request.model or await default_model(), user_id=owner_id)
    _check_words(request.generation, served)
    await granting.check_named(request.servers, request.needs, user_id=owner_id)
    if request.generation.json_schema is not None:
        await answer_form.check(request.generation.json_schema)
    request = await _with_defaults(request, model=served.name)
    request = await incoming.settled(request, owner_id=owner_id, thread_id=thread_id)
    arguments = _start_arguments(request, owner_id, thread_id, digest)
    limited = counts and await quotas.is_limited(served.family)
    load.admit(owner_id)
    budgeted = counts and await budgets.exist()
    quota = served.family if limited else ""
    return Prepared(request, owner_id, thread_id, arguments, quota, budgeted)


_WORDS: Final = {"verbosity": "text.verbosity", "reasoning_summary": "reasoning.summary"}


def _check_words(wanted: Generation, served: Served) -> None:
    """Refuse what no endpoint of the model can be told: nobody would see to it."""
    missing = [unsaid(dialect, wanted) for dialect in served.dialects]
    if missing and all(missing):
        field = _WORDS[str(missing[0])]
        raise InvalidRequest(
            f"{field}: this model cannot be asked for that.", code="unsupported_parameter", param=field
        )


async def insert(connection: AsyncConnection[Any], prepared: Prepared) -> int:
    """Write the run in the caller's transaction; the caller wakes a worker once it is committed."""
    return await _insert(connection, prepared.arguments)


async def _write(
    connection: AsyncConnection[Any], prepared: Prepared, copied_from: UUID | None
) -> tuple[int, list[UUID]]:
    """When the run was created, and the live ones that it interrupts."""
    request, arguments = prepared.request, prepared.arguments
    if not (prepared.quota or prepared.budgeted or request.answers or copied_from):
        return await _accept(connection, arguments, request.on_busy)
    owner_id, thread_id = prepared.owner_id, prepared.thread_id
    async with connection.transaction():
        if request.answers:
            await approvals.answer(connection, request.answers, owner_id=owner_id, thread_id=thread_id)
        accepted = await _accept(connection, arguments, request.on_busy)
        if copied_from:
            await copies.record(connection, thread_id, source=copied_from)
        if prepared.quota:
            await quotas.take(connection, owner_id, prepared.quota)
        if prepared.budgeted:
            await budgets.check(connection, owner_id)
    return accepted


async def _accept(
    connection: AsyncConnection[Any], arguments: dict[str, Any], on_busy: OnBusy
) -> tuple[int, list[UUID]]:
    """When the run was created, and the live ones that it interrupts."""
    if on_busy == "enqueue":
        return await _insert(connection, arguments), []
    return await _insert_alone(connection, arguments, on_busy)


async def _insert(connection: AsyncConnection[Any], arguments: dict[str, Any]) -> int:
    """When the run was created. NotFound for another user's thread, in the words for one that is gone.

    Clients name new threads by UUID, so an id that somebody has is refused and a free one is taken.
    """
    row = await (await connection.execute(_START, arguments)).fetchone()
    if row is None:
        raise NotFound("There is no such conversation.", code="conversation_not_found")
    return int(row[0])


async def _insert_alone(
    connection: AsyncConnection[Any], arguments: dict[str, Any], on_busy: OnBusy
) -> tuple[int, list[UUID]]:
    """Start the run on a thread without a live one, or refuse it (reject); the live ones to end.

    Looking and inserting happen under a lock on the thread's id, so of two that reject one starts.
    """
    async with connection.transaction():
        await connection.execute(_LOCK_THREAD, arguments)
        live = await (await connection.execute(_LIVE, arguments)).fetchall()
        if live and on_busy == "reject":
            raise Conflict("The conversation is busy with another run.", code="thread_busy")
        created_at_ms = await _insert(connection, arguments)
    return created_at_ms, [live_id for (live_id,) in live]


async def _with_defaults(request: RunRequest, *, model: str) -> RunRequest:
    """The request with what staff decide where the client did not, and the model's canonical name."""
    if request.result_mode is None and request.dialect == "text":  # the one dialect that has modes
        mode = await app_settings.aget("default_result_mode")
        request = msgspec.structs.replace(request, result_mode=mode)
    web_search = await app_settings.aget("web_search_enabled") is True
    request = msgspec.structs.replace(request, model=model)
    return prefetch_with_defaults(request, web_search=web_search)


async def _repeated(
    request: RunRequest, owner_id: UUID, thread_id: UUID, digest: str
) -> Accepted | None:
    async with database.connection() as connection:
        return await _earlier(connection, request, owner_id, thread_id, digest)


async def _already(
    connection: AsyncConnection[Any], request: RunRequest, owner_id: UUID, thread_id: UUID, digest: str
) -> Accepted:
    """The run that a parallel POST of the same request has just started."""
    earlier = await _earlier(connection, request, owner_id, thread_id, digest)
    if earlier is None:
        raise Conflict("runId already used", code="run_id_already_used")
    return earlier


async def _earlier(
    connection: AsyncConnection[Any], request: RunRequest, owner_id: UUID, thread_id: UUID, digest: str
) -> Accepted | None:
    cursor = await connection.execute(_SAME, (owner_id, thread_id, request.client_run_id))
    row = await cursor.fetchone()
    if row is None:
        return None
    if row[1] != digest:
        raise Conflict("runId already used", code="run_id_already_used")
    return Accepted(row[0], thread_id, row[2], created=False)


def _start_arguments(
    request: RunRequest, owner_id: UUID, thread_id: UUID, digest: str
) -> dict[str, Any]:
    run_id, dumped = uuid7(), requests.dump(request).decode()
    request_limits.check_stored(dumped)
    # Of a run that is not stored nothing comes into the thread: the request alone holds what is said.
    messages = request.messages if request.stored else ()
    told = incoming.metadata(request, run_id) if request.stored else []
    first = next((message.content for message in messages if message.role == "user"), "")
    return {
        "thread_id": thread_id,
        "owner_id": owner_id,
        "title": title_of(first),
        "count": len(messages),
        "run_id": run_id,
        "continues": UUID(request.continues) if request.continues else None,
        "client_run_id": request.client_run_id,
        "digest": digest,
        "request_id": request.request_id,
        "dialect": request.dialect,
        "model": request.model,
        "request": dumped,
        "stored": request.stored,
        "queue_limit_s": settings.RUN_QUEUE_LIMIT_S,
        "deadline_s": min(request.deadline_s or settings.RUN_DEADLINE_S, settings.RUN_DEADLINE_S),
        "ids": [uuid7() for _ in messages],
        "roles": [message.role for message in messages],
        "contents": [message.content for message in messages],
        "client_ids": [message.client_id for message in messages],
        "metadata": told,
    }


def _digest(request: RunRequest) -> str:
    """What tells a repeated request from another one; what staff set later is no part of it."""
    return hashlib.sha256(requests.identity(request)).hexdigest()


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
        await settling.settle(Due(run_id, fence, "cancelled"))
    else:
        ring.ring(worker.GROUP, {"cancel": run_id.bytes})
