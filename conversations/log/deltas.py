"""Deltas that arrived together: as many events, handled in one go."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from conversations.events import MessageDelta, ReasoningDelta, RunEvent

DeltaType = type[MessageDelta] | type[ReasoningDelta]


class Deltas(Struct, frozen=True):
    """Pieces of one message's text, or of its reasoning; `text` is all of them."""

    type: DeltaType
    message_id: str
    texts: Sequence[str]
    text: str

    @classmethod
    def of(cls, type_: DeltaType, message_id: str, texts: Sequence[str]) -> Deltas:
        """Return these pieces, in their order."""
        return cls(type_, message_id, texts, "".join(texts))

    def each(self) -> Iterator[MessageDelta | ReasoningDelta]:
        """Yield the delta of each piece."""
        for text in self.texts:
            yield self.type(self.message_id, text)

    def numbered(self, first_seq: int, at: int) -> list[RunEvent]:
        """Return the event of each piece, all of one moment."""
        kind, message_id = self.type, self.message_id
        return [
            RunEvent(seq, at, kind(message_id, text)) for seq, text in enumerate(self.texts, first_seq)
        ]
