"""Decide on interrupts: who may, what is a decision, and that it is made once.

The first decision counts. The same one again changes nothing; another is refused. What is past its
time can only be refused, and then the model is told that it has expired.
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
    """Whether a call may be made, perhaps with other arguments; the reason is for the model."""

    approve: bool
    arguments: dict[str, Any] | None = None
    reason: str = ""


def approval_not_found() -> NotFound:
    return NotFound("There is no such approval.", code="approval_not_found")


def interrupt_id_of(text: str) -> UUID:
    """An interrupt's id as clients write it; NotFound for what is none."""
    found = uuid_of(text)
    if found is None:
        raise approval_not_found()
    return found


def decision_of(answer: InterruptAnswer) -> Decision:
    """The decision that a client's `resume` entry or approval message is.

    Cancelled is a refusal. Resolved is one with `{approved | approve: bool, arguments?, reason?}` or a
    bare bool; anything else is InvalidRequest `invalid_answer`, for nothing is approved by accident.
    """
    payload = {} if answer.payload is None else answer.payload
    if answer.status == "cancelled":
        given = payload.get("reason") if isinstance(payload, dict) else None
        return Decision(False, None, reason_of(given))
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
    return Decision(approved, arguments_of(edited), reason_of(payload.get("reason")))


def arguments_of(given: Any) -> dict[str, Any] | None:
    """Edited arguments: an object, or none."""
    if given is not None and not isinstance(given, dict):
        raise InvalidRequest("arguments must be an object.", code="invalid_answer")
    return given


def reason_of(given: Any) -> str:
    """A reason: a text, cut where it is too long to be one, or none."""
    if given is not None and not isinstance(given, str):
        raise InvalidRequest("reason must be a text.", code="invalid_answer")
    return (given or "").strip()[:LONGEST_REASON]


async def answer(
    connection: AsyncConnection[Any],
    answers: Sequence[InterruptAnswer],
    *,
    owner_id: UUID,
    thread_id: UUID,
) -> None:
    """Write down the answers of a request of the owner's, in the transaction that accepts its run.

    An id that is no UUID is a runner's own interrupt, which only that runner understands. NotFound for
    one that is not this thread's; else as `decide`.
    """
    ours = [(uuid_of(one.interrupt_id), one) for one in answers]
    wanted = {given_id: decision_of(one) for given_id, one in ours if given_id is not None}
    held = {one.id: one for one in await interrupts.lock(connection, list(wanted))}
    for interrupt_id, decision in wanted.items():
        found = held.get(interrupt_id)
        if found is None or (found.owner_id, found.thread_id) != (owner_id, thread_id):
            raise approval_not_found()
        await decide(connection, found, decision, by=owner_id)


async def decide(
    connection: AsyncConnection[Any], held: Interrupt, decision: Decision, *, by: UUID
) -> bool:
    """Decide on an interrupt that the caller's transaction holds; whether anything changed.

    Conflict `approval_already_answered` if it was decided otherwise, `approval_expired` for approving
    too late; InvalidRequest `invalid_arguments` for edits that do not fit the tool's schema.
    """
    if held.status in ("approved", "refused"):
        if _is_same(held, decision):
            return False
        raise Conflict("This was answered otherwise before.", code="approval_already_answered")
    if held.status == "cancelled":
        raise Conflict(
            "The conversation has gone on without an answer.", code="approval_already_answered"
        )
    if held.status == "expired":
        if decision.approve:
            raise Conflict("This can no longer be approved.", code="approval_expired")
        await interrupts.decide(connection, held.id, "expired", by=by, reason=decision.reason)
        return held.told_run_id is None
    edited = decision.arguments if decision.approve else None
    if edited is not None and edited != held.arguments:
        await _check(held, edited)
    else:
        edited = None
    status: interrupts.Status = "approved" if decision.approve else "refused"
    await interrupts.decide(connection, held.id, status, by=by, reason=decision.reason, edited=edited)
    return True


def _is_same(held: Interrupt, decision: Decision) -> bool:
    if not decision.approve:
        return held.status == "refused"
    wanted = held.arguments if decision.arguments is None else decision.arguments
    return held.status == "approved" and wanted == held.effective_arguments


async def _check(held: Interrupt, edited: dict[str, Any]) -> None:
    name, owner_id = held.tool_name, held.owner_id
    tool = await offered_tools.find(name, user_id=owner_id)
    tool = tool or await offered_tools.find_action(name, user_id=owner_id)
    tool = tool or next((one for one in mcp.offered() if one.name == name), None)
    if tool is None and await mcp.is_served(name):
        return  # the worker that calls it holds its schema: what does not fit is a call that failed
    if tool is None:
        raise Conflict("This tool is no longer offered.", code="tool_not_offered")
    try:
        await check_arguments(tool, edited)
    except ToolFailure as problem:
        raise InvalidRequest(problem.message, code="invalid_arguments") from None
