"""Decisions on interrupts: their forms, who may make them, and that each is made once.

The first decision counts. The same one again changes nothing; another is refused. An interrupt that is
past its time can only be refused, and the model then reads that it has expired.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from msgspec import Struct
from psycopg import AsyncConnection

from agents.requests import InterruptAnswer
from agents.tools import mcp, offered_tools
from agents.tools.arguments import check_arguments
from agents.tools.base import ToolFailure
from config.errors import Conflict, InvalidRequest, NotFound
from conversations.identifiers import uuid_of
from conversations.runs import interrupts
from conversations.runs.interrupts import Interrupt

LONGEST_REASON: Final = 2_000


class Decision(Struct, frozen=True):
    """A decision on a call, perhaps with other arguments; the reason is for the model."""

    approve: bool
    arguments: dict[str, Any] | None = None
    reason: str = ""


def approval_not_found() -> NotFound:
    return NotFound("There is no such approval.", code="approval_not_found")


def parse_interrupt_id(text: str) -> UUID:
    """Return an interrupt's id as clients write it; raise NotFound for any other text."""
    found = uuid_of(text)
    if found is None:
        raise approval_not_found()
    return found


def parse_decision(answer: InterruptAnswer) -> Decision:
    """Return the decision in a client's `resume` entry or approval message.

    Cancelled is a refusal. Resolved is a decision with `{approved | approve: bool, arguments?, reason?}`
    or a bare bool. Raise InvalidRequest `invalid_answer` for anything else: nothing is approved by
    accident.
    """
    payload = {} if answer.payload is None else answer.payload
    if answer.status == "cancelled":
        reason = payload.get("reason") if isinstance(payload, dict) else None
        return Decision(False, None, parse_reason(reason))
    if isinstance(payload, bool):
        return Decision(payload)
    approved = payload.get("approved", payload.get("approve")) if isinstance(payload, dict) else None
    if not isinstance(approved, bool):
        raise InvalidRequest(
            "The payload of a resolved interrupt must be true, false or {approved: bool, arguments?, "
            "reason?}.",
            code="invalid_answer",
        )
    edited = payload.get("arguments", payload.get("editedArgs"))
    return Decision(approved, parse_arguments(edited), parse_reason(payload.get("reason")))


def parse_arguments(value: Any) -> dict[str, Any] | None:
    """Return edited arguments: an object, or none; raise InvalidRequest."""
    if value is not None and not isinstance(value, dict):
        raise InvalidRequest("arguments must be an object.", code="invalid_answer")
    return value


def parse_reason(value: Any) -> str:
    """Return a reason: a text, cut if it is too long, or none; raise InvalidRequest."""
    if value is not None and not isinstance(value, str):
        raise InvalidRequest("reason must be a text.", code="invalid_answer")
    return (value or "").strip()[:LONGEST_REASON]


async def store_answers(
    connection: AsyncConnection[Any],
    answers: Sequence[InterruptAnswer],
    *,
    owner_id: UUID,
    thread_id: UUID,
) -> None:
    """Store the answers in an owner's request, in the transaction that accepts its run.

    An id that is no UUID is a runner's own interrupt, which only that runner understands. Raise NotFound
    for an interrupt of another thread; else as `decide`.
    """
    ours = [(uuid_of(one.interrupt_id), one) for one in answers]
    decisions = {
        interrupt_id: parse_decision(one) for interrupt_id, one in ours if interrupt_id is not None
    }
    locked = {one.id: one for one in await interrupts.lock(connection, list(decisions))}
    for interrupt_id, decision in decisions.items():
        found = locked.get(interrupt_id)
        if found is None or (found.owner_id, found.thread_id) != (owner_id, thread_id):
            raise approval_not_found()
        await decide(connection, found, decision, by=owner_id)


async def decide(
    connection: AsyncConnection[Any], interrupt: Interrupt, decision: Decision, *, by: UUID
) -> bool:
    """Decide on an interrupt that the caller's transaction has locked; return whether anything changed.

    Raise Conflict `approval_already_answered` if it was decided otherwise, `approval_expired` for a late
    approval; InvalidRequest `invalid_arguments` for edits that do not fit the tool's schema.
    """
    if interrupt.status in ("approved", "refused"):
        if _is_same(interrupt, decision):
            return False
        raise Conflict("This was answered otherwise before.", code="approval_already_answered")
    if interrupt.status == "cancelled":
        raise Conflict(
            "The conversation has gone on without an answer.", code="approval_already_answered"
        )
    if interrupt.status == "expired":
        if decision.approve:
            raise Conflict("This can no longer be approved.", code="approval_expired")
        await interrupts.decide(connection, interrupt.id, "expired", by=by, reason=decision.reason)
        return interrupt.told_run_id is None
    is_edited = decision.approve and decision.arguments != interrupt.arguments
    edited = decision.arguments if is_edited else None
    if edited is not None:
        await _check(interrupt, edited)
    status: interrupts.Status = "approved" if decision.approve else "refused"
    await interrupts.decide(
        connection, interrupt.id, status, by=by, reason=decision.reason, edited=edited
    )
    return True


def _is_same(interrupt: Interrupt, decision: Decision) -> bool:
    if not decision.approve:
        return interrupt.status == "refused"
    arguments = interrupt.arguments if decision.arguments is None else decision.arguments
    return interrupt.status == "approved" and arguments == interrupt.effective_arguments


async def _check(interrupt: Interrupt, edited: dict[str, Any]) -> None:
    name, owner_id = interrupt.tool_name, interrupt.owner_id
    tool = await offered_tools.find(name, user_id=owner_id)
    tool = tool or await offered_tools.find_action(name, user_id=owner_id)
    tool = tool or next((one for one in mcp.connected_tools() if one.name == name), None)
    if tool is None and await mcp.is_served(name):
        return  # only the worker that calls it has the schema: a call that does not fit fails
    if tool is None:
        raise Conflict("This tool is no longer offered.", code="tool_not_offered")
    try:
        await check_arguments(tool, edited)
    except ToolFailure as problem:
        raise InvalidRequest(problem.message, code="invalid_arguments") from None
