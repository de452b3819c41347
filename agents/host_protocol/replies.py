"""The replies of Host calls, under the keys that the SDK reads (specs/runner-host.md).

Times (`event_time`, `created_at`, `expires_at`) are epoch seconds.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct, field

from agents.host_protocol.messages import Message, MessageChunk, RetrievalEntry, TokenUsage

Item = TypeVar("Item")


class Invoked(Struct, frozen=True, kw_only=True):
    message: Message
    usage: TokenUsage | None = None


class StreamedChunk(Struct, frozen=True, kw_only=True):
    """One increment; the last has `chunk.is_final` and the usage."""

    chunk: MessageChunk
    usage: TokenUsage | None = None


class Ranked(Struct, frozen=True):
    index: int
    relevance_score: float


class Reranked(Struct, frozen=True):
    results: tuple[Ranked, ...]


class Embedded(Struct, frozen=True):
    """A vector per text."""

    vectors: tuple[list[float], ...]


class Counted(Struct, frozen=True):
    tokens: int


class ToolDetail(Struct, frozen=True, kw_only=True):
    name: str
    label: str = ""
    human_desc: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}
    spec: dict[str, Any] = {}


class ToolDescribed(Struct, frozen=True):
    tool: ToolDetail


class ToolCalled(Struct, frozen=True):
    """The tool's object, or `{"error": {code, message}}` if the call failed."""

    result: dict[str, Any]


class Retrieved(Struct, frozen=True):
    results: tuple[RetrievalEntry, ...]


class TranscriptItem(Struct, frozen=True, kw_only=True):
    transcript_id: str
    event_id: str
    conversation_id: str | None = None
    thread_id: str | None = None
    role: str
    item_type: str = "message"
    content: str | None = None
    content_json: dict[str, Any] | None = None
    artifact_refs: list[dict[str, Any]] = []
    seq: int | None = None
    cursor: str | None = None
    created_at: int | None = None
    metadata: dict[str, Any] = {}


class _Page(Struct, Generic[Item], frozen=True, kw_only=True):
    items: tuple[Item, ...] = ()
    next_cursor: str | None = None
    prev_cursor: str | None = None
    has_more: bool = False
    total_count: int | None = None


class HistoryPage(_Page[TranscriptItem], frozen=True):
    """A page of a conversation's messages."""


class HistoryFound(Struct, frozen=True, kw_only=True):
    items: tuple[TranscriptItem, ...] = ()
    total_count: int | None = None
    query: str


class EventRecord(Struct, frozen=True, kw_only=True):
    """`AgentEventRecord`: one event, without its large parts."""

    event_id: str
    event_type: str
    event_time: int | None = None
    source: str
    bot_id: str | None = None
    workspace_id: str | None = None
    conversation_id: str | None = None
    thread_id: str | None = None
    actor_type: str | None = None
    actor_id: str | None = None
    actor_name: str | None = None
    subject_type: str | None = None
    subject_id: str | None = None
    input_summary: str | None = None
    input_ref: str | None = None
    raw_ref: str | None = None
    seq: int | None = None
    cursor: str | None = None
    created_at: int | None = None
    metadata: dict[str, Any] = {}


class EventPage(_Page[EventRecord], frozen=True):
    """A page of a conversation's events."""


class ArtifactMetadata(Struct, frozen=True, kw_only=True):
    artifact_id: str
    artifact_type: str
    mime_type: str | None = None
    name: str | None = None
    size_bytes: int | None = None
    sha256: str | None = None
    source: str
    conversation_id: str | None = None
    run_id: str | None = None
    runner_id: str | None = None
    created_at: int | None = None
    expires_at: int | None = None
    metadata: dict[str, Any] = {}


class ArtifactRead(Struct, frozen=True, kw_only=True):
    """`ArtifactReadResult`: a range of an artifact's bytes."""

    artifact_id: str
    mime_type: str | None = None
    size_bytes: int | None = None
    offset: int = 0
    length: int | None = None
    content: bytes | None = field(default=None, name="content_base64")
    file_key: str | None = None
    has_more: bool = False


class StateValue(Struct, frozen=True):
    value: Any = None


class Done(Struct, frozen=True):
    success: bool = True


class StateKeys(Struct, frozen=True):
    keys: tuple[str, ...]
    has_more: bool = False


class StoredValue(Struct, frozen=True):
    value: bytes = field(name="value_base64")


class StorageKeys(Struct, frozen=True):
    keys: tuple[str, ...]


class Nothing(Struct, frozen=True):
    """An empty reply, `{}`."""


class FileContent(Struct, frozen=True):
    content: bytes = field(name="file_base64")


class Version(Struct, frozen=True):
    version: str


class SystemPrompt(Struct, frozen=True):
    prompt: list[dict[str, Any]]


class RunEventRecord(Struct, frozen=True, kw_only=True):
    """`AgentRunEvent`: a result that was appended to the run; `sequence` counts those from 1."""

    run_id: str
    sequence: int
    type: str
    data: dict[str, Any] = {}
    created_at: int | None = None
    source: str | None = None


class ActionTaken(Struct, frozen=True):
    """The state of a platform action: `pending` until `approval_id` is decided."""

    status: str
    approval_id: str | None = None
