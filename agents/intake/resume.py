"""Decisions on interrupts outside of a run's request, and the run that continues after the last one.

The decision and the run that continues are written in one transaction, so neither exists without the
other. That run has the request of the interrupted one, without new messages.
"""

from __future__ import annotations

from uuid import UUID

import msgspec
from psycopg.errors import UniqueViolation

from agents import requests, wakeup
from agents.intake import approvals, submit
from agents.intake.approvals import Decision, approval_not_found
from agents.requests import RunRequest
from config import database
from config.errors import current_request_id
from conversations.runs import interrupts
from conversations.runs.interrupts import Interrupt
from conversations.runs.stored_requests import fetch_request


async def decide(
    interrupt_id: UUID, decision: Decision, *, by: UUID, owner_id: UUID | None
) -> Interrupt:
    """Decide on the interrupt (of this owner, if one is given); return it in its new state.

    After the decision on the last interrupt of its run, the run continues. Raise NotFound for an unknown
    or foreign one; else as `approvals.decide` and `submit.start_run`, whose refusal leaves the interrupt
    undecided.
    """
    found = await interrupts.find(interrupt_id)
    if found is None or owner_id not in (None, found.owner_id):
        raise approval_not_found()
    prepared = None
    if found.status in ("pending", "expired"):
        request = await _continuation(found)
        prepared = await submit.prepare_run(
            request, owner_id=found.owner_id, thread_id=found.thread_id, counts=False
        )
    started = False
    try:
        async with database.connection() as connection, connection.transaction():
            locked = {one.id: one for one in await interrupts.lock(connection, [interrupt_id])}
            changed = await approvals.decide(connection, locked[interrupt_id], decision, by=by)
            waiting = any(one.status == "pending" for one in locked.values() if one.id != interrupt_id)
            if prepared and changed and not waiting:
                await submit.write_run(connection, prepared)
                started = True
    except UniqueViolation:
        if found.status == "expired":  # it was refused before, and the run went on
            return found
        raise submit.run_id_already_used() from None
    except KeyError:  # the thread was deleted meanwhile
        raise approval_not_found() from None
    if prepared and started:
        wakeup.wake_workers(prepared.run_id)
    return await interrupts.find(interrupt_id) or found


async def _continuation(interrupt: Interrupt) -> RunRequest:
    """Return the request that continues a run after its last answer: the same, without new messages."""
    original = await fetch_request(interrupt.run_id)
    if original is None:
        raise approval_not_found()
    request = requests.load(original.request)
    return msgspec.structs.replace(
        request,
        messages=() if request.stored else request.messages,
        event=None,
        known="none",
        continues=interrupt.run_id.hex,
        prefetch=(),
        answers=(),
        tool_choice=msgspec.structs.replace(request.tool_choice, required=False),
        state=None,
        thread_id=str(interrupt.thread_id),
        session=None,
        client_run_id=f"continue-{interrupt.run_id.hex}",
        parent_run_id=original.client_run_id or interrupt.run_id.hex,
        request_id=current_request_id() or request.request_id,
        on_busy="enqueue",
        on_disconnect="continue",
    )
