"""Canonical events as AG-UI's (specs/ag-ui.md §1.2), in the order that its clients require (§3.2).

A client ends the whole run with an error at the first event out of order, so every event here has its
beginning sent before it: an unknown call is begun before it is answered, closed messages stay closed,
open ones are closed at the end, and after the end nothing is sent.

`feed` returns frames for a reader. An encoder with `silent=True` first only takes in the events that a
client has missed; `prelude` then returns them as snapshots, and it goes on as any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from agents.dialects.ag_ui import event_types, message_ids, outcomes
from agents.dialects.ag_ui.known_calls import KnownCalls
from agents.dialects.ag_ui.message_fold import Fold
from agents.dialects.ag_ui.message_types import AgUiEventFacts, AgUiMessage, AgUiMetadata
from agents.dialects.ag_ui.open_message import Kind, StreamedMessage
from agents.dialects.ag_ui.snapshots import snapshots
from agents.dialects.ag_ui.state_patches import SharedState
from agents.dialects.artifact_links import file_facts
from agents.dialects.base import Encoder, Frame, RunHead, id_in_run
from agents.dialects.wire import Wire, encode_json
from conversations import events
from conversations.cards.card_compiler import compile_ui_schema
from conversations.events import RunEvent


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
        if self._ended or isinstance(fact, events.LaterFact):
            return ()
        if self._fold is not None and isinstance(fact, events.TERMINAL):
            self._last = event
            return ()
        self._event = event
        self._begin()
        self._take(event)
        return self._frames()

    def prelude(
        self,
        before: Sequence[AgUiMessage],
        *,
        known: Iterable[str] = (),
        state: Any = None,
    ) -> list[Frame]:
        """Return the first frames for a client that comes back: all it may have missed, as snapshots.

        `before` are the thread's messages up to this run's own input, in AG-UI's shape; `known` the ids
        of the messages that the client has, in its order; `state` the thread's state before the run.
        """
        fold, self._fold = self._fold, None
        assert fold is not None, "only a silent encoder has a prelude"
        if not self._begun:
            return self._tail()
        metadata = self._metadata()
        self._emit(self._started())
        for event in snapshots(fold.after(before), list(known), metadata):
            self._emit(event)
        if self._state.changed or state:
            shared = self._state.value if self._state.changed else state
            self._emit(event_types.AgUiStateSnapshot(metadata, shared))
        for stage in self._stages:
            self._emit(event_types.AgUiStepStarted(metadata, stage))
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
                self._request(request)
            case events.ModelRouted() as routed:
                self._routed = routed
            case events.RunCompleted() | events.RunFailed() as terminal:
                self._end(terminal)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._emit(self._started())
            if left_out := self._head.wire.get("leftOut"):
                what = event_types.AgUiLeftOut(left_out)
                self._emit(event_types.AgUiLeftOutEvent(self._metadata(), "parley.left_out", what))

    def _started(self) -> event_types.AgUiRunStarted:
        ids = message_ids.run_ids(self._head)
        return event_types.AgUiRunStarted(self._metadata(), *ids, "1.0" if self._modern else UNSET)

    # text and reasoning

    def _message(self, message_id: str, role: event_types.TextRole = "assistant") -> StreamedMessage:
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

    def _start(self, message: StreamedMessage, role: event_types.TextRole = "assistant") -> None:
        if message.kind == "REASONING_MESSAGE":
            self._reasoning = message
        for event in message.start_events(role, self._metadata(message.stage)):
            self._emit(event)

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
            message = self._message(body.message_id, "assistant" if body.role == "tool" else body.role)
        else:
            return
        if not message.open:
            return
        self._say(message, f"\n\n{body.content}" if replaces else body.content[message.length :])
        shown = compile_ui_schema(body.ui_hints)
        message.completed = True
        self._close(message, shown)
        if shown:
            self._show_card(message.id, shown)

    def _show_card(self, message_id: str, shown: Wire, *, tool_call_id: str | UnsetType = UNSET) -> None:
        card = event_types.AgUiCard(message_id=message_id, tool_call_id=tool_call_id, ui_schema=shown)
        self._emit(event_types.AgUiCardEvent(self._metadata(), "parley.ui_schema", card))

    def _close(self, message: StreamedMessage, shown: Wire | None = None) -> None:
        message.open = False
        latency_ms = max(0, self._event.at - message.began_at)
        metadata = self._metadata(message.stage, latency_ms=latency_ms, ui_schema=shown or UNSET)
        self._emit(message.end_event(metadata))
        if message.kind == "REASONING_MESSAGE":
            self._reasoning = None
            self._emit(event_types.AgUiReasoningEnd(self._metadata(), message.id))

    def _stop_reasoning(self) -> None:
        if self._reasoning is not None:
            self._close(self._reasoning)

    # tools

    def _call(self, started: events.ToolCallStarted) -> None:
        stage = next(reversed(self._stages), None)
        begun = self._calls.start_events(started, self._metadata(stage, kind=started.kind))
        if begun:
            self._stop_reasoning()
        for event in begun:
            self._emit(event)

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
        result.metadata = self._metadata("tool_execution", ui_schema=shown or UNSET, **facts)
        self._emit(result)
        if shown:
            self._show_card(result.message_id, shown, tool_call_id=result.tool_call_id)

    # stages, state, artifacts

    def _enter(self, stage: str) -> None:
        if stage not in self._stages:
            self._stages[stage] = self._event.at
            self._emit(event_types.AgUiStepStarted(self._metadata(stage), stage))

    def _leave(self, stage: str, latency_ms: int) -> None:
        self._stop_reasoning()
        if stage in self._stages:
            del self._stages[stage]
            self._emit(event_types.AgUiStepFinished(self._metadata(stage, latency_ms=latency_ms), stage))

    def _update(self, updated: events.StateUpdated) -> None:
        """Send the thread's state, which is the client's, or another scope's as a custom event."""
        if updated.scope != "thread":
            self._emit(
                event_types.AgUiStateUpdatedEvent(self._metadata(), "parley.state_updated", updated)
            )
        else:
            self._emit(self._state.update(updated, self._metadata()))

    def _request(self, request: events.ActionRequested) -> None:
        self._emit(
            event_types.AgUiActionRequestedEvent(self._metadata(), "parley.action_requested", request)
        )

    def _show(self, artifact: events.ArtifactCreated) -> None:
        message_id = message_ids.artifact_message_id(artifact.artifact_id, self._run)
        self._activity(message_id, "parley.artifact", file_facts(artifact))

    def _link(self, message_id: str, content: events.MessageContent) -> None:
        """Show a link of a message to another site; a copy of an inline content is an artifact."""
        shown = {"type": content.type, "url": content.url, "name": content.name}
        self._activity(message_id, "parley.link", shown)

    def _activity(self, message_id: str, kind: str, content: Wire) -> None:
        self._emit(event_types.AgUiActivitySnapshot(self._metadata(), message_id, kind, content))

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
        ids = message_ids.run_ids(self._head)
        if isinstance(terminal, events.RunCompleted):
            outcome = outcomes.outcome(terminal, pending, modern=self._modern)
            if isinstance(outcome, event_types.AgUiInterrupted):
                for interrupt in outcome.interrupts:
                    self._calls.use_wire_id(interrupt)
            metadata = self._metadata(finish_reason=terminal.finish_reason)
            usage = outcomes.usage(terminal.usage, self._routed)
            self._emit(event_types.AgUiRunFinished(metadata, *ids, outcome, usage))
        elif terminal.code == "cancelled" and self._modern:
            self._emit(event_types.AgUiRunFinished(self._metadata(), *ids, event_types.AgUiCancelled()))
        else:
            metadata = self._metadata(retryable=terminal.retryable)
            self._emit(event_types.AgUiRunError(metadata, terminal.message, terminal.code))

    # out

    def _metadata(self, stage: str | None = None, **facts: Any) -> AgUiMetadata:
        """Return the facts of the next event (`AgUiEventFacts`)."""
        return AgUiMetadata(AgUiEventFacts(self._event.seq, stage=stage or UNSET, **facts))

    def _emit(self, event: event_types.TimedEvent) -> None:
        event.timestamp = self._event.at
        if self._fold is None:
            self._out.append(encode_json(event))
        else:
            self._fold.feed(event)

    def _frames(self) -> Sequence[Frame]:
        if not self._out:
            return ()
        out, self._out = self._out, []
        return [*(Frame("", data) for data in out[:-1]), Frame("", out[-1], self._event.seq)]
