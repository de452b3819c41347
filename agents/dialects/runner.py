"""The runner dialect (seed 003): an event in, the result stream out, in the seed's own envelope.

A body is what a context says of the outside: `input`, and if wanted `event`, `trigger`, `conversation`,
`metadata`. An event that is no message (a member who joins, a schedule) needs no input and says who
did what in `actor` and `subject`; of a message those are the Host's to say.

Each frame is an AgentRunResult. A `message.delta` holds all of the text so far; so that a long answer
does not cost its square, a snapshot goes out once the text has grown by a sixteenth, and
`message.completed` always holds it whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, get_args
from uuid import UUID

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from agents.dialects.base import Frame, RunHead
from agents.dialects.given import thread_of
from agents.hosting import results
from agents.hosting.messages import Content, Message, MessageChunk, TokenUsage, text_in
from agents.hosting.results import RunResult
from agents.requests import Actor, Happened, InputMessage, RunRequest, Subject, TriggerSource
from config.errors import InvalidRequest
from conversations import events
from conversations.events import RunEvent, Usage

NAME: Final = "runner"
OPENING: Final = b""
_LONGEST_ID: Final = 128
_GROWN: Final = 16
_LARGEST_EVENT: Final = 64 * 1024
_Name = Annotated[str, Meta(min_length=1, max_length=128)]
MESSAGE: Final = "message.received"
_HOSTS_OWN: Final = "approval.decided"
_HEX: Final = re.compile(r"[0-9a-fA-F]{32}")
_encode: Final = msgspec.json.Encoder().encode


class _Input(Struct, frozen=True):
    text: str | None = None
    contents: Content = None


class _Conversation(Struct, frozen=True):
    conversation_id: str | None = None
    thread_id: str | None = None


class _Event(Struct, frozen=True):
    event_id: str | None = None
    event_type: _Name = MESSAGE
    event_time: float | None = None
    source: _Name | None = None
    source_event_type: _Name | None = None
    data: dict[str, Any] | None = None


class _Trigger(Struct, frozen=True):
    source: TriggerSource | None = None


class _Body(Struct, frozen=True):
    """What a caller says of a run; the rest of an AgentRunContext is the Host's to say."""

    input: _Input | None = None
    event: _Event = _Event()
    trigger: _Trigger = _Trigger()
    actor: Any = None
    subject: Any = None
    conversation: _Conversation | None = None
    run_id: str | None = None
    model: str = ""
    metadata: dict[str, Any] = {}


def parse(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """The canonical request. InvalidRequest `invalid_request`, `text_required` or `id_too_long`."""
    try:
        asked = msgspec.convert(body, _Body)
    except msgspec.ValidationError as problem:
        raise InvalidRequest(f"The body is no run of a runner: {problem}") from None
    text = _text(asked)
    talk = asked.conversation
    session = (talk.conversation_id or talk.thread_id) if talk else None
    client_run_id = asked.run_id or asked.event.event_id
    if max(len(session or ""), len(client_run_id or "")) > _LONGEST_ID:
        raise InvalidRequest(f"An id has at most {_LONGEST_ID} characters.", code="id_too_long")
    return RunRequest(
        dialect=NAME,
        model=asked.model,
        messages=(InputMessage("user", text),) if text else (),
        request_id=request_id,
        client_run_id=client_run_id,
        forwarded_props=asked.metadata.get("params"),
        event=_happened(asked),
        **_thread(session),
    )


def _text(asked: _Body) -> str:
    """The words of the event. InvalidRequest for a message without any."""
    given = asked.input or _Input()
    text = given.text if given.text is not None else text_in(given.contents)
    if text.strip():
        return text
    if asked.event.event_type != MESSAGE:
        return ""
    if asked.input is None:
        raise InvalidRequest("The body is no run of a runner: a message needs `input`.")
    raise InvalidRequest("input.text must not be empty.", code="text_required")


def _happened(asked: _Body) -> Happened | None:
    """What the caller says of the event; None of a message of which nothing more is said."""
    event = asked.event
    is_message = event.event_type == MESSAGE
    said = {"data": event.data, "actor": asked.actor, "subject": asked.subject}
    if len(_encode(said)) > _LARGEST_EVENT:
        raise InvalidRequest("event.data, actor and subject have at most 64 KiB of JSON together.")
    if event.event_type == _HOSTS_OWN:
        raise InvalidRequest(f"{_HOSTS_OWN} is the Host's own event.")
    if event.event_time is not None and not 0 <= event.event_time < 2**40:
        raise InvalidRequest("event.event_time is in epoch seconds.")
    try:
        happened = Happened(
            event_type=event.event_type,
            event_id=event.event_id or "",
            event_time=None if event.event_time is None else int(event.event_time),
            source=event.source or asked.trigger.source or "api",
            source_event_type=event.source_event_type,
            data=event.data or {},
            trigger=asked.trigger.source or _trigger(event.source),
            actor=None if is_message else msgspec.convert(asked.actor, Actor | None),
            subject=None if is_message else msgspec.convert(asked.subject, Subject | None),
        )
    except msgspec.ValidationError as problem:
        raise InvalidRequest(f"The body is no run of a runner: {problem}") from None
    untold = replace(happened, event_id="") == Happened(MESSAGE)
    return None if is_message and untold else happened


def _trigger(source: str | None) -> TriggerSource:
    """The trigger's source where only the event's is told."""
    return source if source in get_args(TriggerSource) else "api"  # type: ignore[return-value]


def _thread(session: str | None) -> dict[str, Any]:
    """A conversation's id, with or without hyphens, or a name of the caller's own."""
    if session and _HEX.fullmatch(session):
        return {"thread_id": str(UUID(session))}
    return thread_of(session)


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Always: the answer is the result stream."""
    return True


def accepted(head: RunHead) -> dict[str, Any]:
    """For a run that was not streamed."""
    return {"run_id": head.run_id.hex, "conversation_id": head.thread_id.hex}


def encoder(head: RunHead) -> RunnerEncoder:
    """A fresh encoder for one reader."""
    return RunnerEncoder(head)


class RunnerEncoder:
    """Events as results; `sequence` counts them from 1."""

    def __init__(self, head: RunHead) -> None:
        self._run_id = head.run_id.hex
        self._sequence = 0
        self._texts: dict[str, list[str]] = {}
        self._lengths: dict[str, int] = {}
        self._shown: dict[str, int] = {}

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """The frame of the next event, if it is one of the seed's."""
        said = self._result(event.fact)
        if said is None:
            return ()
        kind, payload, usage = said
        self._sequence += 1
        result = RunResult(
            run_id=self._run_id,
            type=kind,
            data=payload,
            usage=usage,
            sequence=self._sequence,
            timestamp=event.at // 1000,
        )
        return (Frame(kind, _encode(result), event.seq),)

    def heartbeat(self, at_ms: int) -> Frame | None:
        return None

    def _result(self, fact: events.Fact) -> tuple[str, dict[str, Any], TokenUsage | None] | None:
        match fact:
            case events.MessageDelta(message_id, text):
                return self._delta(message_id, text)
            case events.MessageCompleted(body):
                whole = Message(role=body.role, content=body.content, resp_message_id=body.message_id)
                return _said(results.MESSAGE_COMPLETED, results.SaidWhole(whole))
            case events.ToolCallStarted(call_id, name, parameters):
                return _said(results.TOOL_STARTED, results.ToolBegun(call_id, name, parameters))
            case events.ToolCallCompleted(call_id, name) as ended:
                problem = ended.error.message if ended.error else None
                return _said(
                    results.TOOL_COMPLETED, results.ToolEnded(call_id, name, ended.result, problem)
                )
            case events.ArtifactCreated():
                return results.ARTIFACT_CREATED, _artifact(fact), None
            case events.StateUpdated(scope, key, value):
                where = "conversation" if scope == "thread" else scope
                return _said(results.STATE_UPDATED, results.StateSaid(where, key, value))
            case events.ActionRequested(action, target, payload):
                return _said(results.ACTION_REQUESTED, results.ActionSaid(action, target, payload))
            case events.RunCompleted(reason, usage):
                kind, data, _ = _said(results.RUN_COMPLETED, results.Completed(reason))
                return kind, data, _usage(usage)
            case events.RunFailed(code, message, retryable):
                return _said(results.RUN_FAILED, results.Failed(code, message, message, retryable))
        return None

    def _delta(self, message_id: str, text: str) -> tuple[str, dict[str, Any], TokenUsage | None] | None:
        """A snapshot of the message, if it has grown enough to be worth one."""
        pieces = self._texts.setdefault(message_id, [])
        pieces.append(text)
        length = self._lengths[message_id] = self._lengths.get(message_id, 0) + len(text)
        shown = self._shown.get(message_id, 0)
        if length - shown < shown // _GROWN:
            return None
        self._texts[message_id] = ["".join(pieces)]
        self._shown[message_id] = length
        chunk = MessageChunk(
            role="assistant", content=self._texts[message_id][0], resp_message_id=message_id
        )
        return _said(results.MESSAGE_DELTA, results.Said(chunk))


def _said(kind: str, payload: Struct) -> tuple[str, dict[str, Any], TokenUsage | None]:
    return kind, msgspec.to_builtins(payload), None


def _usage(usage: Usage) -> TokenUsage:
    whole = usage.input_tokens + usage.output_tokens
    return TokenUsage(usage.input_tokens, usage.output_tokens, whole)


def _artifact(made: events.ArtifactCreated) -> dict[str, Any]:
    """The file's facts; the event's own tag is the envelope's to say."""
    told: dict[str, Any] = msgspec.to_builtins(made)
    told.pop("type", None)
    return told
