"""The messages of a run as an AG-UI client has them after the events so far.

It does the same as `defaultApplyEvents` of `@ag-ui/client` with the same events, so that a client
which lost its connection can get them as snapshots (specs/ag-ui.md, "Resume without any change to
the client"). The tests compare it with the real client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from agents.dialects.ag_ui.event_types import (
    AgUiActivitySnapshot,
    AgUiReasoningMessageEnd,
    AgUiReasoningMessageStart,
    AgUiTextMessageEnd,
    AgUiTextMessageStart,
    AgUiToolCallArgs,
    AgUiToolCallEnd,
    AgUiToolCallResult,
    AgUiToolCallStart,
    TimedEvent,
)
from agents.dialects.ag_ui.message_types import (
    AgUiActivityMessage,
    AgUiAssistantMessage,
    AgUiFunctionCall,
    AgUiMessage,
    AgUiStreamedMessage,
    AgUiStreamedToolMessage,
    AgUiToolCall,
    ToolMessage,
)


class Fold:
    """A fold of the run's own wire events, one by one; its texts come by `add_text`."""

    def __init__(self) -> None:
        self._messages: list[AgUiMessage] = []
        self._texts: dict[str, AgUiStreamedMessage] = {}
        self._chunks: dict[str, list[str]] = {}
        self._calls: dict[str, AgUiToolCall] = {}
        self._activities: dict[str, AgUiActivityMessage] = {}
        self._strays: dict[str, AgUiStreamedToolMessage] = {}

    def after(self, before: Iterable[AgUiMessage]) -> list[AgUiMessage]:
        """Return these messages and the run's, in the client's order.

        The answer to a call of an earlier run is after the message of that call.
        """
        whole = list(before)
        for message in self.messages:
            stray = self._strays.get(message.id)
            if stray is not None:
                put_beside_call(whole, stray)
            else:
                whole.append(message)
        return whole

    @property
    def messages(self) -> list[AgUiMessage]:
        """The messages in the client's order; activities are where the client has them."""
        for message_id, chunks in self._chunks.items():
            self._texts[message_id].content += "".join(chunks)
            chunks.clear()
        return self._messages

    def feed(self, event: TimedEvent) -> None:
        """Take the next event; events that do not change messages or state are ignored."""
        apply = _APPLY.get(type(event))
        if apply is not None:
            apply(self, event)

    def add_text(self, message_id: str, text: str) -> None:
        """Add text to a message that has been started."""
        self._chunks[message_id].append(text)

    def start(self, event: AgUiTextMessageStart | AgUiReasoningMessageStart) -> None:
        message = self._texts.get(event.message_id)
        if message is None:
            message = AgUiStreamedMessage(event.message_id, event.role, "")
            self._messages.append(message)
            self._texts[message.id], self._chunks[message.id] = message, []
        message.metadata = event.metadata

    def end(self, event: AgUiTextMessageEnd | AgUiReasoningMessageEnd) -> None:
        self._texts[event.message_id].metadata = event.metadata

    def start_call(self, event: AgUiToolCallStart) -> None:
        called = AgUiFunctionCall(event.tool_call_name, "")
        call = AgUiToolCall(event.tool_call_id, "function", called, event.metadata)
        self._calls[call.id] = call
        self._messages.append(
            AgUiAssistantMessage(event.parent_message_id, role="assistant", tool_calls=[call])
        )

    def call_arguments(self, event: AgUiToolCallArgs) -> None:
        self._calls[event.tool_call_id].function.arguments += event.delta

    def end_call(self, event: AgUiToolCallEnd) -> None:
        self._calls[event.tool_call_id].metadata = event.metadata

    def result(self, event: AgUiToolCallResult) -> None:
        """Insert the answer after the message with its call, whatever came between."""
        call_id, metadata = event.tool_call_id, event.metadata
        message = AgUiStreamedToolMessage(event.message_id, call_id, "tool", event.content, metadata)
        if call_id in self._calls:
            put_beside_call(self._messages, message)
        else:
            self._strays[message.id] = message
            self._messages.append(message)

    def activity(self, event: AgUiActivitySnapshot) -> None:
        known = self._activities.get(event.message_id)
        if known is None:
            known = self._activities[event.message_id] = AgUiActivityMessage(
                event.message_id,
                role="activity",
                activity_type=event.activity_type,
                content=event.content,
            )
            self._messages.append(known)
        known.activity_type, known.content = event.activity_type, event.content
        known.metadata = event.metadata


def put_beside_call(messages: list[AgUiMessage], answer: ToolMessage) -> None:
    """Insert a tool's answer after the message with its call, and after the answers there already."""
    place = next(
        (place for place, message in enumerate(messages, 1) if _holds(message, answer.tool_call_id)),
        len(messages),
    )
    while place < len(messages) and messages[place].role == "tool":
        place += 1
    messages.insert(place, answer)


def _holds(message: AgUiMessage, call_id: str) -> bool:
    calls = message.tool_calls if isinstance(message, AgUiAssistantMessage) else ()
    return any(call.id == call_id for call in calls or ())


_APPLY: Final[dict[type, Callable[[Fold, Any], None]]] = {
    AgUiTextMessageStart: Fold.start,
    AgUiTextMessageEnd: Fold.end,
    AgUiReasoningMessageStart: Fold.start,
    AgUiReasoningMessageEnd: Fold.end,
    AgUiToolCallStart: Fold.start_call,
    AgUiToolCallArgs: Fold.call_arguments,
    AgUiToolCallEnd: Fold.end_call,
    AgUiToolCallResult: Fold.result,
    AgUiActivitySnapshot: Fold.activity,
}
