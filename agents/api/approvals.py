"""Approvals over REST: those that a caller may decide, and the decision."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Final, cast
from uuid import UUID

import msgspec
from asgiref.sync import sync_to_async
from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponseBase
from msgspec import Struct

from agents.intake import resume
from agents.intake.approvals import (
    Decision,
    approval_not_found,
    parse_interrupt_id,
    parse_reason,
)
from config.audit.recording import record
from config.auth.bearer import Caller, require_staff
from config.auth.permissions import is_staff_with
from config.auth.requirements import READ, RUN
from config.errors import Forbidden, InvalidRequest
from config.http.async_views import api, json_body, json_response
from config.http.documentation import groups
from config.http.documentation.json_types import Shown, noted
from config.http.documentation.operations import PAGING, body, described, operation, query, response
from config.http.documentation.schema_builders import ERROR, ref
from conversations import models
from conversations.runs import interrupts
from conversations.runs.client_queries import Approval, show_interrupt
from conversations.runs.interrupts import STATUSES, Interrupt, Status
from conversations.threads.cursors import invalid_cursor, read_limit

_operation: Final = partial(operation, group=groups.APPROVALS)
PERMISSION: Final = "conversations.change_interrupt"
_PAGE: Final = 30


class DecisionBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A decision, as a client sends it."""

    approve: bool
    arguments: Annotated[
        dict[str, Any] | None,
        noted("Arguments that replace those of the call, in the form that the tool declares."),
    ] = None
    reason: Annotated[str | None, noted("Why it is refused; sent to the model.")] = None


class Approvals(Shown, frozen=True, rename="camel"):
    approvals: list[Approval]
    next_cursor: str | None


@described(
    _operation(
        "GET /api/v1/agent/approvals",
        "agent_approvals",
        "List the caller's approvals, pending and decided, newest first",
        {"200": response("A page of approvals.", ref("Approvals"))},
        parameters=[
            query("status", "Only approvals with this status.", enum=[*STATUSES]),
            query("user_id", "For staff: the id of a user, or `all`."),
            *PAGING,
        ],
    )
)
@api(GET=READ)
async def approvals(request: HttpRequest, caller: Caller) -> HttpResponseBase:
    """`GET /api/v1/agent/approvals`: return the caller's; for staff those of `?user_id=` (or `all`)."""
    query = request.GET
    most = read_limit(query.get("limit"), default=_PAGE)
    page = await interrupts.list_page(
        owner_id=await _whose(caller, query.get("user_id")),
        status=_status(query.get("status")),
        before=_before(query.get("cursor")),
        limit=most + 1,
    )
    more = page[most - 1].id.hex if len(page) > most else None
    shown = [show_interrupt(interrupt) for interrupt in page[:most]]
    return json_response(Approvals(shown, more))


@described(
    _operation(
        "GET /api/v1/agent/approvals/{approval_id}",
        "agent_approval_retrieve",
        "Get an approval",
        {"200": response("The approval.", ref("Approval"))},
    ),
    _operation(
        "POST /api/v1/agent/approvals/{approval_id}",
        "agent_approval_decide",
        "Approve or refuse a tool call; the last decision of a run continues the run",
        {
            "200": response("The decided approval.", ref("Approval")),
            "409": response("The approval was already decided differently, or it has expired.", ERROR),
        },
        requestBody=body(ref("DecisionBody"), approve={"approve": True}),
    ),
)
@api(GET=READ, POST=RUN)
async def approval(request: HttpRequest, caller: Caller, approval_id: str) -> HttpResponseBase:
    """`/api/v1/agent/approvals/{approval_id}`: return it (GET), or decide it once (POST)."""
    found = await _visible(caller, approval_id)
    if request.method != "POST":
        return json_response(show_interrupt(found))
    decision = _decision(await json_body(request))
    decided = await resume.decide(found.id, decision, by=caller.user_id, owner_id=found.owner_id)
    if found.owner_id != caller.user_id:
        await sync_to_async(_record)(decision, found.id, by=caller.user_id)
    return json_response(show_interrupt(decided))


def _record(decision: Decision, interrupt_id: UUID, *, by: UUID) -> None:
    """Record that staff have decided for somebody else."""
    did = "approved" if decision.approve else "refused"
    account = get_user_model().objects.get(pk=by)
    record(did, models.Interrupt(pk=interrupt_id), by=account, name=str(interrupt_id))


async def _visible(caller: Caller, approval_id: str) -> Interrupt:
    """Return the caller's own interrupt, or anybody's for staff who may decide; raise NotFound."""
    found = await interrupts.find(parse_interrupt_id(approval_id))
    if found is None or not (found.owner_id == caller.user_id or await _may_decide(caller)):
        raise approval_not_found()
    return found


async def _may_decide(caller: Caller) -> bool:
    """Return whether the caller may look after other people's approvals."""
    return "admin" in caller.scopes and await is_staff_with(caller, PERMISSION)


async def _whose(caller: Caller, value: str | None) -> UUID | None:
    if not value:
        return caller.user_id
    require_staff(caller)
    if not await _may_decide(caller):
        raise Forbidden("This account may not look after approvals.")
    if value == "all":
        return None
    try:
        return UUID(value)
    except ValueError:
        raise InvalidRequest("user_id must be a user's id, or all.", code="invalid_user_id") from None


def _status(value: str | None) -> Status | None:
    if not value:
        return None
    if value not in STATUSES:
        raise InvalidRequest(f"status must be one of {', '.join(STATUSES)}.", code="invalid_status")
    return cast("Status", value)


def _before(cursor: str | None) -> UUID:
    try:
        return UUID(cursor) if cursor else interrupts.NEWEST
    except ValueError:
        raise invalid_cursor() from None


def _decision(body: dict[str, Any]) -> Decision:
    try:
        given = msgspec.convert(body, DecisionBody)
    except msgspec.ValidationError:
        raise InvalidRequest(
            "Send approve (true or false), and if you like arguments (an object) and reason (a text).",
            code="invalid_answer",
        ) from None
    return Decision(given.approve, given.arguments, parse_reason(given.reason))
