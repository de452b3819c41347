"""The schemas of threads, attachments (specs/run-agent-input.md §4, §6) and feedback."""

from __future__ import annotations

from typing import Final

from config.http.documentation.schema_builders import (
    FLAG,
    TEXT,
    TIME,
    Schema,
    any_of,
    array,
    nullable,
    page,
    record,
    ref,
)
from config.openapi.derived_schemas import derive_structs
from conversations.threads.artifacts import Artifact
from conversations.threads.feedback import Feedback
from conversations.threads.listing import Changes, Thread

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
        "uiSchema": nullable(ref("UiSchema")) | {"description": "In other messages: a card, if any."},
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
_RENDERED: Final = derive_structs(Thread, Feedback)
_DETAIL: Final = record(
    **_RENDERED["Thread"]["properties"],
    state={"description": "The shared state of the thread: any JSON."},
    messages=array(ref("AgUiMessage")),
    feedback=array(ref("Feedback")),
    optional={
        "branch": TEXT | {"description": "The last run of the shown branch."},
        "branches": array(record(runId=TEXT, createdAt=TIME, question=TEXT))
        | {"description": "The last run of each branch, newest first; only if there are several."},
    },
)
_BYTES: Final = {"type": "string", "format": "binary"}
SCHEMAS: Final[dict[str, Schema]] = _RENDERED | {
    "HistoryDay": _SNAPSHOT,
    "SearchResults": page(results=array(_HIT)),
    "Threads": page(threads=array(ref("Thread"))),
    "ThreadDetail": _DETAIL,
    "ThreadChanges": derive_structs(Changes)["Changes"],
    "NewFeedback": _NEW_FEEDBACK,
    "Artifact": record(artifact_id=TEXT, **derive_structs(Artifact)["Artifact"]["properties"]),
    "Upload": record(file=_BYTES, optional={"threadId": TEXT, "runId": TEXT}),
    "Attachment": record(bucket=TEXT, path=TEXT, mime_type=TEXT, url=TEXT),
    "StorageError": record(statusCode=TEXT, error=TEXT, message=TEXT),
}
