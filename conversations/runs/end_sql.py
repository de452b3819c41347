"""End a run: its last events, its row and its messages, by one statement under its fence (DESIGN §7)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import msgspec
from psycopg import AsyncConnection

from conversations import events
from conversations.log.batches import Batch
from conversations.log.transcript import StoredInterrupt, StoredMessage
from conversations.runs.spending import COUNTER_SQL, TODAY, counter_values


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


_STATEMENT: Final = """
WITH place AS (
    SELECT id FROM conversations_thread
    WHERE id = (SELECT thread_id FROM conversations_run WHERE id = %(run_id)s) FOR NO KEY UPDATE
), ended AS (
    UPDATE conversations_run SET status = %(status)s, finished_at = clock_timestamp(),
        lease_until = NULL, last_seq = %(last_seq)s, finish_reason = %(finish_reason)s,
        error_code = %(error_code)s, error_message = %(error_message)s,
        runner = %(runner)s, provider = %(provider)s, resolved_model = %(resolved_model)s,
        endpoint_id = %(endpoint_id)s,
        input_tokens = %(input_tokens)s, output_tokens = %(output_tokens)s,
        cached_tokens = %(cached_tokens)s, reasoning_tokens = %(reasoning_tokens)s,
        cache_write_tokens = %(cache_write_tokens)s, cost_usd = %(cost_usd)s,
        unpriced_tokens = %(unpriced_tokens)s, model_usage = %(model_usage)s::jsonb,
        state = CASE WHEN stored THEN %(state)s::jsonb END,
        first_token_at = to_timestamp(%(first_token_at_ms)s::float8 / 1000)
    FROM place WHERE conversations_run.id = %(run_id)s AND thread_id = place.id
        AND fence = %(fence)s AND status IN ('queued', 'running')
    RETURNING conversations_run.id, owner_id, thread_id, thread_seq, stored,
        CASE WHEN stored THEN %(count)s ELSE 0 END AS places
), batch AS (
    INSERT INTO conversations_eventbatch (run_id, first_seq, last_seq, events)
    SELECT id, %(first_seq)s, %(last_seq)s, %(events)s::json FROM ended
), thread AS (
    UPDATE conversations_thread SET last_seq = last_seq + ended.places,
        updated_at = CASE WHEN stored THEN now() ELSE updated_at END,
        state = CASE WHEN stored THEN coalesce(%(state)s::jsonb, state) ELSE state END
    FROM ended WHERE conversations_thread.id = ended.thread_id
    RETURNING conversations_thread.id, conversations_thread.owner_id, last_seq - ended.places AS base
), message AS (
    INSERT INTO conversations_message (id, owner_id, thread_id, run_id, seq, role, content, client_id,
        metadata)
    SELECT m.id, thread.owner_id, thread.id, %(run_id)s,
        CASE WHEN m.place <= %(count)s THEN thread.base + m.place END, m.role, m.content,
        m.client_id, m.metadata::jsonb
    FROM thread, ended, unnest(%(ids)s::uuid[], %(roles)b::text[], %(contents)b::text[],
        %(client_ids)b::text[], %(metadata)b::text[])
        WITH ORDINALITY AS m(id, role, content, client_id, metadata, place)
    WHERE ended.stored
), spend AS (
    INSERT INTO conversations_spend AS spent (owner_id, day, shard, runs, input_tokens, output_tokens,
        unpriced_tokens, cost_usd)
    SELECT owner_id, {day}, {values} FROM ended WHERE %(spends)s
    ON CONFLICT (owner_id, day, shard) WHERE owner_id IS NOT NULL DO UPDATE SET {added}
), everybodys AS (
    INSERT INTO conversations_spend AS spent (day, shard, runs, input_tokens, output_tokens,
        unpriced_tokens, cost_usd)
    SELECT {day}, {values} FROM ended WHERE %(spends)s
    ON CONFLICT (day, shard) WHERE owner_id IS NULL DO UPDATE SET {added}
){interrupts}
SELECT thread.base > ended.thread_seq OR EXISTS (
    SELECT FROM conversations_run waiting WHERE waiting.thread_id = ended.thread_id
    AND waiting.thread_seq >= ended.thread_seq AND waiting.status = 'queued'
) FROM ended, thread
"""
_INTERRUPTS: Final = """, interrupt AS (
    INSERT INTO conversations_interrupt (id, owner_id, thread_id, run_id, place, tool_call_id,
        tool_name, arguments, message, expires_at)
    SELECT i.id, thread.owner_id, thread.id, %(run_id)s, i.place, i.tool_call_id, i.tool_name,
        i.arguments::jsonb, i.message, i.expires_at
    FROM thread, unnest(%(interrupt_ids)s::uuid[], %(call_ids)b::text[], %(tools)b::text[],
        %(arguments)b::text[], %(asking)b::text[], %(expiries)s::timestamptz[])
        WITH ORDINALITY AS i(id, tool_call_id, tool_name, arguments, message, expires_at, place)
)"""


def _statement(interrupts: str) -> str:
    """Return the statement for such rows. psycopg remembers one of 4,096 characters at most."""
    return " ".join(_STATEMENT.format(interrupts=interrupts, day=TODAY, **COUNTER_SQL).split())


_END: Final = _statement("")
_END_ASKING: Final = _statement(_INTERRUPTS)


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
    cursor = await connection.execute(statement, _end_arguments(ending, ids))
    row = await cursor.fetchone()
    return None if row is None else Ended(thread_waits=row[0])


def _end_arguments(ending: Ending, ids: Sequence[UUID]) -> dict[str, Any]:
    """Return the fields of the ending and of its usage by their names, and columns of rows."""
    columns = {
        "ids": list(ids),
        "roles": [message.role for message in ending.messages],
        "contents": [message.content for message in ending.messages],
        "client_ids": [message.client_id for message in ending.messages],
        "metadata": [message.metadata for message in ending.messages],
        "interrupt_ids": [interrupt.id for interrupt in ending.interrupts],
        "call_ids": [interrupt.tool_call_id for interrupt in ending.interrupts],
        "tools": [interrupt.tool_name for interrupt in ending.interrupts],
        "arguments": [interrupt.arguments for interrupt in ending.interrupts],
        "asking": [interrupt.message for interrupt in ending.interrupts],
        "expiries": [interrupt.expires_at for interrupt in ending.interrupts],
    }
    return (
        vars(ending)
        | msgspec.structs.asdict(ending.usage)
        | counter_values(ending.run_id, ending.usage)
        | columns
        | {
            "first_seq": ending.batch.first_seq,
            "last_seq": ending.batch.last_seq,
            "events": ending.batch.text,
            "count": sum(message.placed for message in ending.messages),
            "state": None if ending.state is None else msgspec.json.encode(ending.state).decode(),
        }
    )
