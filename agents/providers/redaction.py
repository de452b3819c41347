"""Redact the key that was sent to a provider wherever the provider repeats it.

A provider, or a proxy before it, may echo the request's headers; its data reaches users, logs and the
history. A streamed echo comes in pieces, so text that may be the key's beginning waits for the next
piece: at most two characters of the key are shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

import msgspec

from agents.providers.base import ModelEvent, ReasoningText, TextDelta

SHORTEST: Final = 6
"""The length below which a key is not real, and may well be a word of the text."""
_START: Final = 3
_MASK: Final = "***"
_TEXTS: Final = (TextDelta, ReasoningText)
Event = TypeVar("Event", bound=ModelEvent)


def without_key(body: bytes, key: str) -> bytes:
    """Return the body with each occurrence of the key masked."""
    return body.replace(key.encode(), _MASK.encode()) if len(key) >= SHORTEST else body


class Redactor:
    """The redaction of one answer's events, in their order."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._start = key[:_START]
        self._applies = len(key) >= SHORTEST
        self._kind: type[TextDelta | ReasoningText] = TextDelta
        self._tail = ""  # the last two characters shown, then the text held back
        self._withheld = 0

    def redact(self, events: Sequence[ModelEvent]) -> Sequence[ModelEvent]:
        """Return what can be shown now, with these events, of the answer so far."""
        if not self._applies:
            return events
        texts = [event.text for event in events if isinstance(event, self._kind)]
        if len(texts) == len(events):  # mostly; then one look is enough for all of them
            text = self._tail + "".join(texts)
            if self._start not in text:
                self._tail = text[1 - _START :]
                return events
        return [shown for event in events for shown in self._redact(event)]

    def _redact(self, event: ModelEvent) -> Sequence[ModelEvent]:
        if not isinstance(event, _TEXTS):
            return (self.redact_whole(event),)
        if type(event) is self._kind:
            return self._piece(event)
        before = self.flush()
        self._kind = type(event)
        return (*before, *self._piece(event))

    def redact_whole(self, event: Event) -> Event:
        """Return the event without the key in any of its texts."""
        if not self._applies:
            return event
        written, key = msgspec.json.encode(event), msgspec.json.encode(self._key)[1:-1]
        if key not in written:
            return event
        return msgspec.json.decode(written.replace(key, _MASK.encode()), type=type(event))

    def flush(self) -> Sequence[ModelEvent]:
        """Return the text still held back, at the end of a text; masked if half of the key or more."""
        tail = self._tail[len(self._tail) - self._withheld :]
        self._tail, self._withheld = "", 0
        return (self._kind(_MASK if 2 * len(tail) >= len(self._key) else tail),) if tail else ()

    def _piece(self, event: TextDelta | ReasoningText) -> Sequence[ModelEvent]:
        text = self._tail + event.text
        if self._start not in text:
            self._tail = text[1 - _START :]
            return (event,)
        shown = self._masked(text, start=len(self._tail) - self._withheld)
        return (self._kind(shown),) if shown else ()

    def _masked(self, text: str, *, start: int) -> str:
        """Return the text from `start` on that can be shown; text before it is shown already."""
        found = text.find(self._key)
        start = start if found < 0 else min(start, found)
        text = text.replace(self._key, _MASK)
        end = max(start, len(text) - _overlap(text, self._key))
        self._withheld = len(text) - end
        self._tail = text[max(0, end - _START + 1) :]
        return text[start:end]


def _overlap(text: str, key: str) -> int:
    """Return how many characters at the text's end may begin the key; 0 if fewer than `_START`."""
    sizes = range(min(len(key) - 1, len(text)), _START - 1, -1)
    return next((size for size in sizes if text.endswith(key[:size])), 0)
