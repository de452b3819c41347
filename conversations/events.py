"""The canonical events: what can happen in a run, said once for every dialect (DESIGN §5).

A *fact* is one typed thing that happened; a `RunEvent` is a fact with its place (`seq`, counted
from 1 within the run without a gap) and time (`at`, epoch milliseconds). The JSON of a batch is
`[[at, {"type": …, …}], …]`: the sequence numbers follow from the batch's first one, and deltas
that follow each other share one entry.

This module stands alone so that dialects, the fold and tests can use it without a database.
Adding a fact means adding it to `Fact`; a dialect that does not know it must ignore it, and so does
the release before, which may run beside this one (`LaterFact`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from decimal import Decimal
from typing import Any, ClassVar, Final, Literal, get_args

from msgspec import Raw, Struct, ValidationError, field, json
from msgspec.json import Decoder, Encoder
from msgspec.structs import replace

_LARGEST_COUNT: Final = 2**31 - 1
ToolKind = Literal["function", "frontend", "mcp", "plugin", "component"]
FailureCode = str


class Problem(Struct, frozen=True):
    """Why a tool call failed: a code for programs and a sentence for people."""

    code: str
    message: str


class MessageContent(Struct, frozen=True, omit_defaults=True):
    """What a message holds beside its text (seed 004 §3): a picture, a sound, a film, a file, data.

    Of the first four either the `url` (http, https or `data:`) or the base64 `data`; `format` is a
    sound's, `name` a file's. A copy of what is inline is an artifact (`artifact_id`). `value` is data.
    """

    type: Literal["image", "audio", "video", "file", "data"]
    url: str = ""
    data: str = ""
    format: str = ""
    name: str = ""
    artifact_id: str = ""
    value: dict[str, Any] | None = None

    @property
    def kept(self) -> MessageContent:
        """Return itself as it is stored: without the data that an artifact holds."""
        if not self.artifact_id:
            return self
        return replace(self, data="", url="" if self.url.startswith("data:") else self.url)


class MessageBody(Struct, frozen=True, omit_defaults=True):
    """A finished message as a runner says it."""

    message_id: str
    role: Literal["assistant", "tool", "user", "system", "reasoning"]
    content: str
    metadata: dict[str, Any] = {}
    ui_hints: dict[str, Any] | None = None
    contents: list[MessageContent] = []


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens counted by the provider (0 where it did not say).

    Input includes what was read from (`cached_tokens`) and written to its cache, output the reasoning.
    `cost_usd` is what is known of the cost: None where no price is. `unpriced_tokens`, among the input
    and output, are those that it leaves out.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: Decimal | None = None
    unpriced_tokens: int = 0

    def plus(self, other: Usage) -> Usage:
        """Return the sum of both, as far as a column holds it; unknown costs stay unpriced."""
        known = [cost for cost in (self.cost_usd, other.cost_usd) if cost is not None]
        return Usage(
            min(self.input_tokens + other.input_tokens, _LARGEST_COUNT),
            min(self.output_tokens + other.output_tokens, _LARGEST_COUNT),
            min(self.cached_tokens + other.cached_tokens, _LARGEST_COUNT),
            min(self.reasoning_tokens + other.reasoning_tokens, _LARGEST_COUNT),
            min(self.cache_write_tokens + other.cache_write_tokens, _LARGEST_COUNT),
            sum(known, Decimal()) if known else None,
            min(self.unpriced_tokens + other.unpriced_tokens, _LARGEST_COUNT),
        )


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


class ModelCompleted(Struct, frozen=True, tag="model.completed", omit_defaults=True):
    """A call of a model is over: what it used, and what that cost where the price is known.

    One that broke off has no `finish_reason`, and as much usage as the provider had told by then.
    `upstream_reason` is the provider's own word where it differs, `message_id` what it was asked for.
    """

    provider: str
    model: str
    endpoint_id: int | None = None
    usage: Usage = field(default_factory=Usage)
    finish_reason: str = ""
    upstream_reason: str = ""
    message_id: str = ""


class StageStarted(Struct, frozen=True, tag="stage.started"):
    stage: str


class StageCompleted(Struct, frozen=True, tag="stage.completed", omit_defaults=True):
    """`summary` says in a few words what the stage decided."""

    stage: str
    latency_ms: int
    summary: str = ""


class ReasoningDelta(Struct, frozen=True, gc=False, tag="reasoning.delta"):
    message_id: str
    text: str


class MessageDelta(Struct, frozen=True, gc=False, tag="message.delta"):
    message_id: str
    text: str


class MessageCompleted(Struct, frozen=True, tag="message.completed", omit_defaults=True):
    """A whole message; with `replaces` its words stand in place of the pieces that were streamed."""

    message: MessageBody
    replaces: bool = False


class ToolCallStarted(Struct, frozen=True, tag="tool.call.started", omit_defaults=True):
    """The first call that a model makes in one breath carries its `reasoning`, signed or encrypted, in
    the provider's own form: it must be given back with the answers. No dialect shows it."""

    tool_call_id: str
    tool_name: str
    parameters: dict[str, Any] = {}
    kind: ToolKind = "function"
    server_label: str = ""
    reasoning: list[dict[str, Any]] = []


class ToolCallCompleted(Struct, frozen=True, tag="tool.call.completed", omit_defaults=True):
    """An outcome. Of a call that an earlier run (`asked_in`, 32 hex digits) made and somebody had to
    approve (`approval_id`) it stands alone: with the `parameters` that the tool was called with, its
    kind and its server."""

    tool_call_id: str
    tool_name: str
    ok: bool
    elapsed_ms: int
    result: dict[str, Any] | None = None
    error: Problem | None = None
    ui_hints: dict[str, Any] | None = None
    parameters: dict[str, Any] | None = None
    asked_in: str | None = None
    approval_id: str | None = None
    kind: ToolKind = "function"
    server_label: str = ""


class ArtifactCreated(Struct, frozen=True, tag="artifact.created"):
    artifact_id: str
    artifact_type: str
    mime_type: str
    name: str
    size_bytes: int


class StateUpdated(Struct, frozen=True, tag="state.updated"):
    """In the scope `thread` the key is a JSON Pointer (RFC 6901); "" replaces the whole state."""

    scope: str
    key: str
    value: Any


class ActionRequested(Struct, frozen=True, tag="action.requested"):
    action: str
    target: dict[str, Any] | None = None
    payload: dict[str, Any] | None = None


class UpstreamRaw(Struct, frozen=True, tag="upstream.raw", omit_defaults=True):
    """A piece of the provider's stream as it came, or its beginning if it was `truncated`."""

    dialect: str
    raw: str
    upstream_event: str | None = None
    truncated: bool = False


class RunCompleted(Struct, frozen=True, tag="run.completed", omit_defaults=True):
    """`metadata` is what is said of the whole reply, such as `thinkingml`, the validator's verdict."""

    finish_reason: str
    usage: Usage = field(default_factory=Usage)
    interrupts: list[dict[str, Any]] = []
    metadata: dict[str, Any] = {}


class RunFailed(Struct, frozen=True, tag="run.failed"):
    code: FailureCode
    message: str
    retryable: bool = False


Fact = (
    RunQueued
    | RunStarted
    | ModelRouted
    | ModelCompleted
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
DELTAS: Final = (MessageDelta, ReasoningDelta)


class LaterFact(Struct, frozen=True):
    """A fact that a later release wrote and this one does not know: its JSON, as it is stored."""

    type: str
    stored: bytes


class RunEvent(Struct, frozen=True, gc=False):
    """One fact at its place in a run's log, in no reference cycle."""

    seq: int
    at: int
    fact: Fact | LaterFact

    @property
    def type(self) -> str:
        if isinstance(self.fact, LaterFact):
            return self.fact.type
        return str(type(self.fact).__struct_config__.tag)


def now_ms() -> int:
    """Return epoch milliseconds."""
    return time.time_ns() // 1_000_000


class _Deltas(Struct, frozen=True):
    """Consecutive deltas of one message as they are stored; `later` are milliseconds after the first."""

    message_id: str
    texts: list[str]
    later: list[int]


class _MessageDeltas(_Deltas, frozen=True, tag="message.deltas"):
    delta: ClassVar = MessageDelta


class _ReasoningDeltas(_Deltas, frozen=True, tag="reasoning.deltas"):
    delta: ClassVar = ReasoningDelta


_Known = Fact | _MessageDeltas | _ReasoningDeltas
_Stored = _Known | LaterFact
_encoder: Final = Encoder()
_decoder: Final = Decoder(list[tuple[int, _Known]])
_TAGS: Final = frozenset(str(kind.__struct_config__.tag) for kind in get_args(_Known))


def encode(events: Sequence[RunEvent]) -> bytes:
    """Return the JSON of a batch of consecutive events; runs of deltas are stored as one entry.

    That loses nothing: `decode` returns the same events, each with its seq and time.
    """
    return _encoder.encode(_joined(events))


def decode(first_seq: int, batch: bytes | str) -> list[RunEvent]:
    """Return the events of a batch whose first one has `first_seq`."""
    seq, events = first_seq, list[RunEvent]()
    for at, stored in _stored(batch):
        if isinstance(stored, _Deltas):
            for text, later in zip(stored.texts, stored.later, strict=True):
                events.append(RunEvent(seq, at + later, stored.delta(stored.message_id, text)))
                seq += 1
        else:
            events.append(RunEvent(seq, at, stored))
            seq += 1
    return events


def decode_joined(first_seq: int, batch: bytes | str) -> list[RunEvent]:
    """Return the events of a batch, adjacent deltas as one with the `seq` of the last of them.

    Folding needs no more of them, and a text in a million pieces costs no more than one in ten.
    """
    seq, events = first_seq - 1, list[RunEvent]()
    for at, stored in _stored(batch):
        if isinstance(stored, _Deltas):
            seq += len(stored.texts)
            events.append(RunEvent(seq, at, stored.delta(stored.message_id, "".join(stored.texts))))
        else:
            seq += 1
            events.append(RunEvent(seq, at, stored))
    return events


def _stored(batch: bytes | str) -> Sequence[tuple[int, _Stored]]:
    """Return a batch's entries. Raise msgspec.ValidationError for one that is not as it must be."""
    try:
        return _decoder.decode(batch)
    except ValidationError:
        entries = json.decode(batch, type=list[tuple[int, Raw]])
        return [(at, _read_entry(bytes(entry))) for at, entry in entries]


def _read_entry(entry: bytes) -> _Stored:
    tag = json.decode(entry, type=dict[str, Any]).get("type")
    if isinstance(tag, str) and tag not in _TAGS:
        return LaterFact(tag, entry)
    known: _Stored = json.decode(entry, type=_Known)
    return known


def _joined(events: Sequence[RunEvent]) -> list[tuple[int, _Known | Raw]]:
    """Return the stored form: deltas that follow each other in one message become one entry."""
    joined: list[tuple[int, _Known | Raw]] = []
    place, end = 0, len(events)
    while place < end:
        event = events[place]
        fact = event.fact
        last = place + 1
        if isinstance(fact, DELTAS):
            while last < end and _continues(events[last].fact, fact):
                last += 1
        if isinstance(fact, LaterFact):
            joined.append((event.at, Raw(fact.stored)))
        else:
            joined.append((event.at, fact if last == place + 1 else _deltas(events[place:last])))
        place = last
    return joined


def _continues(fact: Fact | LaterFact, first: MessageDelta | ReasoningDelta) -> bool:
    return isinstance(fact, type(first)) and fact.message_id == first.message_id


def _deltas(events: Sequence[RunEvent]) -> _MessageDeltas | _ReasoningDeltas:
    facts = [event.fact for event in events if isinstance(event.fact, DELTAS)]
    kind = _MessageDeltas if isinstance(facts[0], MessageDelta) else _ReasoningDeltas
    later = [event.at - events[0].at for event in events]
    return kind(facts[0].message_id, [fact.text for fact in facts], later)
