"""Claims and leases of runs, by conditional updates (DESIGN §7).

Every change of holder adds one to the run's fence. Times are the database's, so that no host's clock
decides. A claim writes `run.started` in the same statement: because the log's key is
`(run_id, first_seq)`, a late write of a previous holder and the claim cannot both succeed.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Final, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.errors import UniqueViolation

from config import sql


class HeldRun(NamedTuple):
    """A run and the fence under which a worker holds it."""

    run_id: UUID
    fence: int


class ClaimedRun(NamedTuple):
    """A run that a worker holds now, and its request as it is stored."""

    run_id: UUID
    thread_id: UUID
    owner_id: UUID
    thread_seq: int
    attempt: int
    fence: int
    last_seq: int
    deadline_at_ms: int
    left_s: float
    request: str


class AssignedRun(NamedTuple):
    """A run that was accepted for a worker, and the ids of the prompt versions that it uses."""

    run: ClaimedRun
    version_ids: list[int]


_CLAIM_STATEMENT: Final = """
WITH ready AS (
    SELECT id, owner_id, created_at,
        row_number() OVER (PARTITION BY owner_id ORDER BY created_at) AS turn
    FROM conversations_run run
    WHERE status = 'queued' AND cancel_requested_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM conversations_run earlier WHERE earlier.thread_id = run.thread_id
        AND (earlier.thread_seq, earlier.id) < (run.thread_seq, run.id)
        AND earlier.status IN ('queued', 'running')
    ) AND (for_worker IN ('', %(worker)s) OR NOT EXISTS (HOLDER))
), busy AS (
    SELECT owner_id, count(*) AS runs FROM conversations_run WHERE status = 'running' GROUP BY owner_id
), fair AS (
    SELECT ready.id FROM ready LEFT JOIN busy USING (owner_id)
    ORDER BY ready.turn + coalesce(busy.runs, 0), ready.created_at LIMIT %(limit)s
), next AS (
    SELECT id FROM conversations_run WHERE id IN (SELECT id FROM fair) AND status = 'queued'
    ORDER BY created_at FOR UPDATE SKIP LOCKED
), claimed AS (
    UPDATE conversations_run run SET status = 'running', worker = %(worker)s, for_worker = '',
        attempt = attempt + 1, fence = fence + 1,
        lease_until = clock_timestamp() + make_interval(secs => %(lease_s)s),
        started_at = coalesce(started_at, clock_timestamp()),
        deadline_at = CASE WHEN attempt = 0
            THEN clock_timestamp() + make_interval(secs => deadline_s) ELSE deadline_at END,
        prompt_versions = coalesce(run.request->'prompts', %(prompt_versions)s::jsonb)
    FROM next WHERE run.id = next.id
    RETURNING run.*, (
        SELECT max(batch.last_seq) + 1 FROM conversations_eventbatch batch WHERE batch.run_id = run.id
    ) AS seq, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS at_ms
), started AS (
    INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
    SELECT id, seq, seq, json_build_array(json_build_array(at_ms, json_build_object(
        'type', 'run.started', 'attempt', attempt,
        'deadline_at', floor(extract(epoch FROM deadline_at) * 1000)::bigint
    ))) FROM claimed RETURNING run_id, events::text
)
SELECT id, thread_id, owner_id, thread_seq, attempt, fence, seq,
    floor(extract(epoch FROM deadline_at) * 1000)::bigint,
    extract(epoch FROM deadline_at - clock_timestamp())::float8, request::text, started.events
FROM claimed JOIN started ON started.run_id = claimed.id
"""
_ASSIGNED: Final = """
SELECT run.id, thread_id, owner_id, thread_seq, attempt, fence, first.last_seq,
    floor(extract(epoch FROM deadline_at) * 1000)::bigint,
    extract(epoch FROM deadline_at - clock_timestamp())::float8, request::text,
    jsonb_path_query_array(prompt_versions, '$[*].version_id')
FROM conversations_run run JOIN conversations_eventbatch first ON run_id = run.id AND first_seq = 1
WHERE run.id = ANY(%s) AND worker = %s AND status = 'running' AND fence = 1 AND first.last_seq = 2
    AND NOT EXISTS (
        SELECT FROM conversations_eventbatch more WHERE more.run_id = run.id AND more.first_seq > 2
    )
"""
_VERSIONS: Final = "%(prompt_versions)s::jsonb"
_VERSIONS_SPLIT: Final = """(
        SELECT coalesce(jsonb_agg(CASE WHEN
            ('x' || substr(md5((part->>'salt') || run.thread_id::text), 1, 8))::bit(32)::bigint %% 100
                < (part->>'percent')::int
            THEN part->'other' ELSE part->'active' END ORDER BY place), '[]')
        FROM jsonb_array_elements(%(prompt_versions)s::jsonb) WITH ORDINALITY AS parts(part, place)
    )"""
"""The versions where a prompt is split: the thread's hash chooses, as `prompts.wordings.active` does."""


@functools.cache
def claim_statement(holder: str, *, split: bool) -> str:
    """Return the statement that claims runs; `claim` documents its parts."""
    statement = _CLAIM_STATEMENT.replace("HOLDER", holder)
    return statement.replace(_VERSIONS, _VERSIONS_SPLIT) if split else statement


async def claim(
    *, worker: str, limit: int, lease_s: float, prompt_versions: str, split: bool, holder: str
) -> list[tuple[ClaimedRun, str]]:
    """Claim up to `limit` waiting runs whose thread is free; return each and its event, as in the log.

    `prompt_versions` is a JSON list of the versions that they use, or if `split` of the choices.
    `holder` is a query of another app: it has a row while the worker that `run.for_worker` names holds
    the resource that the run needs, and then no other worker takes the run.

    The order is fair: a user's next run counts behind as many as that user has running or waiting
    before it, so one user's flood does not delay another's single run.
    """
    arguments = {
        "worker": worker,
        "limit": limit,
        "lease_s": lease_s,
        "prompt_versions": prompt_versions,
    }
    try:
        rows = await sql.every(claim_statement(holder, split=split), arguments)
    except UniqueViolation:  # another worker claimed a run of the same thread at the same moment
        return []
    return [(ClaimedRun(*run), started) for *run, started in rows]


async def fetch_assigned(run_ids: Iterable[UUID], *, worker: str) -> list[AssignedRun]:
    """Return those of the runs that were accepted for this worker and have no event of its own yet."""
    rows = await sql.every(_ASSIGNED, (list(run_ids), worker))
    return [AssignedRun(ClaimedRun(*run), version_ids) for *run, version_ids in rows]


_HELD: Final = "SELECT id, fence FROM conversations_run WHERE worker = %s AND status = 'running'"


async def fetch_held(worker: str) -> list[HeldRun]:
    """Return the runs that this worker holds."""
    return [HeldRun(*row) for row in await sql.every(_HELD, (worker,))]


_RENEW: Final = """
WITH held AS (
    SELECT id, fence, cancel_requested_at IS NOT NULL AS is_cancelled FROM conversations_run
    WHERE worker = %(worker)s AND status = 'running'
), free AS (
    SELECT id FROM conversations_run WHERE id IN (SELECT id FROM held) AND status = 'running'
    AND worker = %(worker)s FOR NO KEY UPDATE SKIP LOCKED
), renewed AS (
    UPDATE conversations_run run SET lease_until = clock_timestamp() + make_interval(secs => %(lease_s)s)
    FROM free WHERE run.id = free.id
)
SELECT id, fence, is_cancelled FROM held
"""


def renew(connection: Connection[Any], *, worker: str, lease_s: float) -> dict[HeldRun, bool]:
    """Renew the leases of all runs that the worker holds. Return each, and whether to cancel it.

    Also those of a claim whose answer the worker has not read yet. A row that somebody else is changing
    is left to the next time, so that a process that froze in a transaction delays no other run.
    """
    rows = connection.execute(_RENEW, {"worker": worker, "lease_s": lease_s}).fetchall()
    return {HeldRun(run_id, fence): is_cancelled for run_id, fence, is_cancelled in rows}


_EXONERATE: Final = """
UPDATE conversations_run SET losses = losses - 1
WHERE id = ANY(%s) AND losses > 0 AND status IN ('queued', 'running')
"""


async def take_back_loss(run_ids: Iterable[UUID]) -> None:
    """Take back one lost worker of these runs: another run had blocked its loop."""
    await sql.change(_EXONERATE, (list(run_ids),))


_HAND_OVER: Final = """
UPDATE conversations_run SET status = 'queued', worker = '', for_worker = %s, lease_until = NULL,
    attempt = attempt - 1, fence = fence + 1
WHERE id = %s AND fence = %s AND status = 'running'
"""


async def hand_over(run_id: UUID, *, fence: int, to: str) -> bool:
    """Queue a run that has no event of its runner yet for the worker that can reach that runner.

    It was no attempt, and the run's deadline begins anew when that worker takes it. Once that worker
    no longer holds a plugin runtime any worker may. Return False if the run is no longer ours.
    """
    return await sql.change(_HAND_OVER, (to, run_id, fence)) == 1
