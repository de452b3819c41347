"""What a client may read of runs, by plain SQL on the hot path; always its own rows only (P10)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from msgspec import Struct

from config import database
from config.errors import Gone, NotFound
from conversations.identifiers import lowest_uuid7
from conversations.models import LIVE

_HEAD: Final = """
SELECT id, thread_id, owner_id, dialect, request_id, status, request->>'result_mode'
FROM conversations_run WHERE id = %s AND owner_id = %s
"""


class RunRow(Struct, frozen=True):
    """The head of a run."""

    run_id: UUID
    thread_id: UUID
    owner_id: UUID
    dialect: str
    request_id: str
    status: str
    result_mode: str | None


def run_id_of(text: str) -> UUID:
    """A run id as clients write it: 32 hex digits or a UUID. NotFound for anything else."""
    try:
        return UUID(text)
    except ValueError:
        raise run_not_found() from None


def run_not_found() -> NotFound:
    return NotFound("There is no such run.", code="run_not_found")


async def run_row(run_id: UUID, *, user_id: UUID) -> RunRow:
    """The head of the user's run; NotFound for an unknown and for a foreign one alike."""
    async with database.connection() as connection:
        row = await (await connection.execute(_HEAD, (run_id, user_id))).fetchone()
    if row is None:
        raise run_not_found()
    return RunRow(*row)


_KEPT: Final = "SELECT EXISTS (SELECT 1 FROM conversations_eventbatch WHERE run_id = %s)"


async def check_events_kept(run: RunRow) -> None:
    """Gone if the events of an ended run are past EVENT_RETENTION_DAYS, which is a day at least."""
    a_day_ago = lowest_uuid7(datetime.now(UTC) - timedelta(days=1))
    if run.status in LIVE or run.run_id > a_day_ago:
        return
    async with database.connection() as connection:
        kept = await (await connection.execute(_KEPT, (run.run_id,))).fetchone()
    if kept != (True,):
        raise Gone("The events of this run are no longer kept.", code="events_expired")


_DETAIL: Final = """
SELECT id, thread_id, dialect, model, status, attempt, created_at, started_at, first_token_at,
    finished_at, deadline_at, cancel_requested_at, provider, resolved_model, endpoint_id,
    finish_reason, error_code, error_message, input_tokens, output_tokens, cached_tokens,
    reasoning_tokens, prompt_versions, request_id
FROM conversations_run WHERE id = %s AND owner_id = %s
"""


async def run_detail(run_id: UUID, *, user_id: UUID) -> dict[str, Any]:
    """Status, timings, usage and error of the user's run, as JSON; NotFound as for `run_row`."""
    async with database.connection() as connection:
        cursor = await connection.execute(_DETAIL, (run_id, user_id))
        row = await cursor.fetchone()
        names = [column.name for column in cursor.description or ()]
    if row is None:
        raise run_not_found()
    return _detail(dict(zip(names, row, strict=True)))


def _detail(row: dict[str, Any]) -> dict[str, Any]:
    failed = {"code": row["error_code"], "message": row["error_message"]} if row["error_code"] else None
    return {
        "run_id": row["id"].hex,
        "message_id": row["id"].hex,
        "conversation_id": str(row["thread_id"]),
        "dialect": row["dialect"],
        "model": row["model"],
        "status": row["status"],
        "attempt": row["attempt"],
        "provider": row["provider"] or None,
        "resolved_model": row["resolved_model"] or None,
        "endpoint_id": row["endpoint_id"],
        "finish_reason": row["finish_reason"] or None,
        "error": failed,
        "usage": {name: row[name] for name in _TOKENS},
        "timings": _timings(row),
        "prompt_versions": row["prompt_versions"],
        "cancel_requested": row["cancel_requested_at"] is not None,
        "request_id": row["request_id"],
    }


_TOKENS: Final = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")


def _timings(row: dict[str, Any]) -> dict[str, Any]:
    created, started, first, finished = (
        row[name] for name in ("created_at", "started_at", "first_token_at", "finished_at")
    )
    return {
        "created_at": created.isoformat(),
        "started_at": started.isoformat() if started else None,
        "first_token_at": first.isoformat() if first else None,
        "finished_at": finished.isoformat() if finished else None,
        "queue_ms": _between(created, started),
        "first_token_ms": _between(created, first),
        "total_ms": _between(created, finished),
    }


def _between(begin: Any, end: Any) -> int | None:
    return max(0, round((end - begin).total_seconds() * 1000)) if begin and end else None
