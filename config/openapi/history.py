"""The OpenAPI operations of history, search and threads (specs/run-agent-input.md §4)."""

from __future__ import annotations

from typing import Any, Final

from config.openapi.feedback import FEEDBACK
from config.openapi.parts import (
    BRANCH,
    FLAG,
    TEXT,
    TIME,
    Operation,
    Schema,
    array,
    body,
    nullable,
    open_object,
    operation,
    path_param,
    query,
    record,
    ref,
    response,
)

_UUID: Final = {"type": "string", "format": "uuid"}
_DAY: Final = {"type": "string", "format": "date"}
_TEXT: Final = nullable(TEXT)
_BLOCK: Final = {
    "anyOf": [
        record({"type": {"const": "text"}, "text": TEXT}),
        record({"type": {"const": "binary"}, "mimeType": _TEXT, "url": TEXT}, {"filename": TEXT}),
    ]
}
_FILE: Final = record({"name": TEXT, "url": _TEXT}, {"mimeType": _TEXT, "type": TEXT})
_MESSAGE: Final = record(
    {
        "id": TEXT,
        "seq": {"type": "integer"},
        "role": {"enum": ["user", "assistant", "tool"]},
        "content": {"type": ["string", "array"], "items": _BLOCK},
        "timestamp": TIME,
    },
    {
        "url": nullable(TEXT) | {"description": "In a user's message: the first image."},
        "files": array(_FILE)
        | {"description": "Text files sent by the user and files created by the run, if any."},
        "uiSchema": nullable(open_object("In other messages: UiSchemaRenderer 2.0.")),
    },
)
_SNAPSHOT: Final = record(
    {
        "scope": {"const": "history_day"},
        "threadId": nullable(TEXT),
        "day": nullable(_DAY),
        "hasMore": FLAG,
        "messages": array(_MESSAGE),
    },
    {
        "nextBefore": TEXT
        | {"description": "Only if the day has more messages: the `before` of the next request."}
    },
)
_HIT: Final = record(
    {
        "id": TEXT,
        "threadId": _UUID,
        "threadTitle": TEXT,
        "seq": {"type": "integer"},
        "role": {"enum": ["user", "assistant"]},
        "day": _DAY,
        "timestamp": TIME,
        "snippet": array(record({"text": TEXT, "match": FLAG})),
    }
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
_THREAD: Final = record(_FIELDS)
_DETAIL: Final = record(
    _FIELDS
    | {
        "state": {"description": "The shared state of the thread: any JSON."},
        "messages": array(ref("AgUiMessage")),
        "feedback": array(FEEDBACK),
    },
    {
        "branch": TEXT | {"description": "The last run of the shown branch."},
        "branches": array(record({"runId": TEXT, "createdAt": TIME, "question": TEXT}))
        | {"description": "The last run of each branch, newest first; only if there are several."},
    },
)
_CHANGES: Final = record({}, {"title": {"type": "string", "maxLength": 200}, "archived": FLAG})
_THREAD_ID: Final = path_param("thread_id", "The thread's id, or the client's name for it.")
_PAGING: Final = [
    query("limit", "The page size, 1 to 100.", "integer"),
    query("cursor", "The `nextCursor` of the previous page."),
]


def _page(**items: Schema) -> Schema:
    return record({**items, "nextCursor": nullable(TEXT)})


def _history() -> Operation:
    return operation(
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
    )


def _search() -> Operation:
    return operation(
        "agent_history_search",
        "Search the messages of the last continued branches, newest first",
        {"200": response("Messages that contain every word.", _page(results=array(_HIT)))},
        (404,),
        parameters=[
            query("q", "The words to find, 1 to 200 characters.") | {"required": True},
            query("threadId", "Search only this thread (its id, or the client's name for it)."),
            *_PAGING,
        ],
    )


def _threads() -> Operation:
    return operation(
        "agent_threads",
        "List the caller's conversations, last used first",
        {"200": response("A page of threads.", _page(threads=array(_THREAD)))},
        parameters=[query("archived", "`false` (default), `true` or `all`."), *_PAGING],
    )


_OK: Final = {"200": response("The thread.", _THREAD)}
_SHOWN: Final = {"200": response("The thread with state, messages of AG-UI and feedback.", _DETAIL)}
_GONE: Final = {"204": {"description": "The thread and all its data are deleted."}}


def _thread(
    name: str, summary: str, responses: dict[str, Any], *more_errors: int, **more: Any
) -> Operation:
    shown = [query("reasoning", "`true`: include the models' reasoning, as long as it is kept."), BRANCH]
    parameters = [_THREAD_ID, *(shown if name == "retrieve" else ())]
    statuses = (404, *more_errors)
    return operation(f"agent_thread_{name}", summary, responses, statuses, parameters=parameters, **more)


def history_operations() -> dict[str, dict[str, Operation]]:
    """Return the operations by path and method."""
    return {
        "/api/v1/agent/history": {"get": _history()},
        "/api/v1/agent/history/search": {"get": _search()},
        "/api/v1/agent/threads": {"get": _threads()},
        "/api/v1/agent/threads/{thread_id}": {
            "get": _thread("retrieve", "Get a conversation", _SHOWN),
            "patch": _thread(
                "change", "Rename or archive a conversation", _OK, requestBody=body(_CHANGES)
            ),
            "delete": _thread("delete", "Delete a conversation and end its live run", _GONE, 408, 413),
        },
    }
