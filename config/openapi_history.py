"""How the OpenAPI document describes history, search and threads (specs/run-agent-input.md §4)."""

from __future__ import annotations

from typing import Any, Final

from config.openapi_parts import BRANCH, Operation, answer, operation, query

_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string"}
_UUID: Final = {"type": "string", "format": "uuid"}


def _maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return schema | {"type": [schema["type"], "null"]}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


_MESSAGE: Final = _object(
    id=_TEXT,
    seq={"type": "integer"},
    role={"enum": ["user", "assistant", "tool"]},
    content={"type": ["string", "array"], "items": {"type": "object"}},
    timestamp=_TIME,
)
_SHOWN: Final = {
    "url": {"type": ["string", "null"], "description": "Users' messages: the first file."},
    "uiSchema": {"type": ["object", "null"], "description": "The others: UiSchemaRenderer 2.0."},
}
_DAY: Final = _object(
    scope={"const": "history_day"},
    threadId=_maybe(_UUID),
    day={"type": ["string", "null"], "format": "date"},
    hasMore={"type": "boolean"},
    messages=_list(_MESSAGE | {"properties": _MESSAGE["properties"] | _SHOWN}),
)
_SNAPSHOT: Final = _DAY | {
    "properties": _DAY["properties"]
    | {
        "nextBefore": {
            "type": "string",
            "description": "Only where the day has more messages than came: `before` for the next part.",
        }
    }
}
_FOUND: Final = _object(
    id=_TEXT,
    threadId=_UUID,
    threadTitle=_TEXT,
    seq={"type": "integer"},
    role={"enum": ["user", "assistant"]},
    day={"type": "string", "format": "date"},
    timestamp=_TIME,
    snippet=_list(_object(text=_TEXT, match={"type": "boolean"})),
)
_THREAD: Final = _object(
    id=_UUID,
    title=_TEXT,
    archived={"type": "boolean"},
    createdAt=_TIME,
    updatedAt=_TIME,
    lastMessageAt=_maybe(_TIME),
    liveRunId=_maybe(_TEXT),
)
_CHANGES: Final = {
    "type": "object",
    "additionalProperties": False,
    "properties": {"title": {"type": "string", "maxLength": 200}, "archived": {"type": "boolean"}},
}
_THREAD_ID: Final = {"name": "thread_id", "in": "path", "required": True, "schema": _TEXT}
_PAGING: Final = [
    query("limit", "1 to 100.", "integer"),
    query("cursor", "The nextCursor of the page before."),
]


def _page(**items: Any) -> dict[str, Any]:
    return _object(**items, nextCursor=_maybe(_TEXT))


def _history() -> Operation:
    return operation(
        "agent_history",
        "One day of a conversation, the newest first",
        {"200": answer("The newest day with messages (before the one given).", _SNAPSHOT)},
        (401, 404, 405, 422),
        parameters=[
            query("threadId", "An id, or the client's own name. Default: the newest thread."),
            query("before", "YYYY-MM-DD: the newest day before this one; or a nextBefore."),
            query("content", "text (default), or blocks: users' messages as text and binary blocks."),
            BRANCH | {"description": f"{BRANCH['description']} Needs threadId."},
        ],
    )


def _search() -> Operation:
    return operation(
        "agent_history_search",
        "Search in what you and the assistant said, the newest first (of branches: the last continued)",
        {"200": answer("Messages that hold every word.", _page(results=_list(_FOUND)))},
        (401, 404, 405, 422),
        parameters=[
            query("q", "1 to 200 characters.") | {"required": True},
            query("threadId", "Only in this thread, by its id or the client's own name."),
            *_PAGING,
        ],
    )


def _threads() -> Operation:
    return operation(
        "agent_threads",
        "Your conversations, the latest first",
        {"200": answer("A page of threads.", _page(threads=_list(_THREAD)))},
        (401, 405, 422),
        parameters=[query("archived", "false (default), true or all."), *_PAGING],
    )


_OK: Final = {"200": answer("The thread.", _THREAD)}
_BRANCHES: Final = {
    "branch": _TEXT | {"description": "The last run of the branch that is shown."},
    "branches": _list(_object(runId=_TEXT, createdAt=_TIME, question=_TEXT))
    | {"description": "Only where there are several: the last run of each, the newest first."},
}
_WHOLE: Final = {
    "200": answer(
        "The thread, with state, messages in AG-UI's shape, and feedback.",
        _THREAD | {"properties": _THREAD["properties"] | _BRANCHES},
    )
}
_GONE: Final = {"204": {"description": "Everything of it is gone."}}


def _thread(
    name: str, summary: str, answers: dict[str, Any], *more_refusals: int, **more: Any
) -> Operation:
    refusals = (401, 404, 405, *more_refusals)
    asked = [query("reasoning", "true: with what models thought, while it is kept."), BRANCH]
    parameters = [_THREAD_ID, *(asked if name == "retrieve" else ())]
    return operation(f"agent_thread_{name}", summary, answers, refusals, parameters=parameters, **more)


def history_operations() -> dict[str, dict[str, Operation]]:
    """The paths and what they answer."""
    body = {"required": True, "content": {"application/json": {"schema": _CHANGES}}}
    return {
        "/api/v1/agent/history": {"get": _history()},
        "/api/v1/agent/history/search": {"get": _search()},
        "/api/v1/agent/threads": {"get": _threads()},
        "/api/v1/agent/threads/{thread_id}": {
            "get": _thread("retrieve", "A conversation", _WHOLE),
            "patch": _thread("change", "Rename or archive", _OK, 413, 422, requestBody=body),
            "delete": _thread("delete", "Delete all of it; a live run is ended", _GONE),
        },
    }
