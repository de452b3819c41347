"""Fold events into messages, so that streamed and stored messages are the same (P2, P3).

A `Transcript` takes every event of a run, in order. It holds the messages so far, the open
calls and stages, and all values of the run's row at its end. The worker keeps one beside the log it
writes; the settler of a dead worker's run makes the same one from the stored events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from conversations import events, identifiers, usage
from conversations.events import Fact, RunEvent, Terminal
from conversations.log.deltas import Deltas
from conversations.log.growing_text import GrowingText
from conversations.thread_state import set_value

_LONGEST_ID: Final = 200  # of the column; the whole id stands in the metadata


@dataclass(frozen=True)
class StoredMessage:
    """A finished message on its way to the thread; a stage's note has no place in the conversation."""

    role: str
    content: str
    metadata: str
    client_id: str | None = None
    placed: bool = True


@dataclass(frozen=True)
class StoredInterrupt:
    """A tool call that waits for approval, on its way to the thread; the arguments are JSON text."""

    id: UUID
    tool_call_id: str
    tool_name: str
    arguments: str
    message: str
    expires_at: str


@dataclass(slots=True)
class _Draft:
    """A message in progress."""

    message_id: str
    stage: str | None
    body: events.MessageBody | None = None
    streamed: GrowingText = field(default_factory=GrowingText)

    @property
    def shows_something(self) -> bool:
        return bool(self.body and (self.body.ui_hints or self.body.contents))

    @property
    def text(self) -> str:
        return self.body.content if self.body else str(self.streamed)


@dataclass(slots=True)
class _Call:
    """A tool call, and its outcome once it has one."""

    started: events.ToolCallStarted
    completed: events.ToolCallCompleted | None = None

    @property
    def call_id(self) -> str:
        return self.started.tool_call_id

    @property
    def is_clients(self) -> bool:
        return self.started.kind == "frontend"


@dataclass(slots=True)
class Transcript:
    """The fold of a run's events so far."""

    run_id: UUID
    routed: events.ModelRouted | None = None
    calls: list[events.ModelCompleted] = field(default_factory=list)
    terminal: events.Terminal | None = None
    first_token_at_ms: int | None = None
    last_seq: int = 0
    state: Any = None
    _shown_raw: bool = False
    _spoken: _Draft | None = None
    _entries: dict[str, _Draft | _Call] = field(default_factory=dict)
    _stages: dict[str, int] = field(default_factory=dict)
    _ended: dict[str, events.StageCompleted] = field(default_factory=dict)

    def feed(self, event: RunEvent) -> None:
        """Take the next event."""
        self.last_seq, fact = event.seq, event.fact
        match fact:
            case events.MessageDelta(message_id, text):
                self._say(message_id, text, event.at)
            case events.MessageCompleted(body):
                self._draft(body.message_id, body.role).body = body
            case events.ToolCallStarted() as started:
                self._entries[f"call:{started.tool_call_id}"] = _Call(started)
            case events.ToolCallCompleted() as completed:
                call = self._entries.get(f"call:{completed.tool_call_id}")
                if completed.asked_in:
                    key = f"answer:{completed.asked_in}:{completed.tool_call_id}"
                    self._entries[key] = _earlier_call(completed)
                elif isinstance(call, _Call):
                    call.completed = completed
            case events.StageStarted(stage):
                self._stages[stage] = event.at
            case events.StageCompleted(stage) as ended:
                self._stages.pop(stage, None)
                self._ended[stage] = ended
            case events.UpstreamRaw():
                self._shown_raw = True
            case events.StateUpdated("thread", key, value):
                self.state = set_value(self.state, key, value)
            case events.ModelRouted() as routed:
                self.routed = routed
            case events.ModelCompleted() as call:
                self.calls.append(call)
            case events.RunCompleted() | events.RunFailed() as terminal:
                self.terminal = terminal

    def feed_deltas(self, deltas: Deltas, last: RunEvent) -> None:
        """Take the next events, which are those of the deltas; `last` is the last of them."""
        self.last_seq = last.seq
        if deltas.type is events.MessageDelta:
            self._say(deltas.message_id, deltas.text, last.at)

    def _say(self, message_id: str, text: str, at_ms: int) -> None:
        if self.first_token_at_ms is None:
            self.first_token_at_ms = at_ms
        draft = self._spoken
        if draft is None or draft.message_id != message_id:
            draft = self._spoken = self._draft(message_id)
        draft.streamed.add(text)

    def text_of(self, message_id: str) -> str:
        """Return the text of a message so far."""
        entry = self._entries.get(f"message:{message_id}")
        return entry.text if isinstance(entry, _Draft) else ""

    @property
    def answer(self) -> str:
        """Return the text of the assistant's newest message so far."""
        drafts = (entry for entry in reversed(self._entries.values()) if isinstance(entry, _Draft))
        texts = (one.text for one in drafts if one.body is None or one.body.role == "assistant")
        return next(texts, "")

    def closing_facts(self, terminal: Terminal, at_ms: int) -> list[Fact]:
        """Return the facts that close what is open before `terminal`: calls, then messages, then stages.

        A call that waits for the client, or for approval, stays open if the run ends well: its answer
        arrives with the next run.
        """
        facts: list[Fact] = []
        failed = isinstance(terminal, events.RunFailed)
        problem = events.Problem(
            terminal.code if isinstance(terminal, events.RunFailed) else "interrupted",
            "The run ended before the tool answered.",
        )
        for entry in self._entries.values():
            if isinstance(entry, _Call) and entry.completed is None:
                if not failed and (entry.is_clients or entry.call_id in _interrupted_call_ids(terminal)):
                    continue
                begun = entry.started
                facts.append(
                    events.ToolCallCompleted(
                        begun.tool_call_id, begun.tool_name, False, 0, error=problem
                    )
                )
        for entry in self._entries.values():
            if isinstance(entry, _Draft) and entry.body is None:
                body = events.MessageBody(entry.message_id, "assistant", entry.text)
                facts.append(events.MessageCompleted(body))
        facts += [
            events.StageCompleted(stage, max(0, at_ms - begun)) for stage, begun in self._stages.items()
        ]
        return facts

    def messages(self) -> tuple[StoredMessage, ...]:
        """Return the messages to store, in the order in which they began; stages' notes come last."""
        entries = self._entries.values()
        message_stages = {entry.stage for entry in entries if isinstance(entry, _Draft)} | {"execution"}
        stages = [ended for stage, ended in self._ended.items() if stage not in message_stages]
        stored_entries = [
            entry for entry in entries if isinstance(entry, _Call) or entry.text or entry.shows_something
        ]
        return (*map(self._message, stored_entries), *map(self._stage_message, stages))

    def interrupts(self) -> tuple[StoredInterrupt, ...]:
        """Return the calls that wait for approval, as rows; an id that is not ours has no row."""
        terminal = self.terminal
        pending = terminal.interrupts if isinstance(terminal, events.RunCompleted) else ()
        found = (self._interrupt(interrupt) for interrupt in pending)
        return tuple(interrupt for interrupt in found if interrupt is not None)

    def _interrupt(self, interrupt: dict[str, Any]) -> StoredInterrupt | None:
        call = self._entries.get(f"call:{interrupt.get('toolCallId')}")
        if not isinstance(call, _Call):
            return None
        try:
            interrupt_id = UUID(interrupt["id"])
            expires_at = datetime.fromisoformat(interrupt["expiresAt"])
        except (KeyError, ValueError, TypeError, AttributeError):
            return None
        return StoredInterrupt(
            interrupt_id,
            _without_nul(call.call_id)[:_LONGEST_ID],
            _without_nul(call.started.tool_name)[:_LONGEST_ID],
            msgspec.json.encode(_without_nul(call.started.parameters)).decode(),
            _without_nul(str(interrupt.get("message", ""))),
            expires_at.isoformat(),
        )

    @property
    def has_output(self) -> bool:
        """Return whether a client has seen words, raw pieces or tool calls of this run."""
        return self._shown_raw or bool(self._entries)

    @property
    def status(self) -> str:
        """Return the run's status that agrees with its last event."""
        match self.terminal:
            case None:
                return "running"
            case events.RunFailed(code):
                return "cancelled" if code == "cancelled" else "failed"
        return "completed"

    def _draft(self, message_id: str, role: str = "assistant") -> _Draft:
        """Return the message with that id; reasoning may have the id of the answer it belongs to."""
        key = f"{'reasoning' if role == 'reasoning' else 'message'}:{message_id}"
        entry = self._entries.get(key)
        if not isinstance(entry, _Draft):
            stage = next(reversed(self._stages), None)
            entry = self._entries[key] = _Draft(message_id, stage)
        return entry

    def _message(self, entry: _Draft | _Call) -> StoredMessage:
        match entry:
            case _Draft():
                return self._spoken_message(entry)
            case _Call(completed=None) if entry.is_clients:
                return self._open_call_message(entry.started)
            case _Call(completed=None) if entry.call_id in _interrupted_call_ids(self.terminal):
                return self._open_call_message(entry.started, awaits="approval")
        return self._tool_message(entry)

    def _stage_message(self, ended: events.StageCompleted) -> StoredMessage:
        message_id = f"{ended.stage}-{self.run_id.hex}"
        metadata = {"stage": ended.stage, "latency_ms": ended.latency_ms}
        return self._storable("activity", ended.summary, metadata, message_id, placed=False)

    def _spoken_message(self, draft: _Draft) -> StoredMessage:
        answer: dict[str, Any] = {"answer": draft.text, "status": self.status}
        if draft.body and draft.body.ui_hints:
            answer["ui_hints"] = draft.body.ui_hints
        role = draft.body.role if draft.body else "assistant"
        metadata: dict[str, Any] = dict(draft.body.metadata) if draft.body else {}
        if draft.body and draft.body.contents:
            metadata["contents"] = [msgspec.to_builtins(one.kept) for one in draft.body.contents]
        if draft.stage:
            ended = self._ended.get(draft.stage)
            metadata |= {"stage": draft.stage, "latency_ms": ended.latency_ms if ended else 0}
        if role == "assistant":
            metadata["worker_agent_output"] = answer
        return self._storable(role, draft.text, metadata | self._usage_of(draft), draft.message_id)

    def _usage_of(self, draft: _Draft) -> dict[str, Any]:
        """Return the message's model call: model, outcome, usage and cost; {} if no model was called."""
        calls = [call for call in self.calls if call.message_id == draft.message_id]
        if not calls:
            return {}
        last = calls[-1]
        reasons = {"finish_reason": last.finish_reason, "upstream_reason": last.upstream_reason}
        fields = {"provider": last.provider, "model": last.model}
        fields |= {name: word for name, word in reasons.items() if word}
        return fields | {"usage": usage.usage_to_json(usage.sum_usage(calls))}

    def _open_call_message(self, call: events.ToolCallStarted, **more: str) -> StoredMessage:
        """Return a call that waits for an answer, as the message in which a model makes it."""
        arguments = msgspec.json.encode(call.parameters).decode()
        message_id = identifiers.call_message_id(call.tool_call_id)
        metadata: dict[str, Any] = {
            "tool_calls": [{"id": call.tool_call_id, "name": call.tool_name, "arguments": arguments}]
        }
        return self._storable("assistant", "", metadata | more | _thoughts(call), message_id)

    def _tool_message(self, call: _Call) -> StoredMessage:
        started, done = call.started, call.completed
        output = {"tool_name": started.tool_name, "tool_call_id": started.tool_call_id}
        asked_in = done.asked_in if done else None
        message_id = identifiers.tool_message_id(self.run_id.hex, started.tool_call_id, asked_in)
        metadata = {
            "stage": "tool_execution",
            "tool_name": started.tool_name,
            "tool_arguments": started.parameters,
            "latency_ms": done.elapsed_ms if done else 0,
            "tool_agent_output": output | (_outcome(done) if done else {"ok": False}),
        }
        summary = _tool_summary(started, done)
        return self._storable("tool", summary, metadata | _thoughts(started), message_id)

    def _storable(
        self, role: str, content: str, metadata: dict[str, Any], message_id: str, *, placed: bool = True
    ) -> StoredMessage:
        """Return a message that PostgreSQL takes: neither its text nor its jsonb has a place for NUL."""
        metadata = metadata | {"run_id": self.run_id.hex, "message_id": message_id}
        encoded = msgspec.json.encode(metadata).decode()
        if "\\u0000" in encoded:
            encoded = msgspec.json.encode(_without_nul(metadata)).decode()
        return StoredMessage(
            role, _without_nul(content), encoded, _without_nul(message_id)[:_LONGEST_ID], placed
        )


def _thoughts(call: events.ToolCallStarted) -> dict[str, Any]:
    return {"reasoning": call.reasoning} if call.reasoning else {}


def _interrupted_call_ids(terminal: Terminal | None) -> set[str]:
    """Return the ids of the calls for which the run's end requests approval."""
    if not isinstance(terminal, events.RunCompleted):
        return set()
    named = (interrupt.get("toolCallId") for interrupt in terminal.interrupts)
    return {call_id for call_id in named if isinstance(call_id, str)}


def _earlier_call(done: events.ToolCallCompleted) -> _Call:
    """Return the answer to a call that an earlier run made."""
    started = events.ToolCallStarted(
        done.tool_call_id, done.tool_name, done.parameters or {}, done.kind, done.server_label
    )
    return _Call(started, done)


def fold(run_id: UUID, some: Iterable[RunEvent]) -> Transcript:
    """Return the transcript of a run's events."""
    transcript = Transcript(run_id)
    for event in some:
        transcript.feed(event)
    return transcript


def _outcome(done: events.ToolCallCompleted) -> dict[str, Any]:
    kept: dict[str, Any] = msgspec.to_builtins(done)
    names = ("ok", "result", "error", "ui_hints", "asked_in")
    return {"latency_ms": done.elapsed_ms} | {name: kept[name] for name in names if name in kept}


def _tool_summary(started: events.ToolCallStarted, done: events.ToolCallCompleted | None) -> str:
    if done is None or not done.ok:
        reason = done.error.message if done and done.error else "no answer"
        return f"{started.tool_name} failed: {reason}"
    total = (done.result or {}).get("total")
    return (
        f"{started.tool_name}: {total} found" if isinstance(total, int) else f"{started.tool_name}: done"
    )


def _without_nul(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\x00", "")
        case dict():
            return {_without_nul(key): _without_nul(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_nul(item) for item in value]
    return value
