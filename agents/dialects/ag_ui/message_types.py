"""AG-UI's messages (specs/ag-ui.md §1.1): the types that render them and make their schemas.

The members stand in the order in which they are written: that of a stored message is not that of one
that was put together from a run's events, and Parley's own facts have another order in each place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from config.http.documentation.json_types import Count, component, noted
from conversations.events import ToolKind

ActivityContent = Annotated[
    dict[str, Any],
    noted("The content of an activity; `activityType` says of which form it is."),
]
JsonText = Annotated[str, noted("A JSON text.")]
Card = Annotated[Any, component("UiSchema")]
_Latency = Annotated[int | UnsetType, noted("As the tool's runner says it.")]
_Seq = Annotated[Count, noted("The number of the event in the run.")]


class AgUiObject(Struct, rename="camel", forbid_unknown_fields=True):
    """The base of AG-UI's objects: their members and no others, in their order."""


class AgUiFacts(Struct, forbid_unknown_fields=True):
    """The facts of an event or a message for which AG-UI has no member."""


class AgUiEventFacts(AgUiFacts):
    """The facts of an event, and of a message that it made."""

    seq: _Seq
    latency_ms: _Latency = UNSET
    ok: bool | UnsetType = UNSET
    kind: Annotated[ToolKind | UnsetType, noted("Whose the tool is.")] = UNSET
    finish_reason: str | UnsetType = UNSET
    retryable: bool | UnsetType = UNSET
    stage: str | UnsetType = UNSET
    ui_schema: Card = field(default=UNSET, name="uiSchema")


class AgUiDeltaFacts(AgUiFacts, kw_only=True):
    """The facts of a delta."""

    stage: str | UnsetType = UNSET
    seq: _Seq


class AgUiMessageFacts(AgUiFacts):
    """The facts of a stored message."""

    stage: str | UnsetType = UNSET
    latency_ms: _Latency = UNSET
    run_id: str | UnsetType = UNSET
    tool_name: str | UnsetType = UNSET
    contents: list[Annotated[Any, component("MessageContent")]] | UnsetType = UNSET
    artifact_refs: list[str] | UnsetType = UNSET
    ui_schema: Card = field(default=UNSET, name="uiSchema")


class AgUiReasoningFacts(AgUiFacts):
    """The facts of reasoning that was put together from the log."""

    run_id: str
    latency_ms: _Latency = UNSET


class AgUiMetadata(AgUiObject):
    """What Parley adds to AG-UI."""

    parley: AgUiFacts


class AgUiSource(AgUiObject):
    type: Literal["url"]
    value: str
    mime_type: Annotated[str, Meta(min_length=1)]


class AgUiFileName(AgUiObject):
    filename: str


class AgUiTextContent(AgUiObject, tag_field="type", tag="text"):
    text: str


class AgUiImageContent(AgUiObject, tag_field="type", tag="image"):
    source: AgUiSource


class AgUiDocumentContent(AgUiObject, tag_field="type", tag="document"):
    source: AgUiSource
    metadata: AgUiFileName | UnsetType = UNSET


AgUiContent = AgUiTextContent | AgUiImageContent | AgUiDocumentContent


class AgUiFunctionCall(AgUiObject):
    name: str
    arguments: JsonText


class AgUiToolCall(AgUiObject):
    id: str
    type: Literal["function"]
    function: AgUiFunctionCall
    metadata: AgUiMetadata | UnsetType = UNSET


class AgUiMessage(AgUiObject):
    """A message of AG-UI: https://docs.ag-ui.com/concepts/messages."""

    id: str

    @property
    def role(self) -> str:
        """The role, which each kind of message has at its own place."""
        raise NotImplementedError


class StoredMessage(AgUiMessage, kw_only=True):
    """The members that every stored message begins with."""

    role: str
    name: str | UnsetType = UNSET
    encrypted_value: str | UnsetType = UNSET
    metadata: AgUiMetadata | UnsetType = UNSET


class AgUiUserMessage(StoredMessage, kw_only=True):
    role: Literal["user"]
    content: str | list[AgUiContent]


class AgUiSystemMessage(StoredMessage, kw_only=True):
    role: Literal["system", "developer"]
    content: str


class AgUiAssistantMessage(StoredMessage, kw_only=True):
    """An answer, or the calls that were made; streamed calls are such a message too."""

    role: Literal["assistant"]
    content: str | UnsetType = UNSET
    tool_calls: list[AgUiToolCall] | UnsetType = UNSET


class AgUiReasoningMessage(StoredMessage, kw_only=True):
    role: Literal["reasoning"]
    content: str


class AgUiActivityMessage(StoredMessage, kw_only=True):
    role: Literal["activity"]
    activity_type: str
    content: ActivityContent


class AgUiClientToolMessage(StoredMessage, kw_only=True):
    """An answer of a tool of the client's, as the client sent it."""

    role: Literal["tool"]
    content: str | list[AgUiContent]
    tool_call_id: str
    error: str | UnsetType = UNSET


class AgUiToolMessage(StoredMessage, kw_only=True):
    """An answer of one of our tools."""

    role: Literal["tool"]
    tool_call_id: str
    content: JsonText


class AgUiStreamedMessage(AgUiMessage):
    """A text or a stretch of reasoning as its events have made it."""

    role: Literal["assistant", "user", "system", "reasoning"]
    content: str
    metadata: AgUiMetadata | UnsetType = UNSET


class AgUiStreamedToolMessage(AgUiMessage):
    """A tool's answer as its event has made it."""

    tool_call_id: str
    role: Literal["tool"]
    content: JsonText
    metadata: AgUiMetadata | UnsetType = UNSET


ToolMessage = AgUiClientToolMessage | AgUiToolMessage | AgUiStreamedToolMessage
