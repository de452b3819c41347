"""Who runs what: claiming runs and renewing leases by conditional updates (DESIGN §7).

Every change of hands adds one to the run's fence. Times are the database's, so that no host's clock
decides. A claim writes `run.started` in the same statement: because the log's key is
`(run_id, first_seq)`, a late write of a previous holder and the claim cannot both succeed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from psycopg.errors import UniqueViolation

from agents import requests
from agents.requests import RunRequest
from config import database
from conversations import log
from conversations.log import Batch

WORKERS: Final = "worker"
"""The ring's group that all workers listen to."""


class Claim(Struct, frozen=True):
    """A run that is this worker's to execute, until its lease ends; the event `started` says so."""

    run_id: UUID
    thread_id: UUID
    user_id: UUID
    thread_seq: int
    attempt: int
    fence: int
    last_seq: int
    deadline_at_ms: int
    left_s: float
    request: RunRequest
    started: str


_CLAIM: Final = """
WITH ready AS (
    SELECT id, owner_id, created_at,
        row_number() OVER (PARTITION BY owner_id ORDER BY created_at) AS turn
    FROM conversations_run run
    WHERE status = 'queued' AND cancel_requested_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM conversations_run earlier WHERE earlier.thread_id = run.thread_id
        AND (earlier.thread_seq, earlier.id) < (run.thread_seq, run.id)
        AND earlier.status IN ('queued', 'running')
    ) AND (for_worker IN ('', %(worker)s) OR NOT EXISTS (
        SELECT FROM agents_pluginruntime
        WHERE held_by = run.for_worker AND held_until > clock_timestamp()
    ))
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


_CLAIM_SPLIT: Final = _CLAIM.replace(
    "%(prompt_versions)s::jsonb",
    """(
        SELECT coalesce(jsonb_agg(CASE WHEN
            ('x' || substr(md5((part->>'salt') || run.thread_id::text), 1, 8))::bit(32)::bigint %% 100
                < (part->>'percent')::int
            THEN part->'other' ELSE part->'active' END ORDER BY place), '[]')
        FROM jsonb_array_elements(%(prompt_versions)s::jsonb) WITH ORDINALITY AS parts(part, place)
    )""",
)
"""The same where a prompt is split: the thread's hash chooses, as `prompts.active.Part` does."""


async def claim(
    *, worker: str, limit: int, lease_s: float, prompt_versions: str, split: bool = False
) -> list[Claim]:
    """Take up to `limit` waiting runs whose thread is free; who takes them announces their start.

    `prompt_versions` is a JSON list of the versions that they use, or if `split` of the choices.

    The order is fair: a user's next run counts behind as many as that user has running or waiting
    before it, so one user's flood does not hold up another's single run.
    """
    arguments = {
        "worker": worker,
        "limit": limit,
        "lease_s": lease_s,
        "prompt_versions": prompt_versions,
    }
    try:
        async with database.connection() as connection:
            rows = await (
                await connection.execute(_CLAIM_SPLIT if split else _CLAIM, arguments)
            ).fetchall()
    except UniqueViolation:  # another worker took a run of the same thread in the same moment
        return []
    return [_claimed(row) for row in rows]


def _claimed(row: Sequence[Any]) -> Claim:
    return Claim(*row[:9], requests.load(row[9]), row[10])  # type: ignore[call-arg]


def announce(taken: Sequence[Claim]) -> None:
    """Tell those who follow these runs that they have started."""
    log.announce([Batch(one.run_id, one.last_seq, one.last_seq, one.started) for one in taken])


_RENEW: Final = """
WITH mine AS (SELECT * FROM unnest(%s::uuid[], %s::int[]) AS m(id, fence))
UPDATE conversations_run run SET lease_until = clock_timestamp() + make_interval(secs => %s)
FROM mine WHERE run.id = mine.id AND run.fence = mine.fence AND run.status = 'running'
RETURNING run.id, run.cancel_requested_at IS NOT NULL
"""


async def renew(held: Sequence[tuple[UUID, int]], *, lease_s: float) -> dict[UUID, bool]:
    """Renew the leases of (run, fence) pairs: run → whether to cancel it; lost ones are absent."""
    async with database.connection() as connection:
        cursor = await connection.execute(_RENEW, _renewal(held, lease_s))
        return dict(await cursor.fetchall())


def renew_from_thread(held: Sequence[tuple[UUID, int]], *, lease_s: float) -> None:
    """Renew them without a loop, on a connection of the calling thread's own."""
    with database.connect() as connection:
        connection.execute(_RENEW, _renewal(held, lease_s))


def _renewal(held: Sequence[tuple[UUID, int]], lease_s: float) -> tuple[list[UUID], list[int], float]:
    return [run_id for run_id, _ in held], [fence for _, fence in held], lease_s


_EXONERATE: Final = """
UPDATE conversations_run SET losses = losses - 1
WHERE id = ANY(%s) AND losses > 0 AND status IN ('queued', 'running')
"""


async def exonerate(run_ids: Iterable[UUID]) -> None:
    """Take back one lost worker of these runs: another run has held its loop."""
    async with database.connection() as connection:
        await connection.execute(_EXONERATE, (list(run_ids),))


_HAND_OVER: Final = """
UPDATE conversations_run SET status = 'queued', worker = '', for_worker = %s, lease_until = NULL,
    attempt = attempt - 1, fence = fence + 1
WHERE id = %s AND fence = %s AND status = 'running'
"""


async def hand_over(run_id: UUID, *, fence: int, to: str) -> bool:
    """Queue a run, of which nothing was said yet, for the worker that can reach its runner.

    It was no attempt, and the run's deadline begins anew when that worker takes it. Once that one no
    longer holds a plugin runtime any worker may. False if the run is no longer ours.
    """
    async with database.connection() as connection:
        return (await connection.execute(_HAND_OVER, (to, run_id, fence))).rowcount == 1
