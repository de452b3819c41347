"""The runner dialect (seed 003): an event in, the result stream out, in the seed's own envelope.

A body is the part of a context that comes from outside: `input`, and optionally `event`, `trigger`,
`conversation`, `metadata`. An event that is no message (a member who joins, a schedule) needs no input
and names its `actor` and `subject`; those of a message are set by the Host.

Each frame is an AgentRunResult. A `message.delta` holds the next piece of its message (seed §6.3), and
`message.completed` always the whole.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Final, get_args
from uuid import UUID

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from agents.dialects import client_inputs
from agents.dialects.artifact_links import file_facts
from agents.dialects.base import Encoder, Frame, RunHead
from agents.dialects.client_inputs import check_count, session_thread
from agents.dialects.wire import encode_json
from agents.host_protocol import results
from agents.host_protocol.messages import (
    Content,
    ContentElement,
    Message,
    MessageChunk,
    TokenUsage,
    text_in,
)
from agents.host_protocol.results import RunResult
from agents.requests import (
    Actor,
    Happened,
    InputMessage,
    RunRequest,
    Subject,
    TriggerSource,
    Upload,
)
from config.errors import InvalidRequest
from conversations import events
from conversations.events import RunEvent

NAME: Final = "runner"
OPENING: Final = b""
_LONGEST_ID: Final = 128
_LARGEST_EVENT: Final = 64 * 1024
_Name = Annotated[str, Meta(min_length=1, max_length=128)]
MESSAGE: Final = "message.received"
_HOSTS_OWN: Final = "approval.decided"
_HEX: Final = re.compile(r"[0-9a-fA-F]{32}")


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


class RunnerBody(Struct, frozen=True):
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
    """Return the request; raise InvalidRequest `invalid_request`, `text_required`, `id_too_long`."""
    parsed: RunnerBody = _convert(body, RunnerBody)
    text = _text(parsed)
    talk = parsed.conversation
    session = (talk.conversation_id or talk.thread_id) if talk else None
    client_run_id = parsed.run_id or parsed.event.event_id
    if max(len(session or ""), len(client_run_id or "")) > _LONGEST_ID:
        raise InvalidRequest(f"An id has at most {_LONGEST_ID} characters.", code="id_too_long")
    return RunRequest(
        dialect=NAME,
        model=parsed.model,
        messages=_messages(text, parsed),
        request_id=request_id,
        client_run_id=client_run_id,
        forwarded_props=parsed.metadata.get("params"),
        event=_happened(parsed),
        **_thread(session),
    )


def _convert(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as problem:
        raise InvalidRequest(f"The body is no run of a runner: {problem}") from None


def _text(parsed: RunnerBody) -> str:
    """Return the words of the event. Raise InvalidRequest for a message without any."""
    content = parsed.input or _Input()
    text = content.text if content.text is not None else text_in(content.contents)
    if text.strip():
        return text
    if _files(parsed) or parsed.event.event_type != MESSAGE:
        return ""
    if parsed.input is None:
        raise InvalidRequest("The body is no run of a runner: a message needs `input`.")
    raise InvalidRequest("input.text must not be empty.", code="text_required")


def _messages(text: str, parsed: RunnerBody) -> tuple[InputMessage, ...]:
    """Return the message, with the images and files of `input.contents`."""
    uploads = tuple(_upload(part, place) for place, part in _files(parsed))
    check_count(uploads)
    return (InputMessage("user", text, uploads=uploads),) if text or uploads else ()


def _files(parsed: RunnerBody) -> list[tuple[str, ContentElement]]:
    """Return the contents that are no text, with their places."""
    contents = parsed.input.contents if parsed.input else None
    parts = contents if isinstance(contents, list) else []
    placed = ((f"input.contents[{at}]", part) for at, part in enumerate(parts))
    return [(place, part) for place, part in placed if part.type != "text"]


def _upload(part: ContentElement, place: str) -> Upload:
    """Return a content in the form of seed 003's SDK. Raise InvalidRequest for another type."""
    match part.type:
        case "image_url":
            url = part.image_url.url if part.image_url else ""
            return client_inputs.image_upload(url, f"{place}.image_url")
        case "image_base64":
            found = client_inputs.parse_data_url(part.image_base64 or "")
            data = found.data if found else part.image_base64 or ""
            return Upload("", data=data, place=f"{place}.image_base64")
        case "file_url":
            url, name = part.file_url or "", part.file_name or ""
            return client_inputs.file_upload(f"{place}.file_url", url=url, name=name)
        case "file_base64":
            data, name = part.file_base64 or "", part.file_name or ""
            return client_inputs.file_upload(f"{place}.file_base64", data=data, name=name)
    raise client_inputs.unsupported_kind(place, "of another type")


def _happened(parsed: RunnerBody) -> Happened | None:
    """Return the caller's facts of the event; None for a message without any."""
    event = parsed.event
    is_message = event.event_type == MESSAGE
    facts = {"data": event.data, "actor": parsed.actor, "subject": parsed.subject}
    if len(encode_json(facts)) > _LARGEST_EVENT:
        raise InvalidRequest("event.data, actor and subject have at most 64 KiB of JSON together.")
    if event.event_type == _HOSTS_OWN:
        raise InvalidRequest(f"{_HOSTS_OWN} is the Host's own event.")
    if event.event_time is not None and not 0 <= event.event_time < 2**40:
        raise InvalidRequest("event.event_time is in epoch seconds.")
    happened = Happened(
        event_type=event.event_type,
        event_id=event.event_id or "",
        event_time=None if event.event_time is None else int(event.event_time),
        source=event.source or parsed.trigger.source or "api",
        source_event_type=event.source_event_type,
        data=event.data or {},
        trigger=parsed.trigger.source or _trigger(event.source),
        actor=None if is_message else _convert(parsed.actor, Actor | None),
        subject=None if is_message else _convert(parsed.subject, Subject | None),
    )
    untold = replace(happened, event_id="") == Happened(MESSAGE)
    return None if is_message and untold else happened


def _trigger(source: str | None) -> TriggerSource:
    """Return the trigger's source if only the event's is known."""
    return source if source in get_args(TriggerSource) else "api"  # type: ignore[return-value]


def _thread(session: str | None) -> dict[str, Any]:
    """Return the thread of a conversation's id, with or without hyphens, or of any other name."""
    if session and _HEX.fullmatch(session):
        return {"thread_id": str(UUID(session))}
    return session_thread(session)


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Return true: the answer is the result stream."""
    return True


def accepted(head: RunHead) -> dict[str, Any]:
    """Return the answer to a run that was not streamed."""
    return {"run_id": head.run_id.hex, "conversation_id": head.thread_id.hex}


class RunnerEncoder(Encoder):
    """An encoder of events as results; `sequence` counts them from 1."""

    def __init__(self, head: RunHead) -> None:
        self._run_id = head.run_id.hex
        self._sequence = 0

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """Return the frame of the next event, if it is one of the seed's."""
        payload = _payload(event.fact)
        if payload is None:
            return ()
        self._sequence += 1
        kind = event.type  # the seed has the same names
        result = RunResult(
            run_id=self._run_id,
            type=kind,
            data=msgspec.to_builtins(payload),
            usage=_usage(event.fact),
            sequence=self._sequence,
            timestamp=event.at // 1000,
        )
        return (Frame(kind, encode_json(result), event.seq),)


def _payload(fact: events.Fact | events.LaterFact) -> Struct | dict[str, Any] | None:
    """Return the data of the fact's result; None for a fact that the seed does not have."""
    match fact:
        case events.MessageDelta(message_id, text) if text:
            piece = MessageChunk(role="assistant", content=text, resp_message_id=message_id)
            return results.MessageDeltaData(piece)
        case events.MessageCompleted(body):
            whole = Message(role=body.role, content=body.content, resp_message_id=body.message_id)
            return results.MessageCompletedData(whole)
        case events.ToolCallStarted(call_id, name, parameters):
            return results.ToolStartedData(call_id, name, parameters)
        case events.ToolCallCompleted(call_id, name) as ended:
            problem = ended.error.message if ended.error else None
            return results.ToolCompletedData(call_id, name, ended.result, problem)
        case events.ArtifactCreated():
            return file_facts(fact)
        case events.StateUpdated("thread", key, value):
            # Other scopes (such as a server's list of tools) are no state of the protocol.
            return results.StateUpdatedData("conversation", key, value)
        case events.ActionRequested(action, target, payload):
            return results.ActionRequestedData(action, target, payload)
        case events.RunCompleted(reason):
            return results.RunCompletedData(reason)
        case events.RunFailed(code, message, retryable):
            return results.RunFailedData(code, message, message, retryable)
    return None


def _usage(fact: events.Fact | events.LaterFact) -> TokenUsage | None:
    if not isinstance(fact, events.RunCompleted):
        return None
    used = fact.usage
    return TokenUsage(used.input_tokens, used.output_tokens, used.input_tokens + used.output_tokens)


encoder: Final = RunnerEncoder
