"""One step of the tool loop: the calls that a model made in one breath, run at the same time.

A client's own tools are not run here: the call is said, the run ends, and the answer comes with the
next run. What a call gave, result or problem, is told to the model in words that it can act on.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Any, Final

import msgspec

from agents.providers.base import ChatMessage, ToolCall
from agents.requests import ToolUse
from agents.runners.base import Host, ToolOutcome
from conversations import events
from conversations.events import Fact

_encode: Final = msgspec.json.Encoder().encode


class Answers:
    """Runs a step's calls and keeps their answers in the order in which they were made."""

    def __init__(self, calls: Sequence[ToolCall], host: Host) -> None:
        self._calls = calls
        self._host = host
        self._answers: dict[str, str] = {}

    async def run(self) -> AsyncGenerator[Fact]:
        """All starts first, then each outcome as it comes."""
        for call in self._calls:
            kind, server = self._host.tool_kind(call.name), self._host.tool_server(call.name)
            yield events.ToolCallStarted(call.id, call.name, arguments_of(call), kind, server)
        tasks = [asyncio.ensure_future(self._run(call)) for call in self._calls]
        try:
            for done in asyncio.as_completed(tasks):
                for fact in await done:
                    yield fact
        finally:
            for task in tasks:
                task.cancel()

    async def _run(self, call: ToolCall) -> Sequence[Fact]:
        use = ToolUse(call.name, arguments_of(call))
        outcome = await self._host.call_granted(use, call_id=call.id)
        self._answers[call.id] = told(outcome)
        return outcome_facts(call.id, outcome)

    def messages(self) -> Iterable[ChatMessage]:
        """The answers for the model."""
        for call in self._calls:
            yield ChatMessage("tool", self._answers[call.id], tool_call_id=call.id)


def outcome_facts(call_id: str, outcome: ToolOutcome) -> Sequence[Fact]:
    """An outcome, after the artifact that holds what is too large for it."""
    said = completed(call_id, outcome)
    return (said,) if outcome.artifact is None else (outcome.artifact, said)


def completed(call_id: str, outcome: ToolOutcome) -> events.ToolCallCompleted:
    """The fact of an outcome."""
    return events.ToolCallCompleted(
        call_id,
        outcome.use.name,
        outcome.problem is None,
        outcome.elapsed_ms,
        outcome.result,
        outcome.problem,
    )


def told(outcome: ToolOutcome) -> str:
    """An outcome in words for the model."""
    if outcome.problem is not None:
        said = {"error": {"code": outcome.problem.code, "message": outcome.problem.message}}
        return _encode(said).decode()
    return _encode(outcome.result or {}).decode()


def arguments_of(call: ToolCall) -> dict[str, Any]:
    """The arguments as an object; what is none is kept as text under `arguments`."""
    try:
        found = msgspec.json.decode(call.arguments or "{}")
    except (msgspec.DecodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"arguments": call.arguments}
