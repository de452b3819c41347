"""The common part of the encoders of wires of items, whose frames are numbered from 0."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

from agents.dialects.base import Encoder, Frame, RunHead
from agents.dialects.step_order import StepOrder
from agents.dialects.steps import Item, Step
from conversations.events import MessageDelta, RunEvent


class ItemEncoder(Encoder):
    """One reader's view of one run; every frame has its number as its id.

    `_output` holds each finished item as its bytes, and b"" for each that has begun.
    """

    def __init__(self, head: RunHead) -> None:
        self._head = head
        self._order = StepOrder(head.run_id.hex)
        self._number = 0
        self._frames: list[Frame] = []
        self._output: list[bytes] = []
        self._status = "queued"
        self._at = 0
        self._response = b""

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """Return the frames of the next event; none after the last."""
        fact = event.fact
        if type(fact) is MessageDelta:
            item = self._order.open_message(fact.message_id)
            if item is not None:
                item.add(fact.text)
                return (self._delta(item, fact.text),) if fact.text else ()
        self._at = event.at
        for step in self._order.take(fact):
            self._render(step)
        frames, self._frames = self._frames, []
        return frames

    @abstractmethod
    def _delta(self, item: Item, text: str) -> Frame:
        """Return the next frame, a delta, put together by hand: most frames are deltas."""

    @abstractmethod
    def _render(self, step: Step) -> None:
        """Send the frames of a step."""

    def _put(self, data: bytes, name: str = "") -> bytes:
        """Send a frame under the next number; return its data."""
        self._frames.append(Frame(name, data, self._number))
        self._number += 1
        return data
