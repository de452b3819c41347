"""Canonical events as AG-UI's (specs/ag-ui.md §1.2), in the order that its clients require (§3.2).

A client ends the whole run with an error at the first event out of order, so every event here has its
beginning sent before it: an unknown call is begun before it is answered, closed messages stay closed,
open ones are closed at the end, and after the end nothing is sent.

`feed` returns frames for a reader. An encoder with `silent=True` first only takes in the events that a
client has missed; `prelude` then returns them as snapshots, and it goes on as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from agents.dialects.ag_ui import message_ids, outcomes
from agents.dialects.ag_ui.known_calls import KnownCalls
from agents.dialects.ag_ui.message_fold import Fold
from agents.dialects.ag_ui.open_message import Kind, StreamedMessage
from agents.dialects.ag_ui.snapshots import snapshots
from agents.dialects.ag_ui.state_patches import SharedState
from agents.dialects.artifact_links import file_facts
from agents.dialects.base import Encoder, Frame, RunHead, id_in_run
from agents.dialects.wire import Wire, encode_json
from conversations import events
from conversations.cards.card_compiler import compile_ui_schema
from conversations.events import RunEvent

_TEXT_ROLES: Final = frozenset({"assistant", "user", "system"})


class AgUiEncoder(Encoder):
    """One reader's view of one run, in the generation of its client's protocol."""

    def __init__(self, head: RunHead, *, silent: bool = False) -> None:
        self._head = head
        self._run = head.run_id.hex
        self._modern = bool(head.wire.get("protocolVersion"))
        self._fold = Fold() if silent else None
        self._last: RunEvent | None = None
        self._out: list[bytes] = []
        self._event: RunEvent
        self._begun = self._ended = False
        self._messages: dict[str, StreamedMessage] = {}
        self._reasoned: dict[str, StreamedMessage] = {}
        self._reasoning: StreamedMessage | None = None
        self._calls = KnownCalls(self._run)
        self._stages: dict[str, int] = {}
        self._state = SharedState()
        self._routed: events.ModelRouted | None = None

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """Return the frames of the next event; none after the last."""
        fact = event.fact
        if type(fact) is events.MessageDelta:
            message = self._messages.get(fact.message_id)
            if message is not None and message.open and self._reasoning is None and self._fold is None:
                return self._delta(message, fact.text, event)
        if self._ended:
            return ()
        if self._fold is not None and isinstance(fact, events.TERMINAL):
            self._last = event
            return ()
        self._event = event
        self._begin()
        self._take(event)
        return self._frames()

    def prelude(
        self, before: Sequence[Wire], *, known: Iterable[str] = (), state: Any = None
    ) -> list[Frame]:
        """Return the first frames for a client that comes back: all it may have missed, as snapshots.

        `before` are the thread's messages up to this run's own input, in AG-UI's shape; `known` the ids
        of the messages that the client has, in its order; `state` the thread's state before the run.
        """
        fold, self._fold = self._fold, None
        assert fold is not None, "only a silent encoder has a prelude"
        if not self._begun:
            return self._tail()
        self._emit(self._started())
        for event in snapshots(fold.after(before), list(known)):
            self._emit(event)
        if self._state.changed or state:
            shared = self._state.value if self._state.changed else state
            self._emit({"type": "STATE_SNAPSHOT", "snapshot": shared})
        for stage in self._stages:
            self._emit({"type": "STEP_STARTED", "stepName": stage})
        for message in (*self._reasoned.values(), *self._messages.values()):
            if message.open:
                self._start(message)
        return [*self._frames(), *self._tail()]

    def _tail(self) -> list[Frame]:
        """Return the frames of the last event, if it came while nothing was sent."""
        return [*self.feed(self._last)] if self._last is not None else []

    # the meaning of each fact

    def _take(self, event: RunEvent) -> None:
        match event.fact:
            case events.MessageDelta(message_id, text):
                self._say(self._message(message_id), text)
            case events.ReasoningDelta(message_id, text):
                self._say(self._reason(message_id), text)
            case events.MessageCompleted(body):
                self._complete(body, replaces=event.fact.replaces)
            case events.ToolCallStarted() as started:
                self._call(started)
            case events.ToolCallCompleted() as completed:
                self._answer(completed)
            case events.StageStarted(stage):
                self._enter(stage)
            case events.StageCompleted(stage, latency_ms):
                self._leave(stage, latency_ms)
            case events.StateUpdated() as updated:
                self._update(updated)
            case events.ArtifactCreated() as artifact:
                self._show(artifact)
            case events.ActionRequested() as request:
                self._custom("parley.action_requested", msgspec.to_builtins(request))
            case events.ModelRouted() as routed:
                self._routed = routed
            case events.RunCompleted() | events.RunFailed() as terminal:
                self._end(terminal)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._emit(self._started())
            if left_out := self._head.wire.get("leftOut"):
                self._custom("parley.left_out", {"what": left_out})

    def _started(self) -> Wire:
        version = {"protocolVersion": "1.0"} if self._modern else {}
        return {"type": "RUN_STARTED"} | message_ids.run_ids(self._head) | version

    # text and reasoning

    def _message(self, message_id: str, role: str = "assistant") -> StreamedMessage:
        self._stop_reasoning()
        message = self._messages.get(message_id)
        if message is None:
            wire_id = id_in_run(message_id, self._run)
            message = self._messages[message_id] = self._begin_saying("TEXT_MESSAGE", wire_id)
            self._start(message, role)
        return message

    def _reason(self, message_id: str) -> StreamedMessage:
        message = self._reasoned.get(message_id)
        if message is not None and message.open:
            return message
        self._stop_reasoning()
        if message is None:
            wire_id = message_ids.reasoning_id(message_id, self._run)
            message = self._reasoned[message_id] = self._begin_saying("REASONING_MESSAGE", wire_id)
        elif message.completed:
            return message
        message.open = True
        self._start(message)
        return message

    def _begin_saying(self, kind: Kind, wire_id: str) -> StreamedMessage:
        stage = next(reversed(self._stages), None)
        began_at = self._event.at if stage is None else self._stages[stage]
        return StreamedMessage(kind, wire_id, stage=stage, began_at=began_at)

    def _start(self, message: StreamedMessage, role: str = "assistant") -> None:
        if message.kind == "REASONING_MESSAGE":
            self._reasoning = message
        for event in message.start_events(role):
            self._emit(event, message.stage)

    def _say(self, message: StreamedMessage, text: str) -> None:
        if not message.open or not text:
            return
        if self._fold is not None:
            message.length += len(text)
            self._fold.add_text(message.id, text)
        else:
            self._out.append(self._delta(message, text, self._event)[0].data)

    def _delta(self, message: StreamedMessage, text: str, event: RunEvent) -> Sequence[Frame]:
        """Return a delta, on the hot path: most frames are deltas."""
        if not text:
            return ()
        return (Frame("", message.delta(text, at=event.at, seq=event.seq), event.seq),)

    def _complete(self, body: events.MessageBody, *, replaces: bool) -> None:
        for number, content in enumerate(body.contents):
            if content.url and not content.artifact_id:
                self._link(f"{id_in_run(body.message_id, self._run)}-link-{number}", content)
        if body.role == "reasoning":
            message = self._reason(body.message_id)
        elif body.message_id in self._messages or body.content or body.ui_hints:
            message = self._message(
                body.message_id, body.role if body.role in _TEXT_ROLES else "assistant"
            )
        else:
            return
        if not message.open:
            return
        self._say(message, f"\n\n{body.content}" if replaces else body.content[message.length :])
        shown = compile_ui_schema(body.ui_hints)
        message.completed = True
        self._close(message, shown)
        if shown:
            self._custom("parley.ui_schema", {"messageId": message.id, "uiSchema": shown})

    def _close(self, message: StreamedMessage, shown: Wire | None = None) -> None:
        message.open = False
        facts: Wire = {"latency_ms": max(0, self._event.at - message.began_at)}
        self._emit({"type": f"{message.kind}_END", "messageId": message.id}, message.stage, facts, shown)
        if message.kind == "REASONING_MESSAGE":
            self._reasoning = None
            self._emit({"type": "REASONING_END", "messageId": message.id})

    def _stop_reasoning(self) -> None:
        if self._reasoning is not None:
            self._close(self._reasoning)

    # tools

    def _call(self, started: events.ToolCallStarted) -> None:
        begun = self._calls.start_events(started)
        if begun:
            self._stop_reasoning()
        stage = next(reversed(self._stages), None)
        for event in begun:
            self._emit(event, stage, {"kind": started.kind})

    def _answer(self, completed: events.ToolCallCompleted) -> None:
        unknown = self._calls.missing_start(completed)
        if unknown is not None:
            self._call(unknown)
        result = self._calls.result_event(completed)
        if result is None:
            return
        self._stop_reasoning()
        shown = compile_ui_schema(completed.ui_hints, tool_id=completed.tool_name)
        facts: Wire = {"latency_ms": completed.elapsed_ms, "ok": completed.ok}
        self._emit(result, "tool_execution", facts, shown)
        if shown:
            ids = {key: result[key] for key in ("messageId", "toolCallId")}
            self._custom("parley.ui_schema", ids | {"uiSchema": shown})

    # stages, state, artifacts

    def _enter(self, stage: str) -> None:
        if stage not in self._stages:
            self._stages[stage] = self._event.at
            self._emit({"type": "STEP_STARTED", "stepName": stage}, stage)

    def _leave(self, stage: str, latency_ms: int) -> None:
        self._stop_reasoning()
        if stage in self._stages:
            del self._stages[stage]
            finished = {"type": "STEP_FINISHED", "stepName": stage}
            self._emit(finished, stage, {"latency_ms": latency_ms})

    def _update(self, updated: events.StateUpdated) -> None:
        """Send the thread's state, which is the client's, or another scope's as a custom event."""
        if updated.scope != "thread":
            self._custom("parley.state_updated", msgspec.to_builtins(updated))
            return
        self._emit(self._state.update(updated))

    def _show(self, artifact: events.ArtifactCreated) -> None:
        message_id = message_ids.artifact_message_id(artifact.artifact_id, self._run)
        self._activity(message_id, "parley.artifact", file_facts(artifact))

    def _link(self, message_id: str, content: events.MessageContent) -> None:
        """Show a link of a message to another site; a copy of an inline content is an artifact."""
        shown = {"type": content.type, "url": content.url, "name": content.name}
        self._activity(message_id, "parley.link", shown)

    def _activity(self, message_id: str, kind: str, content: Wire) -> None:
        activity = {"messageId": message_id, "activityType": kind, "content": content}
        self._emit({"type": "ACTIVITY_SNAPSHOT"} | activity)

    def _custom(self, name: str, value: Wire) -> None:
        self._emit({"type": "CUSTOM", "name": name, "value": value})

    # the end

    def _end(self, terminal: events.Terminal) -> None:
        """Close open messages and stages, innermost first, then send the run's ending."""
        self._stop_reasoning()
        pending = self._calls.pending()
        if not (isinstance(terminal, events.RunCompleted) and terminal.interrupts):
            for failed in self._calls.failures_of_open():
                self._answer(failed)
        for message in self._messages.values():
            if message.open:
                self._close(message)
        for stage, began_at in [*self._stages.items()]:
            self._leave(stage, max(0, self._event.at - began_at))
        self._ended = True
        finish: Wire = {"type": "RUN_FINISHED"} | message_ids.run_ids(self._head)
        if isinstance(terminal, events.RunCompleted):
            finished = outcomes.outcome_fields(terminal, self._routed, pending, modern=self._modern)
            for interrupt in finished["outcome"].get("interrupts", ()):
                self._calls.use_wire_id(interrupt)
            facts = {"finish_reason": terminal.finish_reason}
            self._emit(finish | finished, None, facts)
        elif terminal.code == "cancelled" and self._modern:
            self._emit(finish | {"outcome": {"type": "cancelled"}})
        else:
            problem = {"message": terminal.message, "code": terminal.code}
            self._emit({"type": "RUN_ERROR"} | problem, None, {"retryable": terminal.retryable})

    # out

    def _emit(
        self, event: Wire, stage: str | None = None, facts: Wire | None = None, shown: Wire | None = None
    ) -> None:
        ours: Wire = {"seq": self._event.seq} | (facts or {})
        if stage:
            ours["stage"] = stage
        if shown:
            ours["uiSchema"] = shown
        whole = {"type": "", "metadata": {"parley": ours}} | event | {"timestamp": self._event.at}
        if self._fold is None:
            self._out.append(encode_json(whole))
        else:
            self._fold.feed(whole)

    def _frames(self) -> Sequence[Frame]:
        if not self._out:
            return ()
        out, self._out = self._out, []
        return [*(Frame("", data) for data in out[:-1]), Frame("", out[-1], self._event.seq)]
