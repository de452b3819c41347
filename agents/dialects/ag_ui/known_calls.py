"""The tool calls of a run, under the ids by which an AG-UI client knows them.

A frontend tool is answered by the client, never by us (specs/ag-ui.md §3.5); a call that an earlier
run made (`asked_in`) is answered under the id that it had there.
"""

from __future__ import annotations

from typing import Final

from msgspec import UNSET

from agents.dialects.ag_ui import outcomes
from agents.dialects.ag_ui.event_types import (
    AgUiInterrupt,
    AgUiToolCallArgs,
    AgUiToolCallEnd,
    AgUiToolCallResult,
    AgUiToolCallStart,
    TimedEvent,
)
from agents.dialects.ag_ui.message_ids import call_id
from agents.dialects.ag_ui.message_types import AgUiMetadata
from agents.dialects.base import id_in_run
from agents.dialects.wire import json_text
from conversations import events, identifiers

_UNANSWERED: Final = events.Problem("interrupted", "The run ended before the tool answered.")


class KnownCalls:
    """The calls of one run: those that were made, and those that were answered."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._made: dict[str, events.ToolCallStarted] = {}
        self._answered: set[tuple[str, str]] = set()

    def start_events(self, started: events.ToolCallStarted, metadata: AgUiMetadata) -> list[TimedEvent]:
        """Return the events of a call; none if it was made before."""
        if started.tool_call_id in self._made:
            return []
        self._made[started.tool_call_id] = started
        wire_id = call_id(started, self._run)
        parent = identifiers.call_message_id(wire_id)
        return [
            AgUiToolCallStart(metadata, wire_id, started.tool_name, parent),
            AgUiToolCallArgs(metadata, wire_id, json_text(started.parameters)),
            AgUiToolCallEnd(metadata, wire_id),
        ]

    def missing_start(self, completed: events.ToolCallCompleted) -> events.ToolCallStarted | None:
        """Return the call that must be made before this outcome, if it is unknown."""
        if completed.asked_in or completed.tool_call_id in self._made:
            return None
        return events.ToolCallStarted(completed.tool_call_id, completed.tool_name)

    def result_event(self, completed: events.ToolCallCompleted) -> AgUiToolCallResult | None:
        """Return the event of an outcome, without facts; None for a second one and a client's tool."""
        own_id, asked_in = completed.tool_call_id, completed.asked_in or ""
        if (asked_in, own_id) in self._answered:
            return None
        if not asked_in and self._made[own_id].kind == "frontend":
            return None
        self._answered.add((asked_in, own_id))
        return AgUiToolCallResult(
            UNSET,
            identifiers.tool_message_id(self._run, own_id, completed.asked_in),
            id_in_run(own_id, asked_in or self._run),
            "tool",
            outcomes.answer_text(completed.result, completed.error, ok=completed.ok),
        )

    def failures_of_open(self) -> list[events.ToolCallCompleted]:
        """Return failures for the calls of our own tools that have no outcome."""
        return [
            events.ToolCallCompleted(call.tool_call_id, call.tool_name, False, 0, None, _UNANSWERED)
            for call in self._waiting()
            if call.kind != "frontend"
        ]

    def pending(self) -> list[str]:
        """Return the wire ids of the calls that the client must answer."""
        return [call_id(call, self._run) for call in self._waiting() if call.kind == "frontend"]

    def use_wire_id(self, interrupt: AgUiInterrupt) -> None:
        """Replace the call's id in an interrupt by the client's id of it."""
        call = self._made.get(interrupt.tool_call_id or "")
        if call is not None:
            interrupt.tool_call_id = call_id(call, self._run)

    def _waiting(self) -> list[events.ToolCallStarted]:
        return [call for own_id, call in self._made.items() if ("", own_id) not in self._answered]
