"""Fold events into messages: what was streamed and what is stored are the same thing (P2, P3).

A `Transcript` is fed every event of a run, one at a time. It knows the messages so far, what is
still open, and everything the run's row says at the end. The worker keeps one beside the log it
writes; whoever settles a dead worker's run makes the same one from the stored events.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

import msgspec

from conversations import events
from conversations.events import Fact, RunEvent
from conversations.log import StoredMessage

_TAIL: Final = 128
_STATUS_OF_CODE = {"cancelled": "cancelled"}


@dataclass
class _Draft:
    """A message that is being said."""

    message_id: str
    stage: str | None
    body: events.MessageBody | None = None
    _chunks: list[str] = field(default_factory=list)
    _tail: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Say more; small pieces are joined now and then, since each costs far more than its text."""
        self._tail.append(text)
        if len(self._tail) == _TAIL:
            self._chunks.append("".join(self._tail))
            self._tail.clear()

    @property
    def text(self) -> str:
        return self.body.content if self.body else "".join([*self._chunks, *self._tail])


@dataclass
class _Call:
    """A tool call, and its outcome once there is one."""

    started: events.ToolCallStarted
    completed: events.ToolCallCompleted | None = None


@dataclass
class Transcript:
    """The fold of a run's events so far."""

    run_id: UUID
    routed: events.ModelRouted | None = None
    terminal: events.Terminal | None = None
    first_token_at_ms: int | None = None
    last_seq: int = 0
    _entries: dict[str, _Draft | _Call] = field(default_factory=dict)
    _stages: dict[str, int] = field(default_factory=dict)
    _latencies: dict[str, int] = field(default_factory=dict)

    def feed(self, event: RunEvent) -> None:
        """Take the next event."""
        self.last_seq = event.seq
        match event.fact:
            case events.MessageDelta(message_id, text):
                if self.first_token_at_ms is None:
                    self.first_token_at_ms = event.at
                self._draft(message_id).add(text)
            case events.MessageCompleted(body):
                self._draft(body.message_id).body = body
            case events.ToolCallStarted() as started:
                self._entries[f"call:{started.tool_call_id}"] = _Call(started)
            case events.ToolCallCompleted() as completed:
                call = self._entries.get(f"call:{completed.tool_call_id}")
                if isinstance(call, _Call):
                    call.completed = completed
            case events.StageStarted(stage):
                self._stages[stage] = event.at
            case events.StageCompleted(stage, latency_ms):
                self._stages.pop(stage, None)
                self._latencies[stage] = latency_ms
            case events.ModelRouted() as routed:
                self.routed = routed
            case events.RunCompleted() | events.RunFailed() as terminal:
                self.terminal = terminal

    def said(self, message_id: str) -> str:
        """The text of a message so far."""
        entry = self._entries.get(f"message:{message_id}")
        return entry.text if isinstance(entry, _Draft) else ""

    def closing(self, code: str, at_ms: int) -> list[Fact]:
        """The facts that close whatever is open, calls first, then messages, then stages."""
        facts: list[Fact] = []
        problem = events.Problem(code, "The run ended before the tool answered.")
        for entry in self._entries.values():
            if isinstance(entry, _Call) and entry.completed is None:
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
        """The messages to store, in the order in which they were begun."""
        return tuple(
            self._tool_message(entry) if isinstance(entry, _Call) else self._spoken_message(entry)
            for entry in self._entries.values()
            if isinstance(entry, _Call) or entry.text
        )

    @property
    def said_anything(self) -> bool:
        """Whether a client has seen words or tool calls of this run."""
        return bool(self._entries)

    @property
    def status(self) -> str:
        """The run's status that agrees with its last event."""
        match self.terminal:
            case None:
                return "running"
            case events.RunFailed(code):
                return _STATUS_OF_CODE.get(code, "failed")
        return "completed"

    def _draft(self, message_id: str) -> _Draft:
        key = f"message:{message_id}"
        entry = self._entries.get(key)
        if not isinstance(entry, _Draft):
            stage = next(reversed(self._stages), None)
            entry = self._entries[key] = _Draft(message_id, stage)
        return entry

    def _spoken_message(self, draft: _Draft) -> StoredMessage:
        answer: dict[str, Any] = {"answer": draft.text, "status": self.status}
        if draft.body and draft.body.ui_hints:
            answer["ui_hints"] = draft.body.ui_hints
        role = draft.body.role if draft.body else "assistant"
        metadata: dict[str, Any] = dict(draft.body.metadata) if draft.body else {}
        metadata |= {"run_id": self.run_id.hex, "message_id": draft.message_id}
        if draft.stage:
            metadata |= {"stage": draft.stage, "latency_ms": self._latencies.get(draft.stage, 0)}
        if role == "assistant":
            metadata["worker_agent_output"] = answer
        return _storable(role, draft.text, metadata)

    def _tool_message(self, call: _Call) -> StoredMessage:
        started, done = call.started, call.completed
        output = {"tool_name": started.tool_name, "tool_call_id": started.tool_call_id}
        metadata = {
            "run_id": self.run_id.hex,
            "stage": "tool_execution",
            "message_id": f"tool_execution-{self.run_id.hex}",
            "tool_name": started.tool_name,
            "latency_ms": done.elapsed_ms if done else 0,
            "tool_agent_output": output | (_outcome(done) if done else {"ok": False}),
        }
        return _storable("tool", _tool_summary(started, done), metadata)


def fold(run_id: UUID, some: Iterable[RunEvent]) -> Transcript:
    """The transcript of a run's events."""
    transcript = Transcript(run_id)
    for event in some:
        transcript.feed(event)
    return transcript


def _outcome(done: events.ToolCallCompleted) -> dict[str, Any]:
    kept: dict[str, Any] = msgspec.to_builtins(done)
    names = ("ok", "result", "error", "ui_hints")
    return {"latency_ms": done.elapsed_ms} | {name: kept[name] for name in names if name in kept}


def _tool_summary(started: events.ToolCallStarted, done: events.ToolCallCompleted | None) -> str:
    if done is None or not done.ok:
        reason = done.error.message if done and done.error else "no answer"
        return f"{started.tool_name} failed: {reason}"
    total = (done.result or {}).get("total")
    return (
        f"{started.tool_name}: {total} found" if isinstance(total, int) else f"{started.tool_name}: done"
    )


def _storable(role: str, content: str, metadata: dict[str, Any]) -> StoredMessage:
    """A message that PostgreSQL takes: neither its text nor its jsonb has a place for NUL."""
    encoded = msgspec.json.encode(metadata).decode()
    if "\\u0000" in encoded:
        encoded = msgspec.json.encode(_without_nul(metadata)).decode()
    return StoredMessage(role, _without_nul(content), encoded)


def _without_nul(value: Any) -> Any:
    match value:
        case str():
            return value.replace("\x00", "")
        case dict():
            return {_without_nul(key): _without_nul(item) for key, item in value.items()}
        case list() | tuple():
            return [_without_nul(item) for item in value]
    return value
