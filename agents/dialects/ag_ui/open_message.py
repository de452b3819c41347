"""A message or a stretch of reasoning while it is streamed and after; its deltas are the hot path."""

from __future__ import annotations

from typing import Literal

from agents.dialects.wire import Wire, encode_json

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
        shared = kind.encode(), encode_json(wire_id)
        self._head = b'{"type":"%b_CONTENT","messageId":%b,"delta":' % shared
        self._tail = b'{"stage":%b,"seq":' % encode_json(stage) if stage else b'{"seq":'

    def delta(self, text: str, *, at: int, seq: int) -> bytes:
        """Return the event of a delta, put together by hand."""
        self.length += len(text)
        return b'%b%b,"timestamp":%d,"metadata":{"parley":%b%d}}}' % (
            self._head,
            encode_json(text),
            at,
            self._tail,
            seq,
        )

    def start_events(self, role: str) -> list[Wire]:
        """Return the events that open the message."""
        if self.kind == "TEXT_MESSAGE":
            return [{"type": "TEXT_MESSAGE_START", "messageId": self.id, "role": role}]
        return [
            {"type": "REASONING_START", "messageId": self.id},
            {"type": "REASONING_MESSAGE_START", "messageId": self.id, "role": "reasoning"},
        ]
