"""The schemas of threads, attachments (specs/run-agent-input.md §4, §6) and feedback."""

from __future__ import annotations

from typing import Final

from agents.api.threads import ThreadDetail
from config.http.documentation.schema_builders import TEXT, Schema, record
from config.openapi.derived_schemas import derive_structs
from conversations.api.artifacts import FoundArtifact
from conversations.api.attachments import StorageError, StoredUpload
from conversations.threads.feedback import COMMENT_LENGTH, TAG_LENGTH, TAGS
from conversations.threads.history import HistoryDay
from conversations.threads.listing import Changes, Threads
from conversations.threads.search import SearchResults

_SCORE: Final = {"type": "integer", "enum": [-1, 0, 1], "description": "1: good, -1: bad, 0: neutral."}
_TAG: Final = {"type": "string", "minLength": 1, "maxLength": TAG_LENGTH}
_NEW_FEEDBACK: Final = record(
    score=_SCORE,
    optional={
        "comment": {"type": ["string", "null"], "maxLength": COMMENT_LENGTH},
        "tags": {"type": ["array", "null"], "maxItems": TAGS, "items": _TAG},
    },
)
_BYTES: Final = {"type": "string", "format": "binary"}
SCHEMAS: Final[dict[str, Schema]] = derive_structs(HistoryDay, SearchResults, Threads, ThreadDetail) | {
    "ThreadChanges": derive_structs(Changes)["Changes"],
    "NewFeedback": _NEW_FEEDBACK,
    "Artifact": derive_structs(FoundArtifact)["FoundArtifact"],
    "Upload": record(file=_BYTES, optional={"threadId": TEXT, "runId": TEXT}),
    "Attachment": derive_structs(StoredUpload)["StoredUpload"],
    "StorageError": derive_structs(StorageError)["StorageError"],
}
