"""End runs: last events, rows and messages, by one statement under the runs' fences (DESIGN §7).

Runs that end together are written together. A server process spends half of the time of such a
statement on its start, its commit and the counters of spending, however many runs it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from config.sql import raw_json, rows_as_json
from conversations import events
from conversations.log.batches import Batch
from conversations.log.transcript import StoredInterrupt, StoredMessage
from conversations.runs.spending import ADDED, COUNTERS, TODAY, counter_values


@dataclass(frozen=True)
class Ending:
    """All rows that the end of a run writes: its last events, its row and its messages."""

    run_id: UUID
    fence: int
    batch: Batch
    status: str
    error_code: str = ""
    error_message: str = ""
    finish_reason: str = ""
    usage: events.Usage = field(default_factory=events.Usage)
    runner: str = ""
    model_usage: str = "[]"
    provider: str = ""
    resolved_model: str = ""
    endpoint_id: int | None = None
    first_token_at_ms: int | None = None
    messages: tuple[StoredMessage, ...] = ()  # messages with a place in the conversation come first
    interrupts: tuple[StoredInterrupt, ...] = ()
    state: Any = None


# `waiting` is queued, said so that no plan reads all that are queued for each run that ends. No WITH
# query is joined with another: PostgreSQL expects one row of each, and would compare all with all.
_STATEMENT: Final = """
WITH place AS (
    SELECT run.id AS run_id FROM conversations_run run
    JOIN conversations_thread thread ON thread.id = thread_id
    WHERE run.id = ANY(%(run_ids)s) ORDER BY thread.id FOR NO KEY UPDATE {locking}
), ended AS (
    UPDATE conversations_run run SET status = e.status, finished_at = clock_timestamp(),
        lease_until = NULL, last_seq = e.last_seq, finish_reason = e.finish_reason,
        error_code = e.error_code, error_message = e.error_message, runner = e.runner,
        provider = e.provider, resolved_model = e.resolved_model, endpoint_id = e.endpoint_id,
        input_tokens = e.input_tokens, output_tokens = e.output_tokens,
        cached_tokens = e.cached_tokens, reasoning_tokens = e.reasoning_tokens,
        cache_write_tokens = e.cache_write_tokens, cost_usd = e.cost_usd,
        unpriced_tokens = e.unpriced_tokens, model_usage = e.model_usage,
        state = CASE WHEN run.stored THEN e.state END, first_token_at = e.first_token_at
    FROM place JOIN json_populate_recordset(NULL::conversations_run, %(runs)s) e ON e.id = place.run_id
    WHERE run.id = place.run_id AND run.fence = e.fence AND run.status IN ('queued', 'running')
    RETURNING run.*, CASE WHEN run.stored THEN e.thread_seq ELSE 0 END AS places
), batch AS (
    INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
    SELECT b.run_id, b.first_seq, b.last_seq, b.events
    FROM ended JOIN json_populate_recordset(NULL::conversations_eventbatch, %(batches)s) b
        ON b.run_id = ended.id
), thread AS (
    UPDATE conversations_thread thread SET last_seq = thread.last_seq + ended.places,
        updated_at = CASE WHEN ended.stored THEN now() ELSE thread.updated_at END,
        state = coalesce(ended.state, thread.state)
    FROM ended WHERE thread.id = ended.thread_id
    RETURNING ended.id AS run_id, ended.owner_id, ended.thread_id, ended.thread_seq, ended.stored,
        thread.last_seq - ended.places AS base
), message AS (
    INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content, client_id,
        metadata)
    SELECT m.id, thread.owner_id, thread.thread_id, run_id, thread.base + m.seq, m.role, m.content,
        m.client_id, m.metadata
    FROM json_populate_recordset(NULL::conversations_message, %(messages)s) m
    JOIN thread USING (run_id) WHERE thread.stored
), used (owner_id, {counters}) AS (
    SELECT owner_id, {day}, %(shard)s::int, count(*), sum(input_tokens), sum(output_tokens),
        sum(unpriced_tokens), sum(cost_usd)
    FROM ended WHERE input_tokens > 0 OR output_tokens > 0 GROUP BY owner_id
), spend AS (
    INSERT INTO conversations_spend AS spent (owner_id, {counters})
    SELECT * FROM used ORDER BY owner_id
    ON CONFLICT (owner_id, day, shard) WHERE owner_id IS NOT NULL DO UPDATE SET {added}
), everybodys AS (
    INSERT INTO conversations_spend AS spent ({counters})
    SELECT day, shard, sum(runs), sum(input_tokens), sum(output_tokens), sum(unpriced_tokens),
        sum(cost_usd) FROM used GROUP BY day, shard
    ON CONFLICT (day, shard) WHERE owner_id IS NULL DO UPDATE SET {added}
){interrupts}
SELECT run_id, base > thread_seq OR EXISTS (
    SELECT FROM conversations_run waiting WHERE waiting.thread_id = thread.thread_id
    AND waiting.thread_seq >= thread.thread_seq
    AND waiting.finished_at IS NULL AND waiting.status <> 'running'
) FROM thread
"""
_INTERRUPTS: Final = """, interrupt AS (
    INSERT INTO conversations_interrupt (id, owner_id, thread_id, run_id, place, tool_call_id,
        tool_name, arguments, message, expires_at)
    SELECT i.id, ended.owner_id, ended.thread_id, ended.id, i.place, i.tool_call_id, i.tool_name,
        i.arguments, i.message, i.expires_at
    FROM json_populate_recordset(NULL::conversations_interrupt, %(interrupts)s) i
    JOIN ended ON ended.id = i.run_id
)"""


def _statement(*, interrupts: bool, waits: bool) -> str:
    """Return the statement for such rows. psycopg remembers one of 4,096 characters at most."""
    locking = "OF thread" if waits else "SKIP LOCKED"
    pieces = {"interrupts": _INTERRUPTS if interrupts else "", "locking": locking}
    return " ".join(_STATEMENT.format(day=TODAY, counters=COUNTERS, added=ADDED, **pieces).split())


_END: Final = _statement(interrupts=False, waits=True)
_END_ASKING: Final = _statement(interrupts=True, waits=True)
_END_TOGETHER: Final = _statement(interrupts=False, waits=False)
_END_TOGETHER_ASKING: Final = _statement(interrupts=True, waits=False)


@dataclass(frozen=True)
class Ended:
    """A run has ended; `thread_waits` if another one may be waiting for that."""

    thread_waits: bool


async def end_run(connection: AsyncConnection[Any], ending: Ending, ids: Sequence[UUID]) -> Ended | None:
    """End a run by one statement; None if the fence is no longer ours or the run has ended.

    For a run that is not stored, write only the log and its numbers (`unstored`).

    A run that is being accepted at this moment is not visible yet, but its messages are: both statements
    lock the thread's row, and first. In the other order a repeated POST of the run deadlocks:
    its key is known to be new only after the change of the run that has it is committed.
    """
    statement = _END_ASKING if ending.interrupts else _END
    return (await _end(connection, statement, [(ending, ids)])).get(ending.run_id)


async def end_together(
    connection: AsyncConnection[Any], endings: Sequence[tuple[Ending, Sequence[UUID]]]
) -> dict[UUID, Ended]:
    """End runs of different threads by one statement, as `end_run` does.

    A run is missing in the answer if its fence is no longer ours, if it has ended, or if another
    transaction has locked its row or its thread: the others do not wait for that.
    """
    asking = any(ending.interrupts for ending, _ in endings)
    return await _end(connection, _END_TOGETHER_ASKING if asking else _END_TOGETHER, endings)


async def _end(
    connection: AsyncConnection[Any], statement: str, endings: Sequence[tuple[Ending, Sequence[UUID]]]
) -> dict[UUID, Ended]:
    run_ids = [ending.run_id for ending, _ in endings]
    arguments = {
        "run_ids": run_ids,
        "runs": rows_as_json(_run(ending) for ending, _ in endings),
        "batches": rows_as_json(_batch(ending.batch) for ending, _ in endings),
        "messages": rows_as_json(row for ending, ids in endings for row in _messages(ending, ids)),
        "interrupts": rows_as_json(row for ending, _ in endings for row in _interrupts(ending)),
    }
    cursor = await connection.execute(statement, arguments | counter_values(run_ids[0]))
    return {run_id: Ended(thread_waits=waits) for run_id, waits in await cursor.fetchall()}


_Row = dict[str, Any]
"""A row by the names of its columns; PostgreSQL reads it into the table's own type."""


def _run(ending: Ending) -> _Row:
    """Return the run's row; `thread_seq` is the number of its messages that have a place."""
    token_ms = ending.first_token_at_ms
    return msgspec.structs.asdict(ending.usage) | {
        "id": ending.run_id,
        "fence": ending.fence,
        "status": ending.status,
        "last_seq": ending.batch.last_seq,
        "finish_reason": ending.finish_reason,
        "error_code": ending.error_code,
        "error_message": ending.error_message,
        "runner": ending.runner,
        "provider": ending.provider,
        "resolved_model": ending.resolved_model,
        "endpoint_id": ending.endpoint_id,
        "model_usage": raw_json(ending.model_usage),
        "state": ending.state,
        "first_token_at": None if token_ms is None else datetime.fromtimestamp(token_ms / 1000, UTC),
        "thread_seq": sum(message.placed for message in ending.messages),
    }


def _batch(batch: Batch) -> _Row:
    return {
        "run_id": batch.run_id,
        "first_seq": batch.first_seq,
        "last_seq": batch.last_seq,
        "events": raw_json(batch.text),
    }


def _messages(ending: Ending, ids: Sequence[UUID]) -> Iterator[_Row]:
    """Yield the rows of the messages; `seq` is the place after the thread's last one, or none."""
    for place, (message_id, message) in enumerate(zip(ids, ending.messages, strict=True), 1):
        yield {
            "id": message_id,
            "run_id": ending.run_id,
            "seq": place if message.placed else None,
            "role": message.role,
            "content": message.content,
            "client_id": message.client_id,
            "metadata": raw_json(message.metadata),
        }


def _interrupts(ending: Ending) -> Iterator[_Row]:
    for place, interrupt in enumerate(ending.interrupts, 1):
        whole = {"run_id": ending.run_id, "place": place, "arguments": raw_json(interrupt.arguments)}
        yield vars(interrupt) | whole
