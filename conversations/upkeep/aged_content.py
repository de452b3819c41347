"""Erase what was said more than CONTENT_DAYS ago, or before a moment that a command names.

A run's words are as old as the run. They go as those of a deleted run do (`unstored_runs`), so a
conversation that goes on loses its oldest runs and keeps the rest. Numbers stay, so that metrics are the
same if a day is added up again: the run's row, and of a message that stands for a stage or a tool call
its name, outcome and time, as a note without a place in the thread.

A run in whose conversation another one is live, or whose approval still waits, is left for the next
pass: nobody's run is erased while it is answered. Each run is a transaction of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection as django_connection

from config import sql
from config.audit import recording
from conversations.models import Run
from conversations.upkeep import retention, unstored_runs
from conversations.upkeep.holdings import CONTENT

ACTION: Final = "content erased"
AT_ONCE: Final = 50
_BEGINNING: Final = (datetime(1, 1, 2, tzinfo=UTC), UUID(int=0))


@dataclass(frozen=True)
class AgedCounts:
    """The numbers of runs whose words went, of their messages, and of conversations left without any.

    `copies` are staff's re-runs of these conversations, which went as a whole.
    """

    runs: int = 0
    messages: int = 0
    conversations: int = 0
    copies: int = 0

    def __add__(self, other: AgedCounts) -> AgedCounts:
        names = [field.name for field in fields(self)]
        return AgedCounts(*(getattr(self, name) + getattr(other, name) for name in names))


@dataclass(frozen=True)
class Pass:
    """One way through all runs that ended `before`, of one owner or of all; `place` is how far it is."""

    before: datetime
    owner_id: UUID | None = None
    place: tuple[datetime, UUID] = _BEGINNING
    is_done: bool = False
    erased: AgedCounts = AgedCounts()


# --- by setting ---------------------------------------------------------------------------------

_LIMIT: Final = """
SELECT date_trunc('day', clock_timestamp(), %s::text) - make_interval(days => %s)
"""
_daily: Pass | None = None


async def erase_due() -> bool:
    """Erase some of what is older than CONTENT_DAYS (0: keep all). Return whether more may be due.

    The limit moves at midnight of TIME_ZONE, by the database's clock. Then a pass begins, which goes
    over each run once; its end is noted in the audit log if anything was erased.
    """
    global _daily
    if not settings.CONTENT_DAYS:
        return False
    ((before,),) = await sql.every(_LIMIT, (settings.TIME_ZONE, settings.CONTENT_DAYS))
    current = _daily if _daily is not None and _daily.before == before else Pass(before)
    if not current.is_done:
        current = await erase_step(current)
        if current.is_done and current.erased != AgedCounts():
            await _as_sync(record, current)
    _daily = current
    return not current.is_done


# --- a step -------------------------------------------------------------------------------------

_OLD: Final = """
run.created_at < %(before)s AND run.finished_at < %(before)s AND run.stored {owner}
    AND NOT EXISTS (SELECT FROM conversations_run live
        WHERE live.thread_id = run.thread_id AND live.status IN ('queued', 'running'))
    AND NOT EXISTS (SELECT FROM conversations_interrupt held
        WHERE held.run_id = run.id AND held.status = 'pending' AND held.expires_at > now())
"""
_DUE: Final = f"""
SELECT id, owner_id, thread_id, created_at FROM conversations_run run
WHERE (created_at, id) > (%(at)s, %(id)s) AND {_OLD}
ORDER BY created_at, id LIMIT {AT_ONCE}
"""
_MEASURED: Final = """
stage IS NOT NULL AND (role IN ('assistant', 'activity') OR role = 'tool' AND tool_ok IS NOT NULL)
"""
_MESSAGES: Final = (
    f"DELETE FROM conversations_message WHERE run_id = %s AND NOT coalesce({_MEASURED}, false)",
    f"""
    UPDATE conversations_message SET role = 'activity', content = '', client_id = NULL, seq = NULL,
        metadata = jsonb_strip_nulls(jsonb_build_object(
            'run_id', metadata->'run_id', 'stage', metadata->'stage',
            'latency_ms', metadata->'latency_ms', 'tool_name', metadata->'tool_name',
            'tool_agent_output', CASE WHEN tool_ok IS NOT NULL
                THEN jsonb_build_object('ok', metadata#>'{{tool_agent_output,ok}}') END))
    WHERE run_id = %s AND {_MEASURED}
    """,
)
_HAS_WORDS: Final = "seq IS NOT NULL AND run_id = ANY(%s)"


async def erase_step(current: Pass) -> Pass:
    """Erase at most AT_ONCE runs of the pass. Return the pass as it is then."""
    rows = await sql.every(_due(_DUE, current), _arguments(current))
    ids, threads = [row[0] for row in rows], list({row[2] for row in rows})
    if not rows:
        return replace(current, is_done=True)
    words = f"SELECT count(*) FROM conversations_message WHERE {_HAS_WORDS}"
    ((messages,),) = await sql.every(words, (ids,))
    runs = 0
    for run_id, owner_id, *_ in rows:
        runs += await unstored_runs.erase_run(run_id, owner_id=owner_id, messages=_MESSAGES)
    conversations = await _erase_beside(ids, threads, current.before)
    while await unstored_runs.erase_due() == unstored_runs.AT_ONCE:
        pass
    copies = await _erase_copies(threads)
    erased = current.erased + AgedCounts(runs, messages, conversations, copies)
    place = rows[-1][3], rows[-1][0]
    return replace(current, place=place, is_done=len(rows) < AT_ONCE, erased=erased)


def _due(statement: str, current: Pass) -> str:
    return statement.format(owner="AND run.owner_id = %(owner)s" if current.owner_id else "")


def _arguments(current: Pass) -> dict[str, Any]:
    at, run_id = current.place
    return {"before": current.before, "owner": current.owner_id, "at": at, "id": run_id}


_EMPTIED: Final = """
UPDATE conversations_thread thread SET title = '', state = '{}', summary = NULL
WHERE id = ANY(%s)
    AND NOT EXISTS (SELECT FROM conversations_message WHERE thread_id = thread.id AND seq IS NOT NULL)
    AND NOT EXISTS (SELECT FROM conversations_run WHERE thread_id = thread.id
        AND (stored OR finished_at IS NULL))
RETURNING id
"""
_OF_NO_RUN: Final = """
DELETE FROM conversations_message
WHERE thread_id = ANY(%s) AND created_at < %s AND run_id IS NULL
"""
_JUDGED: Final = """
UPDATE conversations_feedback SET comment = '', tags = '{}'
WHERE run_id = ANY(%s) AND (comment <> '' OR tags <> '{}')
"""


async def _erase_beside(ids: list[UUID], threads: list[UUID], before: datetime) -> int:
    """Erase what stands beside the runs' messages. Return the number of conversations left empty."""
    await sql.change(_JUDGED, (ids,))
    await sql.change(_OF_NO_RUN, (threads, before))
    emptied = [thread_id for (thread_id,) in await sql.every(_EMPTIED, (threads,))]
    for content in CONTENT:
        if content.run_column:
            condition = f"{content.thread_column} = ANY(%s) AND {content.run_column} = ANY(%s)"
            await sql.change(f"DELETE FROM {content.table} WHERE {condition}", (threads, ids))
        elif content.thread_column:
            condition = f"{content.thread_column} = ANY(%s)"
            await sql.change(f"DELETE FROM {content.table} WHERE {condition}", (emptied,))
    return len(emptied)


_COPIES: Final = """
SELECT thread.id, thread.owner_id FROM conversations_threadcopy copy
JOIN conversations_thread thread ON thread.id = copy.thread_id WHERE copy.source_id = ANY(%s)
"""


async def _erase_copies(threads: Sequence[UUID]) -> int:
    """Erase staff's copies of these threads, which may hold what has just gone. Return their number."""
    copies = await sql.every(_COPIES, (threads,))
    for thread_id, owner_id in copies:
        await _as_sync(retention.erase_thread, thread_id, owner_id=owner_id)
    return len(copies)


async def _as_sync(work: Any, *arguments: Any, **named: Any) -> None:
    """Run synchronous code on an operating-system thread with a connection of its own."""

    def run() -> None:
        try:
            work(*arguments, **named)
        finally:
            django_connection.close()

    await sync_to_async(run, thread_sensitive=False)()


def record(done: Pass, *, user: Any = None) -> None:
    """Write the entry of the audit log about a pass, of one user or of all."""
    counts = {field.name: getattr(done.erased, field.name) for field in fields(done.erased)}
    name = f"before {done.before.isoformat(timespec='seconds')}"
    recording.record(ACTION, user if user is not None else Run, after=counts, name="" if user else name)


# --- what there is ------------------------------------------------------------------------------

_COUNT: Final = f"""
WITH due AS MATERIALIZED (SELECT id, thread_id, owner_id FROM conversations_run run WHERE {_OLD}),
said AS MATERIALIZED (
    SELECT message.metadata FROM due JOIN conversations_message message ON message.run_id = due.id
    WHERE message.seq IS NOT NULL),
named AS (
    SELECT DISTINCT path FROM said, jsonb_path_query(
        metadata, '$.user_message_attachments[*].path') found(path)
    WHERE metadata ? 'user_message_attachments')
SELECT (SELECT count(*) FROM due), (SELECT count(*) FROM said),
    (SELECT count(DISTINCT thread_id) FROM due),
    (SELECT count(*) FROM conversations_threadcopy copy
        WHERE source_id IN (SELECT thread_id FROM due)),
    (SELECT count(*) FROM conversations_attachment file
        WHERE EXISTS (SELECT FROM named WHERE named.path = to_jsonb(file.path))
        OR EXISTS (SELECT FROM due WHERE due.owner_id = file.owner_id
            AND due.id::text = split_part(file.path, '/', 3)))
"""


@dataclass(frozen=True)
class Found:
    """What a pass would erase: of `conversations` a part, of `files` those that no other run names."""

    runs: int
    messages: int
    conversations: int
    copies: int
    files: int


async def count(current: Pass) -> Found:
    """Return what the pass would erase now."""
    (row,) = await sql.every(_due(_COUNT, current), _arguments(current))
    return Found(*row)
