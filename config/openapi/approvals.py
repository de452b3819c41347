"""The OpenAPI operations of approvals."""

from __future__ import annotations

from typing import Any, Final

from config.openapi.parts import (
    ERROR,
    FLAG,
    TEXT,
    TIME,
    Operation,
    array,
    body,
    nullable,
    open_object,
    operation,
    path_param,
    query,
    record,
    response,
)

_TAG: Final[dict[str, Any]] = {"tags": ["approvals"]}
_STATUS: Final = {"enum": ["pending", "approved", "refused", "expired", "cancelled"]}
_ARGUMENTS: Final = open_object("The arguments of the tool call.")
APPROVAL: Final = record(
    {
        "id": TEXT,
        "status": _STATUS,
        "run_id": TEXT,
        "thread_id": TEXT,
        "tool_call_id": TEXT,
        "tool_name": TEXT,
        "arguments": _ARGUMENTS,
        "edited_arguments": nullable(_ARGUMENTS),
        "message": TEXT,
        "reason": nullable(TEXT),
        "created_at": TIME,
        "expires_at": TIME,
        "decided_at": nullable(TIME),
        "decided_by": nullable(TEXT),
        "told_run_id": nullable(TEXT),
    }
)
_LIST: Final = record({"approvals": array(APPROVAL), "nextCursor": nullable(TEXT)})
_DECISION: Final = record(
    {"approve": FLAG},
    {
        "arguments": nullable(open_object("Arguments that replace those of the call.")),
        "reason": nullable(TEXT) | {"description": "Why it is refused; sent to the model."},
    },
)
_ID: Final = path_param("approval_id")


def approval_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    root = "/api/v1/agent/approvals"
    return {root: {"get": _list()}, f"{root}/{{approval_id}}": {"get": _retrieve(), "post": _decide()}}


def _list() -> Operation:
    return operation(
        "agent_approvals",
        "List the caller's approvals, pending and decided, newest first",
        {"200": response("A page of approvals.", _LIST)},
        parameters=[
            query("status", "Only approvals with this status."),
            query("user_id", "For staff: the id of a user, or `all`."),
            query("limit", "The page size, 1 to 100.", "integer"),
            query("cursor", "The `nextCursor` of the previous page."),
        ],
        **_TAG,
    )


def _retrieve() -> Operation:
    return operation(
        "agent_approval_retrieve",
        "Get an approval",
        {"200": response("The approval.", APPROVAL)},
        (404,),
        parameters=[_ID],
        **_TAG,
    )


def _decide() -> Operation:
    decided: dict[str, Any] = {
        "200": response("The decided approval.", APPROVAL),
        "409": response("The approval was already decided differently, or it has expired.", ERROR),
    }
    return operation(
        "agent_approval_decide",
        "Approve or refuse a tool call; the last decision of a run continues the run",
        decided,
        (404,),
        parameters=[_ID],
        requestBody=body(_DECISION),
        **_TAG,
    )
