"""Cards that a model shows by `parley.show`: each becomes the `ui_hints` of a message of its answer.

The tool is never run, and its call is no event unless it is to be visible.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

from agents.providers.base import ChatMessage, ToolCall, ToolSpec
from agents.providers.decoding import parse_object
from agents.requests import ToolUse
from agents.runners.base import ToolOutcome
from agents.runners.tool_loop import completion_fact, outcome_text
from conversations import events
from conversations.cards.model_hints import SHOW, describe_card, find_fault
from conversations.events import Fact, MessageBody, Problem


class Cards:
    """The cards of one run: those that wait for a message, and the answers to the calls."""

    def __init__(self, *, visible: bool) -> None:
        self._visible = visible
        self._waiting: list[dict[str, Any]] = []

    @staticmethod
    def split_calls(
        calls: Sequence[ToolCall], offered: Sequence[ToolSpec], clients: Container[str]
    ) -> tuple[list[ToolCall], list[ToolCall]]:
        """Return the calls that show a card, and the others; a client's own tool may have its name."""
        ours = SHOW not in clients and any(tool.name == SHOW for tool in offered)
        shows = [call for call in calls if ours and call.name == SHOW]
        return shows, [call for call in calls if not ours or call.name != SHOW]

    def take(self, calls: Sequence[ToolCall]) -> tuple[list[Fact], list[ChatMessage]]:
        """Take the calls' cards; return the facts to log and the answers for the model."""
        outcomes = [(call, self._outcome(call)) for call in calls]
        facts = [fact for call, outcome in outcomes for fact in self._facts(call, outcome)]
        answers = [
            ChatMessage("tool", outcome_text(outcome), tool_call_id=call.id)
            for call, outcome in outcomes
        ]
        return facts, answers

    def message_with_card(self, message_id: str, text: str) -> Iterator[Fact]:
        """Yield the model's message before its next step, with the first card that waits.

        If the message is empty, the cards wait for the next one.
        """
        if text:
            hints = self._waiting.pop(0) if self._waiting else None
            yield events.MessageCompleted(MessageBody(message_id, "assistant", text, ui_hints=hints))

    def last_messages(self, message_id: str, text: str) -> Iterator[Fact]:
        """Yield the last message, if a card waits for it; each further card is a message of its own."""
        if self._waiting and text:
            yield from self.message_with_card(message_id, text)
            message_id = f"{message_id}-card"
        for number, hints in enumerate(self._waiting, 1):
            own_id = message_id if number == 1 else f"{message_id}-{number}"
            text = describe_card(hints)
            yield events.MessageDelta(own_id, text)
            yield events.MessageCompleted(MessageBody(own_id, "assistant", text, ui_hints=hints))
        self._waiting.clear()

    def _outcome(self, call: ToolCall) -> ToolOutcome:
        use = ToolUse(SHOW, parse_object(call.arguments))
        if fault := find_fault(use.arguments):
            return ToolOutcome(use, 0, None, Problem("invalid_arguments", fault))
        self._waiting.append(use.arguments)
        return ToolOutcome(use, 0, {"shown": True})

    def _facts(self, call: ToolCall, outcome: ToolOutcome) -> Iterable[Fact]:
        if not self._visible:
            return ()
        use = outcome.use
        started = events.ToolCallStarted(call.id, use.name, use.arguments, "component")
        return (started, completion_fact(call.id, outcome))
