"""A message or a stretch of reasoning while it is streamed and after; its deltas are the hot path."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET

from agents.dialects.ag_ui.event_types import (
    AgUiReasoningMessageContent,
    AgUiReasoningMessageEnd,
    AgUiReasoningMessageStart,
    AgUiReasoningStart,
    AgUiTextMessageContent,
    AgUiTextMessageEnd,
    AgUiTextMessageStart,
    DeltaEvent,
    TextRole,
    TimedEvent,
)
from agents.dialects.ag_ui.message_types import AgUiDeltaFacts, AgUiMetadata
from agents.dialects.wire import encode_json

Kind = Literal["TEXT_MESSAGE", "REASONING_MESSAGE"]


class StreamedMessage:
    """An encoder's facts of one message; the bytes that all its deltas share are made once."""

    def __init__(self, kind: Kind, wire_id: str, *, stage: str | None, began_at: int) -> None:
        self.kind = kind
        self.id = wire_id
        self.stage = stage
        self.began_at = began_at
        self.open = True
        self.completed = False
        self.length = 0
        content = AgUiTextMessageContent if kind == "TEXT_MESSAGE" else AgUiReasoningMessageContent
        facts = AgUiDeltaFacts(stage=stage or UNSET, seq=0)
        self._template = _template(content(wire_id, "", 0, AgUiMetadata(facts)))

    def delta(self, text: str, *, at: int, seq: int) -> bytes:
        """Return the event of a delta."""
        self.length += len(text)
        return self._template % (encode_json(text), at, seq)

    def start_events(self, role: TextRole, metadata: AgUiMetadata) -> list[TimedEvent]:
        """Return the events that open the message."""
        if self.kind == "TEXT_MESSAGE":
            return [AgUiTextMessageStart(metadata, self.id, role)]
        return [
            AgUiReasoningStart(metadata, self.id),
            AgUiReasoningMessageStart(metadata, self.id, "reasoning"),
        ]

    def end_event(self, metadata: AgUiMetadata) -> TimedEvent:
        """Return the event that closes the message."""
        end = AgUiTextMessageEnd if self.kind == "TEXT_MESSAGE" else AgUiReasoningMessageEnd
        return end(metadata, self.id)


def _template(content: DeltaEvent) -> bytes:
    """Return the bytes of an empty delta with places for the text, the time and the number.

    No text can contain what is replaced, because its quotes would be escaped.
    """
    whole = encode_json(content).replace(b"%", b"%%").removesuffix(b"0}}}") + b"%d}}}"
    return whole.replace(b'"","timestamp":0', b'%b,"timestamp":%d')
