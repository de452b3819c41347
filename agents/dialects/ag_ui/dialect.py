"""AG-UI as its public clients use it (specs/ag-ui.md): the whole history every turn, a stream back.

Our own messages come back with the history: they are shown, but are no request. The place where the run
goes on is determined where the thread is known. A client that lost its connection sends the same run
again.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Annotated, Any, Final

from agents.dialects import client_inputs
from agents.dialects.ag_ui import message_ids
from agents.dialects.ag_ui.body import (
    BinaryPart,
    Body,
    DocumentPart,
    ImagePart,
    Message,
    TextPart,
    drop_unknown,
)
from agents.dialects.ag_ui.encoder import AgUiEncoder
from agents.dialects.base import RunHead, prefers_json
from agents.dialects.client_inputs import Parts
from agents.dialects.field_errors import validate_body
from agents.dialects.generation import forwarded_options
from agents.dialects.wire import json_text
from agents.requests import (
    AskedCall,
    ClientTool,
    ContextItem,
    InputMessage,
    InterruptAnswer,
    RunRequest,
    Upload,
)
from config.errors import InvalidRequest
from config.http.documentation.json_types import Hex, Shown, noted
from conversations import identifiers

NAME: Final = "ag-ui"
OPENING: Final = b""
encoder: Final = AgUiEncoder
LONGEST_TEXT: Final = 1_000_000
_SDK: Final = frozenset({"state", "tools", "context", "forwarded_props"})


def parse(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """Return the canonical request; raise InvalidRequest in words for people, who see them."""
    messages, left_out = drop_unknown(body.get("messages"))
    parsed = validate_body(Body, body | {"messages": messages}, "RunAgentInput")
    own = [not _is_ours(message) for message in parsed.messages]
    _check_newest([*compress(parsed.messages, own)])
    shown = _messages(parsed.messages)
    tools = _tools(parsed)
    return RunRequest(
        dialect=NAME,
        messages=tuple(compress(shown, own)),
        request_id=request_id,
        known="whole" if _is_whole(parsed) else "tail",
        shown=tuple(shown),
        client_run_id=parsed.run_id,
        parent_run_id=parsed.parent_run_id,
        tools=tools,
        context=tuple(ContextItem(c.description, _as_text(c.value)) for c in parsed.context or ()),
        state=parsed.state or None,
        answers=tuple(InterruptAnswer(r.interrupt_id, r.status, r.payload) for r in parsed.resume or ()),
        wire=_wire(parsed, left_out),
        **client_inputs.named_thread(parsed.thread_id),
        **forwarded_options(parsed.forwarded_props),
    )


def _wire(parsed: Body, left_out: list[str]) -> dict[str, Any]:
    wire: dict[str, Any] = {"threadId": parsed.thread_id, "protocolVersion": parsed.protocol_version}
    return wire | ({"leftOut": sorted(set(left_out))} if left_out else {})


def _is_whole(parsed: Body) -> bool:
    """Return whether the messages are the whole conversation.

    They are with protocol 1.0, and with every client made of an SDK, which leaves no member out. A
    client that keeps no history sends `history: "stored"`.
    """
    match parsed.forwarded_props:
        case {"history": "stored"}:
            return False
    return parsed.protocol_version is not None or parsed.model_fields_set >= _SDK


def _is_ours(message: Message) -> bool:
    """Return whether the message is ours; users' and systems' are theirs whatever their ids are."""
    if message.role not in {"assistant", "tool", "reasoning", "activity"}:
        return False
    holds = [identifiers.call_message_id(call.id) for call in message.tool_calls or ()]
    return message_ids.is_ours(message.id) or holds == [message.id]


def _check_newest(messages: Sequence[Message]) -> None:
    """Check the limits of the newest question; older ones were checked when they were new."""
    newest = next((message for message in reversed(messages) if message.role == "user"), None)
    if newest is not None and len(_text_of(newest)) > LONGEST_TEXT:
        raise InvalidRequest(
            f"The message is too long: at most {LONGEST_TEXT:,} characters.", code="user_text_too_long"
        )


def _messages(messages: Sequence[Message]) -> list[InputMessage]:
    """Return the messages, each tool's answer with the name in its call, which may be ours."""
    called = {call.id: call.function.name for message in messages for call in message.tool_calls or ()}
    return [_message(message, f"messages[{at}]", called) for at, message in enumerate(messages)]


def _message(message: Message, where: str, called: dict[str, str]) -> InputMessage:
    if message.role == "tool" and message.tool_call_id is None:
        raise InvalidRequest("A message of role tool needs a toolCallId.", code="tool_call_id_required")
    activity = (
        message.content if message.role == "activity" and isinstance(message.content, dict) else None
    )
    return _parts(message, where).message(
        message.role,
        message.id,
        name=called.get(message.tool_call_id or "", message.name),
        tool_calls=tuple(
            AskedCall(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
        ),
        tool_call_id=message.tool_call_id,
        error=message.error,
        activity_type=message.activity_type,
        encrypted_value=message.encrypted_value,
        metadata={"activity": activity} if activity else {},
    )


def _text_of(message: Message) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = message.content if isinstance(message.content, list) else []
    return "\n".join(part.text for part in parts if isinstance(part, TextPart))


def _parts(message: Message, where: str) -> Parts:
    """Return the texts and files of a message."""
    parts = Parts()
    if isinstance(message.content, str):
        parts.add(message.content)
    for place, part in enumerate(message.content if isinstance(message.content, list) else []):
        here = f"{where}.content[{place}]"
        match part:
            case TextPart():
                parts.add(part.text)
            case ImagePart():
                parts.add(_image(part.source.value, part.source.mime_type, here, part.source.type))
            case DocumentPart():
                parts.add(_document(part, here))
            case _:
                parts.add(_binary(part, here))
    return parts


def _image(value: str, mime_type: str | None, here: str, kind: str) -> Upload:
    found = client_inputs.parse_data_url(value)
    if found or kind == "data":
        media_type = mime_type or (found.mime_type if found else "")
        return Upload(media_type, data=found.data if found else value, place=here)
    return client_inputs.image_upload(value, here, mime_type=mime_type or "")


def _document(part: DocumentPart, here: str) -> Upload:
    about = part.metadata if isinstance(part.metadata, dict) else {}
    name = next((about[key] for key in ("filename", "name") if isinstance(about.get(key), str)), "")
    source, mime_type = part.source, part.source.mime_type or ""
    content = {source.type: source.value}
    return client_inputs.file_upload(here, **content, name=name, mime_type=mime_type)


def _binary(part: BinaryPart, here: str) -> Upload:
    data, url = part.data or "", "" if part.data else part.url or ""
    if part.mime_type.lower().startswith("image/") and (data or url):
        return _image(data or url, part.mime_type, here, "data" if data else "url")
    file_id = "" if data or url else part.id or ""
    name, mime_type = part.filename or "", part.mime_type
    return client_inputs.file_upload(
        here, url=url, data=data, file_id=file_id, name=name, mime_type=mime_type
    )


def _tools(parsed: Body) -> tuple[ClientTool, ...]:
    """Return the client's tools by name, which may be any (`providers.tool_names`)."""
    tools: dict[str, ClientTool] = {}
    for tool in parsed.tools or ():
        parameters = tool.parameters if isinstance(tool.parameters, dict) else {}
        tools[tool.name] = ClientTool(tool.name, tool.description or "", parameters)
    return tuple(tools.values())


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Return true, unless the client accepts JSON and nothing else."""
    return not prefers_json(accept)


class AgUiAccepted(Shown, frozen=True, rename="camel"):
    """The response to an AG-UI run that is not streamed."""

    task_id: Annotated[Hex, noted("The run's id on this server.")]
    thread_id: str
    run_id: str


def accepted(head: RunHead) -> AgUiAccepted:
    """Return the ids of the run, for a client that wants to follow it elsewhere."""
    return AgUiAccepted(head.run_id.hex, *message_ids.run_ids(head))
