"""The pieces of which the plain async operations are described; see `config.openapi`."""

from __future__ import annotations

from typing import Any, Final

Operation = dict[str, Any]

ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["detail", "code", "request_id"],
    "properties": {
        "detail": {"type": "string"},
        "code": {"type": "string"},
        "request_id": {"type": "string"},
    },
}
OPENAI_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": [*ERROR["required"], "error"],
    "properties": ERROR["properties"]
    | {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"], "description": "The field at fault."},
                "code": {"type": "string"},
            },
        }
    },
}
_REFUSALS: Final = {
    401: "No valid token.",
    403: "Not staff, or a guest (`ANONYMOUS_ACCESS_DENIED`).",
    404: "No such thing of this user.",
    405: "Wrong method.",
    409: "The runId or key has another body already, or the thread is busy (`on_busy=reject`).",
    413: "Body over 256 KiB; over 10 MiB for an attachment.",
    415: "The file is no sound JPEG, PNG, WebP or GIF.",
    422: "The request is not valid.",
    429: "Too many requests, or the budget is used up; wait as long as Retry-After says.",
    507: "No room for the file.",
}


def query(name: str, description: str, kind: str = "string") -> dict[str, Any]:
    return {"name": name, "in": "query", "schema": {"type": kind}, "description": description}


BRANCH: Final = query(
    "branch",
    "The last run of the branch to show, where it is not the one last continued: by its id or the "
    "client's own.",
)


def answer(description: str, schema: dict[str, Any], kind: str = "application/json") -> dict[str, Any]:
    return {"description": description, "content": {kind: {"schema": schema}}}


def operation(
    operation_id: str,
    summary: str,
    answers: dict[str, Any],
    refusals: tuple[int, ...],
    *,
    error: dict[str, Any] = ERROR,
    **more: Any,
) -> Operation:
    """An operation of a bearer's, with the refusals that it shares with others."""
    refused = {str(status): answer(_REFUSALS[status], error) for status in refusals}
    return {
        "operationId": operation_id,
        "summary": summary,
        "tags": ["agent"],
        "security": [{"bearer": []}],
        "responses": answers | refused,
    } | more
