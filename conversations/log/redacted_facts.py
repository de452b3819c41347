"""Facts of a run, redacted before they are logged, while a redaction hook is installed.

What a hook must see whole may be cut anywhere by a stream. So the words of an answer, and of a model's
thoughts, wait for the end of their line: only whole lines go through the hook and into the log. A line
also ends where the message ends or another kind of fact follows, and after LONGEST_LINE characters, at
a space. What is streamed is what is stored: readers get the log.

A provider's own form of its answer and of its thoughts (raw events, signed blocks) cannot be redacted
without breaking it, so it is not logged.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from conversations import events
from conversations.events import Fact
from conversations.log.redaction_hook import Redact, redact_value

LONGEST_LINE: Final = 16_384
_Key = tuple[type[events.MessageDelta] | type[events.ReasoningDelta], str]
_WORDS: Final = {
    events.StageCompleted: ("summary",),
    events.ToolCallStarted: ("parameters",),
    events.ToolCallCompleted: ("result", "error", "ui_hints", "parameters"),
    events.ArtifactCreated: ("name",),
    events.StateUpdated: ("value",),
    events.ActionRequested: ("target", "payload"),
    events.RunCompleted: ("interrupts", "metadata"),
}
"""The members of each kind of fact that hold what somebody said."""


class FactRedactor:
    """The facts of one run on their way to the log."""

    def __init__(self, redact: Redact) -> None:
        self._hook = redact
        self._held: dict[_Key, str] = {}
        self._has_failed = False

    def feed(self, fact: Fact) -> Iterator[Fact]:
        """Yield what may be logged now, in order. Raise RedactionFailed: then nothing more is logged."""
        if self._has_failed:
            return
        match fact:
            case events.MessageDelta() | events.ReasoningDelta():
                yield from self._flush(of_other_kinds_than=type(fact))
                yield from self._feed_text((type(fact), fact.message_id), fact.text)
            case events.UpstreamRaw():
                pass
            case _:
                yield from self.flush()
                yield self.redact(fact)

    def flush(self) -> Iterator[Fact]:
        """Yield the beginnings of lines that were held back."""
        yield from self._flush(of_other_kinds_than=None)

    def redact(self, fact: Fact) -> Fact:
        """Return a fact other than a delta, redacted."""
        if isinstance(fact, events.MessageCompleted):
            return replace(fact, message=self._redacted_body(fact.message))
        names = _WORDS.get(type(fact), ())
        values = msgspec.to_builtins(fact)
        for name in names:
            if name in values:
                values[name] = redact_value(self._redact, values[name])
        if isinstance(fact, events.ToolCallStarted):
            values.pop("reasoning", None)
        return msgspec.convert(values, type(fact)) if names else fact

    def _redact(self, text: str) -> str:
        try:
            return self._hook(text)
        except BaseException:
            self._has_failed = True
            self._held.clear()
            raise

    def _redacted_body(self, body: events.MessageBody) -> events.MessageBody:
        """Redact the text by lines, as it was streamed, so that the whole is what was streamed."""
        kept: dict[str, Any] = msgspec.to_builtins(body)
        for name in ("metadata", "ui_hints", "contents"):
            if name in kept:
                kept[name] = redact_value(self._redact, kept[name])
        kept["content"] = "".join(self._redact(line) for line in _lines(body.content))
        return msgspec.convert(kept, events.MessageBody)

    def _feed_text(self, key: _Key, text: str) -> Iterator[Fact]:
        held = self._held.get(key, "") + text
        cut = held.rfind("\n") + 1
        if not cut and len(held) > LONGEST_LINE:
            cut = held.rfind(" ") + 1 or len(held)
        self._held[key] = held[cut:]
        if cut:
            yield self._delta(key, held[:cut])

    def _flush(self, *, of_other_kinds_than: type[Fact] | None) -> Iterator[Fact]:
        for key in [key for key in self._held if key[0] is not of_other_kinds_than]:
            if text := self._held.pop(key):
                yield self._delta(key, text)

    def _delta(self, key: _Key, text: str) -> Fact:
        kind, message_id = key
        return kind(message_id, "".join(self._redact(line) for line in _lines(text)))


def _lines(text: str) -> list[str]:
    """Return the lines with their ends; only a line feed ends one, as in `_feed_text`."""
    parts = text.split("\n")
    return [f"{part}\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])
