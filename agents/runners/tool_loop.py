"""One step of the tool loop: the calls of one answer of the model, run at the same time.

A client's own tools are not run here: the call is an event, the run ends, and the answer comes with the
next run. The model receives each outcome, result or problem, in words that it can act on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, Final

import msgspec

from agents.providers.base import ChatMessage, ToolCall
from agents.providers.decoding import parse_object
from agents.requests import ToolUse
from agents.runners.base import Host, ToolOutcome
from conversations import events
from conversations.events import Fact

_encode: Final = msgspec.json.Encoder().encode


class StepCalls:
    """The calls of one step, run at the same time; it keeps their answers in the order of the calls."""

    def __init__(self, calls: Sequence[ToolCall], host: Host) -> None:
        self._calls = calls
        self._host = host
        self._answers: dict[str, str] = {}

    async def run(self) -> AsyncGenerator[Fact]:
        """Yield all starts first, then each outcome as it comes."""
        for call in self._calls:
            kind, server = self._host.tool_kind(call.name), self._host.tool_server(call.name)
            yield events.ToolCallStarted(call.id, call.name, parse_call_arguments(call), kind, server)
        tasks = [asyncio.ensure_future(self._run(call)) for call in self._calls]
        try:
            for done in asyncio.as_completed(tasks):
                for fact in await done:
                    yield fact
        finally:
            for task in tasks:
                task.cancel()

    async def _run(self, call: ToolCall) -> Sequence[Fact]:
        use = ToolUse(call.name, parse_call_arguments(call))
        outcome = await self._host.call_granted(use, call_id=call.id)
        self._answers[call.id] = outcome_text(outcome)
        return outcome_facts(call.id, outcome)

    def messages(self) -> Iterable[ChatMessage]:
        """Yield the answers for the model."""
        for call in self._calls:
            yield ChatMessage("tool", self._answers[call.id], tool_call_id=call.id)


def parse_call_arguments(call: ToolCall) -> dict[str, Any]:
    """Return the arguments as an object; any other value becomes text under `arguments`."""
    return parse_object(call.arguments)


def outcome_facts(call_id: str, outcome: ToolOutcome) -> Sequence[Fact]:
    """Return the facts of an outcome, after the artifact that holds what is too large for it."""
    fact = completion_fact(call_id, outcome)
    return (fact,) if outcome.artifact is None else (outcome.artifact, fact)


def completion_fact(call_id: str, outcome: ToolOutcome) -> events.ToolCallCompleted:
    """Return the fact of an outcome."""
    return events.ToolCallCompleted(
        call_id,
        outcome.use.name,
        outcome.problem is None,
        outcome.elapsed_ms,
        outcome.result,
        outcome.problem,
    )


def outcome_text(outcome: ToolOutcome) -> str:
    """Return an outcome in words for the model."""
    said = {"error": outcome.problem} if outcome.problem else outcome.result or {}
    return _encode(said).decode()
