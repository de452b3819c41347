"""RunAgentInput by seed 000's own rules (specs/run-agent-input.md §1): one question per run.

The seed's rules are checked in the order of its table, each with its exact message. Messages after the
user message are context: a client that executed a tool sends its question again, followed by the
assistant's call and the tool's answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agents.dialects.ag_ui.dialect import AgUiAccepted
from agents.dialects.ag_ui.encoder import AgUiEncoder
from agents.dialects.ag_ui.message_ids import run_ids
from agents.dialects.base import (
    LONGEST_DESCRIPTION,
    MOST_CONTEXT,
    MOST_TOOLS,
    RunHead,
    wants_stream,
)
from agents.dialects.client_inputs import Parts, check_count, is_thread_id, named_thread
from agents.dialects.field_errors import validate_body
from agents.dialects.generation import forwarded_options
from agents.requests import (
    AskedCall,
    ClientTool,
    ContextItem,
    InputMessage,
    RunRequest,
    Upload,
)
from config.errors import InvalidRequest
from config.http.documentation.json_types import Time

NAME: Final = "run-agent-input"
OPENING: Final = b""
encoder: Final = AgUiEncoder
LONGEST_RUN_ID: Final = 128
LONGEST_NAME: Final = 200  # of a thread that a client names (seed 001)
MOST_MESSAGES: Final = 200
LONGEST_TEXT: Final = 10_000

_Id = Annotated[str, StringConstraints(min_length=1, max_length=200)]


class _Part(BaseModel):
    """A closed shape with open ends: unknown members are left unread."""

    model_config = ConfigDict(extra="ignore", strict=True, hide_input_in_errors=True)


class TextBlock(_Part):
    type: Literal["text"]
    text: str


class BinaryBlock(_Part):
    """Its rules are the seed's and have messages of their own, so every field may be missing here."""

    type: Literal["binary"]
    mimeType: str | None = None  # noqa: N815
    id: str | None = None
    url: str | None = None
    data: str | None = None
    filename: str | None = None


class UserMessage(_Part):
    id: _Id
    role: Literal["user"]
    content: str | list[Annotated[TextBlock | BinaryBlock, Field(discriminator="type")]]
    name: str | None = None
    encryptedValue: str | None = None  # noqa: N815


class _Function(_Part):
    name: str
    arguments: str


class ToolCall(_Part):
    id: _Id
    type: Literal["function"] = "function"
    function: _Function
    encryptedValue: str | None = None  # noqa: N815


class AssistantMessage(_Part):
    id: _Id
    role: Literal["assistant"]
    content: str | None = None
    name: str | None = None
    toolCalls: list[ToolCall] | None = None  # noqa: N815
    encryptedValue: str | None = None  # noqa: N815


class SaidMessage(_Part):
    id: _Id
    role: Literal["system", "developer", "reasoning"]
    content: str
    name: str | None = None
    encryptedValue: str | None = None  # noqa: N815


class ToolMessage(_Part):
    id: _Id
    role: Literal["tool"]
    content: str
    toolCallId: _Id  # noqa: N815
    error: str | None = None
    encryptedValue: str | None = None  # noqa: N815


class ActivityMessage(_Part):
    id: _Id
    role: Literal["activity"]
    activityType: Annotated[str, StringConstraints(max_length=200)]  # noqa: N815
    content: dict[str, Any]


Message = UserMessage | AssistantMessage | SaidMessage | ToolMessage | ActivityMessage


class Tool(_Part):
    """Any name is taken: `providers.names` makes of it what a provider allows, and back."""

    name: Annotated[str, StringConstraints(min_length=1)]
    description: Annotated[str, StringConstraints(max_length=LONGEST_DESCRIPTION)] = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class Context(_Part):
    description: str
    value: str


class RunAgentInputBody(_Part):
    """The body in the seed's form; the seed's rules are checked after this shape."""

    threadId: str  # noqa: N815
    runId: Annotated[str, StringConstraints(min_length=1)]  # noqa: N815
    parentRunId: Annotated[str, StringConstraints(max_length=LONGEST_RUN_ID)] | None = None  # noqa: N815
    state: Any = None
    messages: list[Annotated[Message, Field(discriminator="role")]]
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    context: Annotated[list[Context], Field(max_length=MOST_CONTEXT)] | None = None
    forwardedProps: Any = None  # noqa: N815
    resume: Any = None
    protocolVersion: Annotated[str, StringConstraints(max_length=32)] | None = None  # noqa: N815


def parse(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """Return the canonical request; raise InvalidRequest with the seed's messages, or with field errors.

    The size of the body (rule 1) is checked before it is read, the signed URLs (rule 11) where the
    caller is known.
    """
    thread_id = body.get("threadId")
    if thread_id is not None and not is_thread_id(thread_id):
        raise _broken("threadId must be a valid UUID", "invalid_thread_id")
    return _parsed(body, request_id)


def parse_named(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """Return the same if a thread has a name of the client's own, or a UUID (seed 001's example)."""
    thread_id = body.get("threadId")
    if isinstance(thread_id, str) and not 0 < len(thread_id) <= LONGEST_NAME:
        raise _broken(f"threadId must have 1 to {LONGEST_NAME} characters", "invalid_thread_id")
    return _parsed(body, request_id)


def _parsed(body: dict[str, Any], request_id: str) -> RunRequest:
    _check_frame(body)
    parsed = validate_body(RunAgentInputBody, body, "RunAgentInput")
    _check_messages(parsed.messages)
    _check_tools(parsed.tools or [])
    if parsed.resume:
        raise _broken("resume is AG-UI's: POST it to /api/v1/agent/ag-ui", "resume_not_supported")
    return RunRequest(
        dialect=NAME,
        messages=tuple(map(_message, parsed.messages)),
        request_id=request_id,
        known="same" if len(parsed.messages) > 1 else "none",
        client_run_id=parsed.runId,
        parent_run_id=parsed.parentRunId,
        tools=tuple(ClientTool(t.name, t.description, t.parameters) for t in parsed.tools or ()),
        context=tuple(ContextItem(item.description, item.value) for item in parsed.context or ()),
        state=parsed.state,
        wire={"threadId": parsed.threadId, "protocolVersion": parsed.protocolVersion},
        **named_thread(parsed.threadId),
        **forwarded_options(parsed.forwardedProps),
    )


def _check_frame(body: dict[str, Any]) -> None:
    """Check rules 3 and 4, before anything is read that they limit."""
    run_id, messages = body.get("runId"), body.get("messages")
    if isinstance(run_id, str) and len(run_id) > LONGEST_RUN_ID:
        raise _broken("runId exceeds length limit", "run_id_too_long")
    if isinstance(messages, list) and len(messages) > MOST_MESSAGES:
        raise _broken("RunAgentInput.messages exceeds limit", "too_many_messages")


def _check_messages(messages: list[Message]) -> None:
    """Check rules 5 to 10."""
    questions = [message for message in messages if isinstance(message, UserMessage)]
    if any(_text_length(message) > LONGEST_TEXT for message in questions):
        raise _broken("RunAgentInput user message text exceeds limit", "user_text_too_long")
    if len(questions) != 1:
        raise _broken(
            "RunAgentInput.messages must contain exactly one user message", "one_user_message_required"
        )
    if messages[0] is not questions[0]:
        raise _broken("RunAgentInput.messages[0].role must be user", "first_message_not_user")
    _check_images([block for block in _blocks(questions[0]) if isinstance(block, BinaryBlock)])


def _check_images(images: list[BinaryBlock]) -> None:
    if not all((image.mimeType or "").lower().startswith("image/") for image in images):
        raise _broken("binary content requires image mimeType", "binary_mime_type_required")
    if not all(image.url for image in images):
        raise _broken("binary content requires url", "binary_url_required")
    if any(image.data is not None for image in images):
        raise _broken("binary content data is not allowed", "binary_data_not_allowed")
    check_count(tuple(map(_upload, images)))


def _check_tools(tools: list[Tool]) -> None:
    if len({tool.name for tool in tools}) < len(tools):
        raise _broken("RunAgentInput.tools must have unique names", "duplicate_tool")


def _broken(message: str, code: str) -> InvalidRequest:
    return InvalidRequest(message, code=code)


def _blocks(message: UserMessage) -> Sequence[TextBlock | BinaryBlock]:
    """Return the contents of a message; those of a bare text are one block."""
    text = message.content
    return [TextBlock(type="text", text=text)] if isinstance(text, str) else text


def _text_length(message: UserMessage) -> int:
    return sum(len(block.text) for block in _blocks(message) if isinstance(block, TextBlock))


def _parts(message: UserMessage) -> Parts:
    parts = Parts()
    for block in _blocks(message):
        parts.add(block.text if isinstance(block, TextBlock) else _upload(block))
    return parts


def _upload(image: BinaryBlock) -> Upload:
    return Upload(image.mimeType or "", image.url or "", signed=True)


def _message(message: Message) -> InputMessage:
    if isinstance(message, ActivityMessage):
        activity, kind = {"activity": message.content}, message.activityType
        return InputMessage("activity", "", message.id, activity_type=kind, metadata=activity)
    common: dict[str, Any] = {"client_id": message.id, "encrypted_value": message.encryptedValue}
    match message:
        case UserMessage():
            return _parts(message).message("user", name=message.name, **common)
        case AssistantMessage(content=content, name=name):
            calls = tuple(map(_call, message.toolCalls or ()))
            return InputMessage("assistant", content or "", name=name, tool_calls=calls, **common)
        case ToolMessage(content=content, error=error):
            call_id = message.toolCallId
            return InputMessage("tool", content, tool_call_id=call_id, error=error, **common)
    return InputMessage(message.role, message.content, name=message.name, **common)


def _call(call: ToolCall) -> AskedCall:
    return AskedCall(call.id, call.function.name, call.function.arguments)


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Return whether the client accepts server-sent events."""
    return wants_stream(accept)


class TaskAccepted(AgUiAccepted, frozen=True, rename="camel"):
    """TaskAcceptedResponse, the response to a RunAgentInput."""

    created: Time


def accepted(head: RunHead) -> TaskAccepted:
    created = datetime.fromtimestamp(head.created_at_ms / 1000, UTC)
    text = created.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return TaskAccepted(head.run_id.hex, *run_ids(head), text)
