"""Keep a runner's facts in an order that every reader understands (promises P2, P3).

A runner is foreign code: it may complete a message that it did not stream, stream on after that,
answer a call that it never made. In the log each thing begins before it goes on and is closed
once, and a message's words are those that were streamed or, where its completion `replaces`
them, the completion's; so no dialect has to repair it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from conversations import events
from conversations.events import Fact
from conversations.log.deltas import Deltas


class FactOrdering:
    """One run's facts on their way to the log; `text_of` returns the text of a message so far."""

    __slots__ = ("_answered", "_called", "_stages", "_text_of", "_whole")

    def __init__(self, text_of: Callable[[str], str]) -> None:
        self._text_of = text_of
        # Mostly empty or of one: a set takes three times as much as an empty dictionary or a short list.
        self._whole: dict[str, None] = {}
        self._called: dict[str, events.ToolKind] = {}
        self._answered: dict[str, None] = {}
        self._stages: list[str] = []

    def admit(self, fact: Fact) -> Iterable[Fact]:
        """Return the facts to log for this one: itself after those that must precede it, or none."""
        if type(fact) is events.MessageDelta:  # most facts are, and a pattern costs three times as much
            return (fact,) if fact.text and fact.message_id not in self._whole else ()
        match fact:
            case events.MessageCompleted(body):
                return self._complete(body, replaces=fact.replaces)
            case events.ToolCallStarted(call_id, kind=kind):
                if call_id in self._called:
                    return ()
                self._called[call_id] = kind
            case events.ToolCallCompleted() as completed:
                return self._answer(completed)
            case events.StageStarted(stage):
                if stage in self._stages:
                    return ()
                self._stages.append(stage)
            case events.StageCompleted(stage):
                if stage not in self._stages:
                    return ()
                self._stages.remove(stage)
        return (fact,)

    def takes(self, deltas: Deltas) -> bool:
        """Return whether `admit` would return each of the deltas, and nothing else."""
        if deltas.type is events.MessageDelta:
            return deltas.message_id not in self._whole and all(deltas.texts)
        return True

    def _complete(self, body: events.MessageBody, *, replaces: bool) -> Iterable[Fact]:
        """Log a whole message's words if none were streamed; streamed words win over others, unless
        the runner's contract says that the whole replaces them."""
        if body.role == "reasoning":  # which may have its answer's id, and need not repeat its words
            if f"reasoning:{body.message_id}" not in self._whole:
                self._whole[f"reasoning:{body.message_id}"] = None
                yield events.MessageCompleted(body)
            return
        if body.message_id in self._whole:
            return
        self._whole[body.message_id] = None
        streamed = self._text_of(body.message_id)
        if body.content.startswith(streamed):
            replaces = False
        elif not replaces:
            body = msgspec.structs.replace(body, content=streamed)
        if not replaces and body.role == "assistant" and len(body.content) > len(streamed):
            yield events.MessageDelta(body.message_id, body.content[len(streamed) :])
        yield events.MessageCompleted(body, replaces)

    def _answer(self, completed: events.ToolCallCompleted) -> Iterable[Fact]:
        """Handle an outcome: begin its call first if the runner did not.

        Only the client answers a call of its own tool, in its next run.
        """
        if completed.asked_in:  # its call stands in an earlier run
            yield completed
            return
        call_id = completed.tool_call_id
        if call_id in self._answered or self._called.get(call_id) == "frontend":
            return
        self._answered[call_id] = None
        if call_id not in self._called:
            self._called[call_id] = "function"
            yield events.ToolCallStarted(call_id, completed.tool_name)
        yield completed
