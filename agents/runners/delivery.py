"""Delivery of a run's facts, by the requested result mode (specs/text-run.md §1, §2, §5).

It is between runner and log, so every dialect, the history and a replay read the same. The mode of an
`auto` run is decided by its first text or raw pieces, and neither is delivered before; therefore the
log shows the decision too: it is the run's first `message.delta` or `upstream.raw`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from agents.providers.base import ENVELOPE
from agents.requests import ResultMode
from agents.runners.thinkingml import Repair, validate_thinkingml
from conversations import events
from conversations.events import Fact, MessageBody, MessageDelta, Terminal, UpstreamRaw
from conversations.log.growing_text import GrowingText

RAW_FRAMES: Final = 4
RAW_CHARACTERS: Final = 4_096
MOST_RAW_PIECES: Final = 64


class Delivery:
    """One run's facts on their way to the log: in `raw_passthrough` each of the runner's, unchanged."""

    def take(self, fact: Fact) -> Iterable[Fact]:
        """Return the facts to log now, after this fact of the runner."""
        return (fact,)

    def end(self, terminal: Terminal) -> tuple[Sequence[Fact], Terminal]:
        """Return the facts still to be logged, however the run ended, and its ending."""
        return (), terminal


RawDelivery = Delivery  # its name until 2026-11: runners of others may import it


def delivery_for(mode: ResultMode | None) -> Delivery:
    """Return the delivery of a run in this mode; a dialect without modes has None."""
    match mode:
        case "xml_plaintext":
            return RepairedDelivery()
        case "auto":
            return AutoDelivery()
    return Delivery()


class RepairedDelivery(Delivery):
    """`xml_plaintext`: each message is ThinkingML, repaired while it streams.

    The ending of a run that completes contains `thinkingml`: "ok", or the validator's finding in the
    model's text (which the repair has corrected).
    """

    def __init__(self) -> None:
        self._message = _Message("")
        self._verdict: str | None = None
        self._any = False

    def take(self, fact: Fact) -> Iterable[Fact]:
        match fact:
            case MessageDelta(message_id, text):
                return self._say(message_id, text)
            case events.MessageCompleted(body) if body.role == "assistant" and fact.replaces:
                return self._replace(body)
            case events.MessageCompleted(body) if body.role == "assistant":
                return self._complete(body)
            case UpstreamRaw():
                return ()
        return (fact,)

    def end(self, terminal: Terminal) -> tuple[Sequence[Fact], Terminal]:
        last = self._close()
        if isinstance(terminal, events.RunCompleted):
            verdict = (self._verdict or "ok") if self._any else "empty_reply"
            metadata = terminal.metadata | {"thinkingml": verdict}
            terminal = msgspec.structs.replace(terminal, metadata=metadata)
        return last, terminal

    def _say(self, message_id: str, text: str) -> Iterable[Fact]:
        if message_id == self._message.id:
            return self._message.add(text)
        closed = self._close()
        self._message = _Message(message_id)
        return (*closed, *self._message.add(text))

    def _complete(self, body: MessageBody) -> Iterable[Fact]:
        """Return a whole message; its text is delivered as deltas too if it has not been."""
        deltas = () if body.message_id == self._message.id else self._say(body.message_id, body.content)
        message, rest = self._message, self._close()
        whole = msgspec.structs.replace(body, content=str(message.delivered))
        return (*deltas, *rest, events.MessageCompleted(whole))

    def _replace(self, body: MessageBody) -> Iterable[Fact]:
        """Return a message that replaces the streamed one, repaired as a whole."""
        final = self._message = _Message(body.message_id)
        final.add(body.content)
        self._close()
        whole = msgspec.structs.replace(body, content=str(final.delivered))
        return (events.MessageCompleted(whole, replaces=True),)

    def _close(self) -> Sequence[Fact]:
        message, self._message = self._message, _Message("")
        if message.original:
            self._any = True
            self._verdict = self._verdict or validate_thinkingml(str(message.original))
        return message.finish()


class _Message:
    """One message on its way through the repair."""

    def __init__(self, message_id: str) -> None:
        self.id = message_id
        self.original = GrowingText()
        self.delivered = GrowingText()
        self._repair = Repair()

    def add(self, text: str) -> Sequence[Fact]:
        self.original.add(text)
        return self._deliver(self._repair.feed(text))

    def finish(self) -> Sequence[Fact]:
        return self._deliver(self._repair.finish()) if self.original else ()

    def _deliver(self, text: str) -> Sequence[Fact]:
        if not text:
            return ()
        self.delivered.add(text)
        return (MessageDelta(self.id, text),)


class AutoDelivery(Delivery):
    """`auto`: the first text makes it `xml_plaintext`, raw pieces without any `raw_passthrough`."""

    def __init__(self) -> None:
        self._decision: Delivery | None = None
        self._raw: list[UpstreamRaw] = []

    def take(self, fact: Fact) -> Iterable[Fact]:
        if self._decision is not None:
            return self._decision.take(fact)
        match fact:
            case MessageDelta(_, text) if text:
                return self._decide(RepairedDelivery()).take(fact)
            case events.MessageCompleted(body) if body.role == "assistant" and (
                body.content or body.contents
            ):
                return self._decide(RepairedDelivery()).take(fact)
            case MessageDelta() | events.MessageCompleted():
                return ()
            case UpstreamRaw():
                self._raw.append(fact)
                return self._flush() if self._is_enough() else ()
            case events.ModelRouted():
                self._raw.clear()  # pieces of an endpoint that then failed
        return (fact,)

    def end(self, terminal: Terminal) -> tuple[Sequence[Fact], Terminal]:
        if self._decision is None:
            return self._flush(), terminal
        return self._decision.end(terminal)

    def _decide(self, decision: Delivery) -> Delivery:
        self._decision = decision
        return decision

    def _is_enough(self) -> bool:
        """Return whether there are enough raw pieces without announcements, or too many with them."""
        telling = [piece for piece in self._raw if piece.upstream_event not in ENVELOPE]
        size = sum(len(piece.raw) for piece in telling)
        return len(telling) >= RAW_FRAMES or size >= RAW_CHARACTERS or len(self._raw) >= MOST_RAW_PIECES

    def _flush(self) -> Sequence[Fact]:
        self._decide(Delivery())
        flushed, self._raw = tuple(self._raw), []
        return flushed
