"""The canonical events: what can happen in a run, said once for every dialect (DESIGN §5).

A *fact* is one typed thing that happened; a `RunEvent` is a fact with its place (`seq`, counted
from 1 within the run without a gap) and time (`at`, epoch milliseconds). The JSON of a batch is
`[[at, {"type": …, …}], …]`: the sequence numbers follow from the batch's first one, and deltas
that follow each other share one entry.

This module stands alone so that dialects, the fold and tests can use it without a database.
Adding a fact means adding it to `Fact`; a dialect that does not know it must ignore it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final, Literal

from msgspec import Struct, field
from msgspec.json import Decoder, Encoder

ToolKind = Literal["function", "frontend", "mcp", "plugin", "component"]
FailureCode = str


class Problem(Struct, frozen=True):
    """Why a tool call failed: a code for programs and a sentence for people."""

    code: str
    message: str


class MessageBody(Struct, frozen=True, omit_defaults=True):
    """A finished message as a runner says it."""

    message_id: str
    role: Literal["assistant", "tool", "user", "system", "reasoning"]
    content: str
    metadata: dict[str, Any] = {}
    ui_hints: dict[str, Any] | None = None


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens counted by the provider (0 where it did not say)."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0


class RunQueued(Struct, frozen=True, tag="run.queued"):
    position: int


class RunStarted(Struct, frozen=True, tag="run.started"):
    attempt: int
    deadline_at: int


class ModelRouted(Struct, frozen=True, tag="model.routed"):
    provider: str
    model: str
    endpoint_id: int | None = None
    upstream_request_id: str | None = None


class StageStarted(Struct, frozen=True, tag="stage.started"):
    stage: str


class StageCompleted(Struct, frozen=True, tag="stage.completed"):
    stage: str
    latency_ms: int


class ReasoningDelta(Struct, frozen=True, tag="reasoning.delta"):
    message_id: str
    text: str


class MessageDelta(Struct, frozen=True, tag="message.delta"):
    message_id: str
    text: str


class MessageCompleted(Struct, frozen=True, tag="message.completed"):
    message: MessageBody


class ToolCallStarted(Struct, frozen=True, tag="tool.call.started"):
    tool_call_id: str
    tool_name: str
    parameters: dict[str, Any] = {}
    kind: ToolKind = "function"


class ToolCallCompleted(Struct, frozen=True, tag="tool.call.completed", omit_defaults=True):
    tool_call_id: str
    tool_name: str
    ok: bool
    elapsed_ms: int
    result: dict[str, Any] | None = None
    error: Problem | None = None
    ui_hints: dict[str, Any] | None = None


class ArtifactCreated(Struct, frozen=True, tag="artifact.created"):
    artifact_id: str
    artifact_type: str
    mime_type: str
    name: str
    size_bytes: int


class StateUpdated(Struct, frozen=True, tag="state.updated"):
    scope: str
    key: str
    value: Any


class ActionRequested(Struct, frozen=True, tag="action.requested"):
    action: str
    target: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None


class UpstreamRaw(Struct, frozen=True, tag="upstream.raw"):
    dialect: str
    raw: str


class RunCompleted(Struct, frozen=True, tag="run.completed", omit_defaults=True):
    finish_reason: str
    usage: Usage = field(default_factory=Usage)
    interrupts: list[dict[str, Any]] = []


class RunFailed(Struct, frozen=True, tag="run.failed"):
    code: FailureCode
    message: str
    retryable: bool = False


Fact = (
    RunQueued
    | RunStarted
    | ModelRouted
    | StageStarted
    | StageCompleted
    | ReasoningDelta
    | MessageDelta
    | MessageCompleted
    | ToolCallStarted
    | ToolCallCompleted
    | ArtifactCreated
    | StateUpdated
    | ActionRequested
    | UpstreamRaw
    | RunCompleted
    | RunFailed
)
Terminal = RunCompleted | RunFailed
TERMINAL: Final = (RunCompleted, RunFailed)


class RunEvent(Struct, frozen=True):
    """One fact at its place in a run's log."""

    seq: int
    at: int
    fact: Fact

    @property
    def type(self) -> str:
        return str(type(self.fact).__struct_config__.tag)


def now_ms() -> int:
    """Epoch milliseconds."""
    return time.time_ns() // 1_000_000


class _MessageDeltas(Struct, frozen=True, tag="message.deltas"):
    """Consecutive deltas of one message as they are stored; `later` are milliseconds after the first."""

    message_id: str
    texts: list[str]
    later: list[int]


class _ReasoningDeltas(Struct, frozen=True, tag="reasoning.deltas"):
    message_id: str
    texts: list[str]
    later: list[int]


_Stored = Fact | _MessageDeltas | _ReasoningDeltas
_encoder: Final = Encoder()
_decoder: Final = Decoder(list[tuple[int, _Stored]])


def encode(events: Sequence[RunEvent]) -> bytes:
    """The JSON of a batch of consecutive events; runs of deltas are stored as one entry.

    Nothing is lost by that: `decode` gives the same events again, each with its seq and time.
    """
    return _encoder.encode(_joined(events))


def decode(first_seq: int, batch: bytes | str) -> list[RunEvent]:
    """The events of a batch whose first one has `first_seq`."""
    seq, events = first_seq, []
    for at, stored in _decoder.decode(batch):
        if isinstance(stored, _MessageDeltas | _ReasoningDeltas):
            kind = MessageDelta if isinstance(stored, _MessageDeltas) else ReasoningDelta
            for text, later in zip(stored.texts, stored.later, strict=True):
                events.append(RunEvent(seq, at + later, kind(stored.message_id, text)))
                seq += 1
        else:
            events.append(RunEvent(seq, at, stored))
            seq += 1
    return events


def _joined(events: Sequence[RunEvent]) -> list[tuple[int, _Stored]]:
    """What is stored: deltas that follow each other in one message become one entry."""
    joined: list[tuple[int, _Stored]] = []
    place, end = 0, len(events)
    while place < end:
        event = events[place]
        fact = event.fact
        last = place + 1
        if isinstance(fact, MessageDelta | ReasoningDelta):
            while last < end and _continues(events[last].fact, fact):
                last += 1
        joined.append((event.at, fact if last == place + 1 else _deltas(events[place:last])))
        place = last
    return joined


def _continues(fact: Fact, first: MessageDelta | ReasoningDelta) -> bool:
    return isinstance(fact, type(first)) and fact.message_id == first.message_id


def _deltas(events: Sequence[RunEvent]) -> _MessageDeltas | _ReasoningDeltas:
    first, facts = events[0].fact, [event.fact for event in events]
    texts = [fact.text for fact in facts if isinstance(fact, MessageDelta | ReasoningDelta)]
    later = [event.at - events[0].at for event in events]
    if isinstance(first, MessageDelta):
        return _MessageDeltas(first.message_id, texts, later)
    assert isinstance(first, ReasoningDelta)
    return _ReasoningDeltas(first.message_id, texts, later)
