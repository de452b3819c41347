"""The OpenAPI operations of threads, attachments (specs/run-agent-input.md §4, §6) and feedback."""

from __future__ import annotations

from functools import partial
from typing import Final

from config.openapi.builders import (
    BRANCH,
    COUNT,
    ERROR,
    FLAG,
    PAGING,
    TEXT,
    TIME,
    Route,
    Schema,
    any_of,
    array,
    body,
    nullable,
    open_object,
    operation,
    page,
    public_operation,
    query,
    record,
    ref,
    response,
)

_UUID: Final = {"type": "string", "format": "uuid"}
_DAY: Final = {"type": "string", "format": "date"}
_IMAGE: Final = {"type": {"const": "binary"}, "mimeType": nullable(TEXT), "url": TEXT}
_BLOCK: Final = any_of(
    record(type={"const": "text"}, text=TEXT), record(**_IMAGE, optional={"filename": TEXT})
)
_FILE: Final = record(name=TEXT, url=nullable(TEXT), optional={"mimeType": nullable(TEXT), "type": TEXT})
_MESSAGE: Final = record(
    id=TEXT,
    seq={"type": "integer"},
    role={"enum": ["user", "assistant", "tool"]},
    content={"type": ["string", "array"], "items": _BLOCK},
    timestamp=TIME,
    optional={
        "url": nullable(TEXT) | {"description": "In a user's message: the first image."},
        "files": array(_FILE)
        | {"description": "Text files sent by the user and files created by the run, if any."},
        "uiSchema": nullable(open_object("In other messages: UiSchemaRenderer 2.0.")),
    },
)
_SNAPSHOT: Final = record(
    scope={"const": "history_day"},
    threadId=nullable(TEXT),
    day=nullable(_DAY),
    hasMore=FLAG,
    messages=array(_MESSAGE),
    optional={
        "nextBefore": TEXT
        | {"description": "Only if the day has more messages: the `before` of the next request."}
    },
)
_HIT: Final = record(
    id=TEXT,
    threadId=_UUID,
    threadTitle=TEXT,
    seq={"type": "integer"},
    role={"enum": ["user", "assistant"]},
    day=_DAY,
    timestamp=TIME,
    snippet=array(record(text=TEXT, match=FLAG)),
)
_SCORE: Final = {"type": "integer", "enum": [-1, 0, 1], "description": "1: good, -1: bad, 0: neutral."}
_TAG: Final = {"type": "string", "minLength": 1, "maxLength": 50}
_NEW_FEEDBACK: Final = record(
    score=_SCORE,
    optional={
        "comment": {"type": ["string", "null"], "maxLength": 4000},
        "tags": {"type": ["array", "null"], "maxItems": 20, "items": _TAG},
    },
)
_FEEDBACK: Final = record(
    run_id=TEXT, score=_SCORE, comment=TEXT, tags=array(TEXT), created_at=TIME, updated_at=TIME
)
_FIELDS: Final[dict[str, Schema]] = {
    "id": _UUID,
    "title": TEXT,
    "archived": FLAG,
    "createdAt": TIME,
    "updatedAt": TIME,
    "lastMessageAt": nullable(TIME),
    "liveRunId": nullable(TEXT),
}
_THREAD: Final = record(**_FIELDS)
_DETAIL: Final = record(
    **_FIELDS,
    state={"description": "The shared state of the thread: any JSON."},
    messages=array(ref("AgUiMessage")),
    feedback=array(_FEEDBACK),
    optional={
        "branch": TEXT | {"description": "The last run of the shown branch."},
        "branches": array(record(runId=TEXT, createdAt=TIME, question=TEXT))
        | {"description": "The last run of each branch, newest first; only if there are several."},
    },
)
_CHANGES: Final = record(optional={"title": {"type": "string", "maxLength": 200}, "archived": FLAG})
_BYTES: Final = {"type": "string", "format": "binary"}
_UPLOAD: Final = record(file=_BYTES, optional={"threadId": TEXT, "runId": TEXT})
_ARTIFACT: Final = record(artifact_id=TEXT, mime_type=TEXT, url=TEXT, size_bytes=COUNT)
_DOWNLOAD: Final = {"*/*": {"schema": _BYTES}}
_feedback_operation = partial(operation, tags=["feedback"])

OPERATIONS: Final[list[Route]] = [
    operation(
        "GET /api/v1/agent/history",
        "agent_history",
        "Get one day of a conversation, starting with the newest",
        {"200": response("The newest day that has messages, before `before` if given.", _SNAPSHOT)},
        (404,),
        parameters=[
            query("threadId", "A thread (its id, or the client's name for it). Default: the newest."),
            query("before", "YYYY-MM-DD: get the newest day before this one; or a `nextBefore`."),
            query("content", "`text` (default), or `blocks`: split users' messages into blocks."),
            BRANCH | {"description": f"{BRANCH['description']} Requires threadId."},
        ],
    ),
    operation(
        "GET /api/v1/agent/history/search",
        "agent_history_search",
        "Search the messages of the last continued branches, newest first",
        {"200": response("Messages that contain every word.", page(results=array(_HIT)))},
        (404,),
        parameters=[
            query("q", "The words to find, 1 to 200 characters.") | {"required": True},
            query("threadId", "Search only this thread (its id, or the client's name for it)."),
            *PAGING,
        ],
    ),
    operation(
        "GET /api/v1/agent/threads",
        "agent_threads",
        "List the caller's conversations, last used first",
        {"200": response("A page of threads.", page(threads=array(_THREAD)))},
        parameters=[query("archived", "`false` (default), `true` or `all`."), *PAGING],
    ),
    operation(
        "GET /api/v1/agent/threads/{thread_id}",
        "agent_thread_retrieve",
        "Get a conversation",
        {"200": response("The thread with state, messages of AG-UI and feedback.", _DETAIL)},
        parameters=[
            query("reasoning", "`true`: include the models' reasoning, as long as it is kept."),
            BRANCH,
        ],
    ),
    operation(
        "PATCH /api/v1/agent/threads/{thread_id}",
        "agent_thread_change",
        "Rename or archive a conversation",
        {"200": response("The thread.", _THREAD)},
        requestBody=body(_CHANGES),
    ),
    operation(
        "DELETE /api/v1/agent/threads/{thread_id}",
        "agent_thread_delete",
        "Delete a conversation and end its live run",
        {"204": {"description": "The thread and all its data are deleted."}},
    ),
    _feedback_operation(
        "GET /api/v1/agent/runs/{run_id}/feedback",
        "agent_run_feedback",
        "Get the caller's feedback on a run",
        {"200": response("The feedback.", _FEEDBACK), "404": response("No run or no feedback.", ERROR)},
    ),
    _feedback_operation(
        "POST /api/v1/agent/runs/{run_id}/feedback",
        "agent_run_feedback_give",
        "Give feedback on a run, or replace it",
        {
            "200": response("The feedback that replaces the caller's previous feedback.", _FEEDBACK),
            "201": response("The caller's first feedback on this run.", _FEEDBACK),
        },
        requestBody=body(_NEW_FEEDBACK),
    ),
    _feedback_operation(
        "DELETE /api/v1/agent/runs/{run_id}/feedback",
        "agent_run_feedback_withdraw",
        "Delete the caller's feedback on a run",
        {"204": {"description": "The feedback is deleted."}},
    ),
]

ATTACHMENT_OPERATIONS: Final[list[Route]] = [
    operation(
        "GET /api/v1/agent/artifacts/{artifact_id}",
        "agent_artifact_retrieve",
        "Get a tool result that was too large for the stream",
        {"200": response("The size of the result, and a url that is valid for an hour.", _ARTIFACT)},
    ),
    operation(
        "POST /api/v1/agent/attachments",
        "agent_attachments_create",
        "Upload an image for a message",
        {
            "201": response(
                "The image is stored; its url is valid for an hour.",
                record(bucket=TEXT, path=TEXT, mime_type=TEXT, url=TEXT),
            )
        },
        (404, 415, 507),
        requestBody=body(_UPLOAD, "multipart/form-data"),
    ),
    public_operation(
        "GET /storage/v1/object/sign/{bucket}/{path}",
        "attachment_retrieve",
        "Download an attachment by its signed URL",
        {
            "200": {"description": "The whole file.", "content": _DOWNLOAD},
            "206": {"description": "A range of the file.", "content": _DOWNLOAD},
            "302": {"description": "A redirect to the file in the object store."},
            "304": {"description": "The caller's copy is current."},
            "400": response(
                "The token or the object is not valid.",
                record(statusCode=TEXT, error=TEXT, message=TEXT),
            ),
            "412": {"description": "The file is another version than the caller's."},
            "416": {
                "description": "The file does not have this range.",
                "headers": {"Content-Range": {"required": True, "schema": TEXT}},
            },
        },
        parameters=[query("token", "The token of the signed URL.") | {"required": True}],
    ),
]
