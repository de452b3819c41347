"""The schemas of threads, attachments (specs/run-agent-input.md §4, §6) and feedback."""

from __future__ import annotations

from typing import Final

from agents.api.threads import ThreadDetail
from config.http.documentation.schema_builders import TEXT, Schema, record
from config.openapi.derived_schemas import derive_structs
from conversations.api.artifacts import FoundArtifact
from conversations.api.attachments import StorageError, StoredUpload
from conversations.threads.feedback import NewFeedback
from conversations.threads.history import HistoryDay
from conversations.threads.listing import Changes, Threads
from conversations.threads.search import SearchResults

_SHOWN: Final = (HistoryDay, SearchResults, Threads, ThreadDetail, NewFeedback)
_BYTES: Final = {"type": "string", "format": "binary"}
SCHEMAS: Final[dict[str, Schema]] = derive_structs(*_SHOWN) | {
    "ThreadChanges": derive_structs(Changes)["Changes"],
    "Artifact": derive_structs(FoundArtifact)["FoundArtifact"],
    "Upload": record(file=_BYTES, optional={"threadId": TEXT, "runId": TEXT}),
    "Attachment": derive_structs(StoredUpload)["StoredUpload"],
    "StorageError": derive_structs(StorageError)["StorageError"],
}
