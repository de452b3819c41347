"""AG-UI's events (specs/ag-ui.md §1.2): the types that render them and make their schemas.

The members stand in the order in which they are written. Parley's facts come before an event's own
members, so they have no default: where there are none, UNSET is given. The encoder sets the time.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, UnsetType

from agents.dialects.ag_ui.message_types import (
    ActivityContent,
    AgUiMessage,
    AgUiMetadata,
    AgUiObject,
    Card,
    JsonText,
)
from config.http.documentation.json_types import Count, noted
from conversations.events import ActionRequested, StateUpdated
from conversations.thread_state import Op

TextRole = Literal["assistant", "user", "system"]
State = Annotated[Any, noted("The thread's state, which is the client's: any JSON.")]
_Open = dict[str, Any] | UnsetType
_MILLISECONDS: Final = noted("Milliseconds since 1970.")


class AgUiEvent(AgUiObject, tag_field="type"):
    """An event of AG-UI: https://docs.ag-ui.com/concepts/events."""


class MarkedEvent(AgUiEvent):
    """The base of all events but deltas; those of a thread at rest have neither facts nor a time."""

    metadata: AgUiMetadata | UnsetType


class TimedEvent(MarkedEvent, kw_only=True):
    """The same with the time, which is the last member."""

    timestamp: Annotated[Count | UnsetType, _MILLISECONDS] = UNSET


class DeltaEvent(AgUiEvent):
    """The base of the deltas of text and of reasoning."""

    message_id: str
    delta: str
    timestamp: Annotated[Count, _MILLISECONDS]
    metadata: AgUiMetadata


class AgUiInterrupt(AgUiObject):
    id: str
    reason: str
    message: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    expires_at: str | UnsetType = UNSET
    response_schema: Annotated[_Open, noted("The JSON Schema of the answer.")] = UNSET
    metadata: Annotated[_Open, noted("What else the tool says of its question.")] = UNSET


class AgUiSuccess(AgUiObject, tag_field="type", tag="success"):
    pending_tool_call_ids: list[str] | UnsetType = UNSET


class AgUiInterrupted(AgUiObject, tag_field="type", tag="interrupt"):
    interrupts: list[AgUiInterrupt]


class AgUiCancelled(AgUiObject, tag_field="type", tag="cancelled"):
    pass


AgUiOutcome = AgUiSuccess | AgUiInterrupted | AgUiCancelled


class AgUiTokenUsage(AgUiObject, kw_only=True):
    provider: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    input_tokens: Count
    output_tokens: Count
    total_tokens: Count
    cached_input_tokens: Count | UnsetType = UNSET
    reasoning_tokens: Count | UnsetType = UNSET


class AgUiRunStarted(TimedEvent, tag="RUN_STARTED"):
    thread_id: str
    run_id: str
    protocol_version: Literal["1.0"] | UnsetType = UNSET


class AgUiRunFinished(TimedEvent, tag="RUN_FINISHED"):
    thread_id: str
    run_id: str
    outcome: AgUiOutcome
    usage: list[AgUiTokenUsage] | UnsetType = UNSET


class AgUiRunError(TimedEvent, tag="RUN_ERROR"):
    message: str
    code: str


class AgUiStepStarted(TimedEvent, tag="STEP_STARTED"):
    step_name: str


class AgUiStepFinished(TimedEvent, tag="STEP_FINISHED"):
    step_name: str


class AgUiTextMessageStart(TimedEvent, tag="TEXT_MESSAGE_START"):
    message_id: str
    role: TextRole


class AgUiTextMessageContent(DeltaEvent, tag="TEXT_MESSAGE_CONTENT"):
    pass


class AgUiTextMessageEnd(TimedEvent, tag="TEXT_MESSAGE_END"):
    message_id: str


class AgUiReasoningStart(TimedEvent, tag="REASONING_START"):
    message_id: str


class AgUiReasoningMessageStart(TimedEvent, tag="REASONING_MESSAGE_START"):
    message_id: str
    role: Literal["reasoning"]


class AgUiReasoningMessageContent(DeltaEvent, tag="REASONING_MESSAGE_CONTENT"):
    pass


class AgUiReasoningMessageEnd(TimedEvent, tag="REASONING_MESSAGE_END"):
    message_id: str


class AgUiReasoningEnd(TimedEvent, tag="REASONING_END"):
    message_id: str


class AgUiToolCallStart(TimedEvent, tag="TOOL_CALL_START"):
    tool_call_id: str
    tool_call_name: str
    parent_message_id: str


class AgUiToolCallArgs(TimedEvent, tag="TOOL_CALL_ARGS"):
    tool_call_id: str
    delta: Annotated[str, noted("The arguments, as a JSON text.")]


class AgUiToolCallEnd(TimedEvent, tag="TOOL_CALL_END"):
    tool_call_id: str


class AgUiToolCallResult(TimedEvent, tag="TOOL_CALL_RESULT"):
    message_id: str
    tool_call_id: str
    role: Literal["tool"]
    content: JsonText


class AgUiStatePatch(AgUiObject):
    op: Op
    path: str
    value: State


class AgUiStateSnapshot(TimedEvent, tag="STATE_SNAPSHOT"):
    snapshot: State


class AgUiStateDelta(TimedEvent, tag="STATE_DELTA"):
    delta: list[AgUiStatePatch]


class AgUiMessagesSnapshot(TimedEvent, tag="MESSAGES_SNAPSHOT"):
    messages: list[AgUiMessage]


class AgUiActivitySnapshot(TimedEvent, tag="ACTIVITY_SNAPSHOT"):
    message_id: str
    activity_type: str
    content: ActivityContent


class RestingActivity(AgUiObject, tag_field="type", tag="ACTIVITY_SNAPSHOT"):
    """An `AgUiActivitySnapshot` of a thread at rest, where the facts come last."""

    message_id: str
    activity_type: str
    content: ActivityContent
    metadata: AgUiMetadata | UnsetType = UNSET


class AgUiLeftOut(AgUiObject):
    what: list[str]


class AgUiCard(AgUiObject, kw_only=True):
    message_id: str
    tool_call_id: str | UnsetType = UNSET
    ui_schema: Card


class AgUiLeftOutEvent(TimedEvent, tag="CUSTOM"):
    name: Literal["parley.left_out"]
    value: AgUiLeftOut


class AgUiCardEvent(TimedEvent, tag="CUSTOM"):
    name: Literal["parley.ui_schema"]
    value: AgUiCard


class AgUiStateUpdatedEvent(TimedEvent, tag="CUSTOM"):
    name: Literal["parley.state_updated"]
    value: StateUpdated


class AgUiActionRequestedEvent(TimedEvent, tag="CUSTOM"):
    name: Literal["parley.action_requested"]
    value: ActionRequested
