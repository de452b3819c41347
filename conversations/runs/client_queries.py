"""Clients' reads of runs, by plain SQL on the hot path; always the caller's own rows only (P10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final
from uuid import UUID

from msgspec import Struct
from psycopg.rows import dict_row

from config import database, sql
from config.errors import Gone, NotFound
from config.http.documentation.json_types import Count, Hex, Shown, Time, Uuid, noted, one_of
from conversations.identifiers import lowest_uuid7, uuid_of
from conversations.models import LIVE, RunStatus
from conversations.runs import interrupts
from conversations.runs.interrupts import STATUSES, Interrupt
from conversations.usage import usd

_HEAD: Final = """
SELECT id, thread_id, owner_id, dialect, request_id, status, model, request->>'result_mode',
    client_run_id, floor(extract(epoch FROM created_at) * 1000)::bigint, request->'wire',
    stored
FROM conversations_run WHERE
"""
_BY_ID: Final = _HEAD + "id = %s"  # before statistics: with `AND owner_id` all the owner's were read
_BY_CLIENT_ID: Final = _HEAD + "owner_id = %s AND client_run_id = %s ORDER BY created_at DESC LIMIT 1"
_LONGEST_ID: Final = 128


class RunRow(Struct, frozen=True):
    """The head of a run."""

    run_id: UUID
    thread_id: UUID
    owner_id: UUID
    dialect: str
    request_id: str
    status: str
    model: str
    result_mode: str | None
    client_run_id: str | None
    created_at_ms: int
    wire: dict[str, Any] | None
    stored: bool = True


def run_not_found() -> NotFound:
    return NotFound("There is no such run.", code="run_not_found")


async def fetch_run(reference: str, *, user_id: UUID) -> RunRow:
    """Return the head of the user's run by its id (32 hex digits or a UUID) or by the client's `runId`.

    Our id comes first; of several runs with one `runId` (in different threads) the newest counts.
    Raise NotFound for an unknown run, a foreign one, and one that has ended and is not stored.
    """
    row = await fetch_started_run(reference, user_id=user_id)
    if not row.stored and row.status not in LIVE:
        raise run_not_found()
    return row


async def fetch_started_run(reference: str, *, user_id: UUID) -> RunRow:
    """Return the same for the client that started or ended the run: also of one that is not stored."""
    if not 0 < len(reference) <= _LONGEST_ID or "\x00" in reference:
        raise run_not_found()
    run_id = uuid_of(reference)
    async with database.connection() as connection:
        row = None
        if run_id is not None:
            row = await (await connection.execute(_BY_ID, (run_id,))).fetchone()
        if row is None or row[2] != user_id:
            row = await (await connection.execute(_BY_CLIENT_ID, (user_id, reference))).fetchone()
    if row is None:
        raise run_not_found()
    return RunRow(*row)


_KEPT: Final = "SELECT EXISTS (SELECT 1 FROM conversations_eventbatch WHERE run_id = %s)"


async def check_events_kept(run: RunRow) -> None:
    """Raise Gone if an ended run's events are past EVENT_RETENTION_DAYS, which is a day at least."""
    if not await has_events(run):
        raise Gone("The events of this run are no longer kept.", code="events_expired")


async def has_events(run: RunRow) -> bool:
    """Return whether the run can still be replayed."""
    a_day_ago = lowest_uuid7(datetime.now(UTC) - timedelta(days=1))
    if run.status in LIVE or run.run_id > a_day_ago:
        return True
    return bool(await sql.one(_KEPT, (run.run_id,)) == (True,))


_DETAIL: Final = """
SELECT id, thread_id, dialect, model, status, attempt, created_at, started_at, first_token_at,
    finished_at, deadline_at, cancel_requested_at, provider, resolved_model, endpoint_id,
    finish_reason, error_code, error_message, input_tokens, output_tokens, cached_tokens,
    reasoning_tokens, cache_write_tokens, unpriced_tokens, cost_usd, model_usage,
    prompt_versions, request_id, client_run_id, request->'metadata' AS metadata
FROM conversations_run WHERE id = %s
"""


class RunProblem(Shown, frozen=True):
    code: str
    message: str


class ModelUsage(Shown, frozen=True):
    """The usage and cost of one model of a run."""

    provider: str
    model: str
    endpoint_id: int | None
    calls: Count
    input_tokens: Count
    output_tokens: Count
    cached_tokens: Count
    reasoning_tokens: Count
    cache_write_tokens: Count
    unpriced_tokens: Count
    cost_usd: str | None


class RunUsage(Shown, frozen=True):
    input_tokens: Count
    output_tokens: Count
    cached_tokens: Count
    reasoning_tokens: Count
    cache_write_tokens: Count
    unpriced_tokens: Count
    cost_usd: Annotated[str | None, noted("Of the known prices; null if none is known.")]
    models: list[ModelUsage] | None


class RunTimings(Shown, frozen=True):
    created_at: Time
    started_at: Time | None
    first_token_at: Time | None
    finished_at: Time | None
    queue_ms: Count | None
    first_token_ms: Count | None
    total_ms: Count | None


class UsedVersion(Shown, frozen=True):
    """A prompt version of a run."""

    kind: str
    name: str
    number: int
    prompt_id: int
    version_id: int


class Approval(Shown, frozen=True):
    """An interrupt as its owner and staff see it."""

    id: Hex
    status: Annotated[str, one_of(*STATUSES)]
    run_id: Hex
    thread_id: Uuid
    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any]
    edited_arguments: dict[str, Any] | None
    message: str
    reason: str | None
    created_at: Time
    expires_at: Time
    decided_at: Time | None
    decided_by: Uuid | None
    told_run_id: Hex | None


class RunDetail(Shown, frozen=True):
    """A run as its owner sees it."""

    run_id: Hex
    message_id: Hex
    conversation_id: Uuid
    client_run_id: str | None
    dialect: str
    model: str
    status: Annotated[str, one_of(*RunStatus.values)]
    attempt: Count
    provider: str | None
    resolved_model: str | None
    endpoint_id: int | None
    finish_reason: str | None
    error: RunProblem | None
    usage: RunUsage
    timings: RunTimings
    prompt_versions: list[UsedVersion]
    cancel_requested: bool
    request_id: str
    metadata: dict[str, Any]
    interrupts: list[Approval]


async def fetch_run_detail(reference: str, *, user_id: UUID) -> RunDetail:
    """Return the user's run: status, timings, usage, error. Raise NotFound as `fetch_run`."""
    run = await fetch_run(reference, user_id=user_id)
    async with database.connection() as connection, connection.cursor(row_factory=dict_row) as cursor:
        row = await (await cursor.execute(_DETAIL, (run.run_id,))).fetchone()
    if row is None:
        raise run_not_found()
    pending = await interrupts.list_of_run(run.run_id) if row["finish_reason"] == "interrupt" else []
    return _show(row, [show_interrupt(one) for one in pending])


def show_interrupt(interrupt: Interrupt) -> Approval:
    """Return an interrupt as its owner and staff see it."""
    decided_at = interrupt.decided_at
    return Approval(
        id=interrupt.id.hex,
        status=interrupt.status,
        run_id=interrupt.run_id.hex,
        thread_id=str(interrupt.thread_id),
        tool_call_id=interrupt.tool_call_id,
        tool_name=interrupt.tool_name,
        arguments=interrupt.arguments,
        edited_arguments=interrupt.edited_arguments,
        message=interrupt.message,
        reason=interrupt.decision_reason or None,
        created_at=interrupt.created_at.isoformat(),
        expires_at=interrupt.expires_at.isoformat(),
        decided_at=decided_at.isoformat() if decided_at else None,
        decided_by=str(interrupt.decided_by) if interrupt.decided_by else None,
        told_run_id=interrupt.told_run_id.hex if interrupt.told_run_id else None,
    )


def _show(row: dict[str, Any], pending: list[Approval]) -> RunDetail:
    failed = RunProblem(row["error_code"], row["error_message"]) if row["error_code"] else None
    counted = {name: row[name] for name in _TOKENS}
    return RunDetail(
        run_id=row["id"].hex,
        message_id=row["id"].hex,
        conversation_id=str(row["thread_id"]),
        client_run_id=row["client_run_id"],
        dialect=row["dialect"],
        model=row["model"],
        status=row["status"],
        attempt=row["attempt"],
        provider=row["provider"] or None,
        resolved_model=row["resolved_model"] or None,
        endpoint_id=row["endpoint_id"],
        finish_reason=row["finish_reason"] or None,
        error=failed,
        usage=RunUsage(**counted, cost_usd=usd(row["cost_usd"]), models=row["model_usage"]),
        timings=_timings(row),
        prompt_versions=row["prompt_versions"],
        cancel_requested=row["cancel_requested_at"] is not None,
        request_id=row["request_id"],
        metadata=row["metadata"] or {},
        interrupts=pending,
    )


_TOKENS: Final = (
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cache_write_tokens",
    "unpriced_tokens",
)


def _timings(row: dict[str, Any]) -> RunTimings:
    names = ("created_at", "started_at", "first_token_at", "finished_at")
    created, started, first, finished = (row[name] for name in names)
    times: dict[str, Any] = {name: row[name].isoformat() if row[name] else None for name in names}
    return RunTimings(
        **times,
        queue_ms=milliseconds_between(created, started),
        first_token_ms=milliseconds_between(created, first),
        total_ms=milliseconds_between(created, finished),
    )


def milliseconds_between(begin: datetime | None, end: datetime | None) -> int | None:
    """Return whole milliseconds, not below 0; None where a time is unknown."""
    return max(0, round((end - begin).total_seconds() * 1000)) if begin and end else None
