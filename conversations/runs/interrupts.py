"""Interrupts: tool calls that wait for approval, from the end of one run into another.

The statement that ends a run writes its rows (`end_sql`). The first decision counts; then a later run
of the same branch takes the row to inform the model, and calls the tool if it was approved. A row that
is undecided when the branch continues is cancelled, or expired if its time was over.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from msgspec import Struct
from psycopg import AsyncConnection
from psycopg.types.json import Jsonb

from config import sql
from conversations.models import InterruptStatus

Status = Literal["pending", "approved", "refused", "expired", "cancelled"]
STATUSES: Final = tuple(InterruptStatus.values)


class Interrupt(Struct, frozen=True):
    """One row with its present `status`: a pending one past its time has expired."""

    id: UUID
    owner_id: UUID
    thread_id: UUID
    run_id: UUID
    tool_call_id: str
    tool_name: str
    arguments: dict[str, Any]
    message: str
    status: Status
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: UUID | None
    decision_reason: str
    edited_arguments: dict[str, Any] | None
    told_run_id: UUID | None

    @property
    def effective_arguments(self) -> dict[str, Any]:
        """Return the arguments with which the tool is called."""
        return self.arguments if self.edited_arguments is None else self.edited_arguments


_COLUMNS: Final = """
i.id, i.owner_id, i.thread_id, i.run_id, i.tool_call_id, i.tool_name, i.arguments, i.message,
CASE WHEN i.status = 'pending' AND i.expires_at <= clock_timestamp() THEN 'expired' ELSE i.status END,
i.created_at, i.expires_at, i.decided_at, i.decided_by_id, i.decision_reason, i.edited_arguments,
i.told_run_id
"""


def _rows(rows: Sequence[Sequence[Any]]) -> list[Interrupt]:
    return [Interrupt(*row) for row in rows]


# --- looking ------------------------------------------------------------------------------------

_FIND: Final = f"SELECT {_COLUMNS} FROM conversations_interrupt i WHERE i.id = %s"
_OF_RUN: Final = f"SELECT {_COLUMNS} FROM conversations_interrupt i WHERE i.run_id = %s ORDER BY i.place"
_PAGE: Final = f"""
SELECT {_COLUMNS} FROM conversations_interrupt i
WHERE (%(owner_id)s::uuid IS NULL OR i.owner_id = %(owner_id)s) AND i.id < %(before)s
    AND (%(status)s::text IS NULL OR %(status)s =
        CASE WHEN i.status = 'pending' AND i.expires_at <= clock_timestamp() THEN 'expired'
        ELSE i.status END)
ORDER BY i.id DESC LIMIT %(limit)s
"""
NEWEST: Final = UUID(int=2**128 - 1)


async def find(interrupt_id: UUID) -> Interrupt | None:
    """Return the interrupt with that id, whoever owns it."""
    row = await sql.one(_FIND, (interrupt_id,))
    return None if row is None else _rows([row])[0]


async def list_of_run(run_id: UUID) -> list[Interrupt]:
    """Return the interrupts with which a run ended, in the order of its calls."""
    return _rows(await sql.every(_OF_RUN, (run_id,)))


async def list_page(
    *, owner_id: UUID | None, status: Status | None, before: UUID, limit: int
) -> list[Interrupt]:
    """Return up to `limit` interrupts older than `before`, newest first; all users' without an owner."""
    arguments = {"owner_id": owner_id, "status": status, "before": before, "limit": limit}
    return _rows(await sql.every(_PAGE, arguments))


# --- deciding -----------------------------------------------------------------------------------

_LOCK: Final = f"""
SELECT {_COLUMNS} FROM conversations_interrupt i WHERE i.run_id IN (
    SELECT run_id FROM conversations_interrupt WHERE id = ANY(%s)) ORDER BY i.id FOR UPDATE
"""
_DECIDE: Final = """
UPDATE conversations_interrupt SET status = %(status)s, decided_at = clock_timestamp(),
    decided_by_id = %(by)s, decision_reason = %(reason)s, edited_arguments = %(edited)s
WHERE id = %(id)s AND status = 'pending'
"""


async def lock(connection: AsyncConnection[Any], ids: Sequence[UUID]) -> list[Interrupt]:
    """Lock these interrupts and the others of their runs until the caller's transaction ends."""
    return _rows(await (await connection.execute(_LOCK, (list(ids),))).fetchall())


async def decide(
    connection: AsyncConnection[Any],
    interrupt_id: UUID,
    status: Status,
    *,
    by: UUID,
    reason: str = "",
    edited: dict[str, Any] | None = None,
) -> None:
    """Write the decision on a pending interrupt that the caller has locked."""
    stored = None if edited is None else Jsonb(edited)
    decision = {"id": interrupt_id, "status": status, "by": by, "reason": reason, "edited": stored}
    await connection.execute(_DECIDE, decision)


_EXPIRED_AT_ONCE: Final = 1_000
_EXPIRE: Final = """
UPDATE conversations_interrupt SET status = 'expired', decided_at = clock_timestamp()
WHERE id IN (SELECT id FROM conversations_interrupt
    WHERE status = 'pending' AND expires_at <= clock_timestamp()
    ORDER BY expires_at LIMIT %s FOR UPDATE SKIP LOCKED)
"""


async def expire_due() -> int:
    """Mark the pending interrupts that are past their time. Return their number."""
    return await sql.change(_EXPIRE, (_EXPIRED_AT_ONCE,))


# --- going on -----------------------------------------------------------------------------------

_TAKE: Final = f"""
WITH i AS (
    UPDATE conversations_interrupt held SET told_run_id = run.id,
        decided_at = coalesce(decided_at, clock_timestamp()),
        status = CASE WHEN held.status <> 'pending' THEN held.status
            WHEN held.expires_at <= clock_timestamp() THEN 'expired' ELSE 'cancelled' END
    FROM conversations_run run JOIN conversations_thread thread ON thread.id = run.thread_id
    WHERE run.id = %s AND run.fence = %s AND run.status = 'running'
        AND held.thread_id = run.thread_id AND held.run_id <> run.id
        AND (held.told_run_id IS NULL OR held.told_run_id = run.id)
        AND (thread.fork_run_id IS NULL OR conversations_in_branch(run.id, held.run_id))
    RETURNING held.*
)
SELECT {_COLUMNS} FROM i ORDER BY i.run_id, i.place
"""
_BEGIN: Final = """
UPDATE conversations_interrupt held SET begun_fence = run.fence
FROM conversations_run run
WHERE held.id = %(id)s AND held.status = 'approved' AND held.told_run_id = run.id
    AND run.id = %(run_id)s AND run.fence = %(fence)s AND run.status = 'running'
    AND (held.begun_fence IS NULL OR held.begun_fence = run.fence OR %(again)s)
"""


async def assign_to_run(run_id: UUID, *, fence: int) -> list[Interrupt]:
    """Assign the branch's interrupts to this run, whose model reads their outcome. Return them.

    A pending one is cancelled, or has expired. Another attempt of the run takes the same ones again.
    """
    return _rows(await sql.every(_TAKE, (run_id, fence)))


async def begin_call(interrupt_id: UUID, *, run_id: UUID, fence: int, again: bool) -> bool:
    """Return whether the run's holder may call the approved tool now: once, unless `again` (P8)."""
    arguments = {"id": interrupt_id, "run_id": run_id, "fence": fence, "again": again}
    return await sql.change(_BEGIN, arguments) == 1
