"""The tool calls of a run, under the ids by which an AG-UI client knows them.

A frontend tool is answered by the client, never by us (specs/ag-ui.md §3.5); a call that an earlier
run made (`asked_in`) is answered under the id that it had there.
"""

from __future__ import annotations

from typing import Final

from agents.dialects.ag_ui import outcomes
from agents.dialects.ag_ui.message_ids import call_id
from agents.dialects.base import id_in_run
from agents.dialects.wire import Wire, json_text
from conversations import events

_UNANSWERED: Final = events.Problem("interrupted", "The run ended before the tool answered.")


class KnownCalls:
    """The calls of one run: those that were made, and those that were answered."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._made: dict[str, events.ToolCallStarted] = {}
        self._answered: set[tuple[str, str]] = set()

    def start_events(self, started: events.ToolCallStarted) -> list[Wire]:
        """Return the events of a call; none if it was made before."""
        if started.tool_call_id in self._made:
            return []
        self._made[started.tool_call_id] = started
        wire_id = call_id(started, self._run)
        parent = events.call_message_id(wire_id)
        named = {"toolCallName": started.tool_name, "parentMessageId": parent}
        arguments = json_text(started.parameters)
        return [
            {"type": "TOOL_CALL_START", "toolCallId": wire_id} | named,
            {"type": "TOOL_CALL_ARGS", "toolCallId": wire_id, "delta": arguments},
            {"type": "TOOL_CALL_END", "toolCallId": wire_id},
        ]

    def missing_start(self, completed: events.ToolCallCompleted) -> events.ToolCallStarted | None:
        """Return the call that must be made before this outcome, if it is unknown."""
        if completed.asked_in or completed.tool_call_id in self._made:
            return None
        return events.ToolCallStarted(completed.tool_call_id, completed.tool_name)

    def result_event(self, completed: events.ToolCallCompleted) -> Wire | None:
        """Return the event of an outcome; None for a second one, and for a tool of the client's."""
        own_id, asked_in = completed.tool_call_id, completed.asked_in or ""
        if (asked_in, own_id) in self._answered:
            return None
        if not asked_in and self._made[own_id].kind == "frontend":
            return None
        self._answered.add((asked_in, own_id))
        return {
            "type": "TOOL_CALL_RESULT",
            "messageId": events.tool_message_id(self._run, own_id, completed.asked_in),
            "toolCallId": id_in_run(own_id, asked_in or self._run),
            "role": "tool",
            "content": outcomes.answer_text(completed.result, completed.error, ok=completed.ok),
        }

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

    def use_wire_id(self, interrupt: Wire) -> None:
        """Replace the call's id in an interrupt by the client's id of it."""
        call = self._made.get(interrupt.get("toolCallId", ""))
        if call is not None:
            interrupt["toolCallId"] = call_id(call, self._run)

    def _waiting(self) -> list[events.ToolCallStarted]:
        return [call for own_id, call in self._made.items() if ("", own_id) not in self._answered]
