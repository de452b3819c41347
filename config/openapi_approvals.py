"""How the OpenAPI document describes approvals."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import ERROR, Operation, answer, operation, query

_TAG: Final[dict[str, Any]] = {"tags": ["approvals"]}
_TEXT: Final = {"type": "string"}
_MAYBE: Final = {"type": ["string", "null"]}
_STATUS: Final = {"enum": ["pending", "approved", "refused", "expired", "cancelled"]}
_APPROVAL: Final = {
    "type": "object",
    "required": ["id", "status", "run_id", "thread_id", "tool_name", "arguments", "expires_at"],
    "properties": {
        "id": _TEXT,
        "status": _STATUS,
        "run_id": _TEXT,
        "thread_id": _TEXT,
        "tool_call_id": _TEXT,
        "tool_name": _TEXT,
        "arguments": {"type": "object"},
        "edited_arguments": {"type": ["object", "null"]},
        "message": _TEXT,
        "reason": _MAYBE,
        "created_at": _TEXT,
        "expires_at": _TEXT,
        "decided_at": _MAYBE,
        "decided_by": _MAYBE,
        "told_run_id": _MAYBE,
    },
}
_LIST: Final = {
    "type": "object",
    "required": ["approvals", "nextCursor"],
    "properties": {"approvals": {"type": "array", "items": _APPROVAL}, "nextCursor": _MAYBE},
}
_DECISION: Final = {
    "type": "object",
    "required": ["approve"],
    "additionalProperties": False,
    "properties": {
        "approve": {"type": "boolean"},
        "arguments": {"type": ["object", "null"], "description": "To call the tool with instead."},
        "reason": {"type": ["string", "null"], "description": "The model is told why it was refused."},
    },
}
_ID: Final = {"name": "approval_id", "in": "path", "required": True, "schema": _TEXT}


def approval_operations() -> dict[str, dict[str, Operation]]:
    """By path."""
    root = "/api/v1/agent/approvals"
    return {root: {"get": _list()}, f"{root}/{{approval_id}}": {"get": _look(), "post": _decide()}}


def _list() -> Operation:
    return operation(
        "agent_approvals",
        "Tool calls that wait, or waited, for approval, the newest first",
        {"200": answer("A page.", _LIST)},
        (401, 403, 405, 422),
        parameters=[
            query("status", "Only these."),
            query("user_id", "Staff: whose, or all."),
            query("limit", "1 to 100.", "integer"),
            query("cursor", "nextCursor of the page before."),
        ],
        **_TAG,
    )


def _look() -> Operation:
    return operation(
        "agent_approval_retrieve",
        "One approval",
        {"200": answer("The approval.", _APPROVAL)},
        (401, 404, 405),
        parameters=[_ID],
        **_TAG,
    )


def _decide() -> Operation:
    decided: dict[str, Any] = {
        "200": answer("The approval as it is now.", _APPROVAL),
        "409": answer("Decided otherwise before, or too late.", ERROR),
    }
    return operation(
        "agent_approval_decide",
        "Approve or refuse a tool call; with the last one of its run the run goes on",
        decided,
        (401, 404, 405, 422, 429),
        parameters=[_ID],
        requestBody={"required": True, "content": {"application/json": {"schema": _DECISION}}},
        **_TAG,
    )
