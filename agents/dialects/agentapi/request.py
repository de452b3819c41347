"""An AgentRequest as a RunRequest (specs/agent-api.md, "What to build" 4 and 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import msgspec
from pydantic import ValidationError

from agents.dialects import given
from agents.dialects.agentapi.models import (
    AgentRequest,
    AnyContent,
    AudioContent,
    DataContent,
    FileContent,
    ImageContent,
    Message,
    RefusalContent,
    TextContent,
    Tool,
    VideoContent,
)
from agents.dialects.field_errors import invalid_body
from agents.requests import (
    AskedCall,
    ClientTool,
    Generation,
    InputMessage,
    InterruptAnswer,
    Role,
    RunRequest,
    Upload,
)
from config.errors import InvalidRequest

MOST_MESSAGES: Final = 1_000
LONGEST_SESSION: Final = 512
LONGEST_ID: Final = 128
_CALLS: Final = frozenset({"function_call", "plugin_call", "component_call", "mcp_call"})
_OUTPUTS: Final = frozenset(f"{kind}_output" for kind in _CALLS)
_UNSAID: Final = frozenset({"heartbeat", "error", "mcp_list_tools", "mcp_approval_request"})
_encode: Final = msgspec.json.Encoder().encode


def parse(body: dict[str, Any], *, dialect: str, request_id: str) -> RunRequest:
    """The canonical request; InvalidRequest with field errors for a wrong body.

    A request with an `id` is one run, however often it is sent. `user_id` is read and means nothing:
    whose run it is, the token says. One answer is made, whatever `n`.
    """
    try:
        asked = AgentRequest.model_validate(body)
    except ValidationError as error:
        raise invalid_body("AgentRequest", error, body) from None
    _check(asked)
    thread: dict[str, Any] = given.thread_of(asked.session_id)
    return RunRequest(
        dialect=dialect,
        model=(asked.model or "").strip(),
        messages=tuple(_messages(asked.input)),
        request_id=request_id,
        client_run_id=asked.id or None,
        known="id" if asked.session_id and len(asked.input) > 1 else "none",
        tools=tuple(_tools(asked.tools or ())),
        answers=tuple(_answers(asked.input)),
        generation=_generation(asked),
        wire={"session_id": asked.session_id, "id": asked.id},
        **thread,
    )


def _check(asked: AgentRequest) -> None:
    if len(asked.input) > MOST_MESSAGES:
        raise InvalidRequest(
            f"input holds more than {MOST_MESSAGES} messages.", code="too_many_messages"
        )
    named = (("session_id", asked.session_id, LONGEST_SESSION), ("id", asked.id, LONGEST_ID))
    for name, value, longest in named:
        if value and len(value) > longest:
            raise InvalidRequest(f"{name} is longer than {longest} characters.", code="id_too_long")


def _generation(asked: AgentRequest) -> Generation:
    stop = [asked.stop] if isinstance(asked.stop, str) else asked.stop
    return Generation(
        asked.temperature,
        asked.top_p,
        asked.frequency_penalty,
        asked.presence_penalty,
        asked.max_tokens,
        tuple(stop or ()),
        asked.seed,
    )


def _tools(tools: Sequence[Tool | dict[str, Any]]) -> Iterator[ClientTool]:
    """The functions among the tools; what has another shape is somebody else's to offer."""
    for tool in tools:
        if isinstance(tool, Tool) and tool.function is not None:
            yield ClientTool(tool.function.name, tool.function.description, tool.function.parameters)


def _messages(said: Sequence[Message]) -> Iterator[InputMessage]:
    for message in said:
        if message.type in _CALLS:
            yield _call(message)
        elif message.type in _OUTPUTS:
            yield _output(message)
        elif message.type not in _UNSAID and message.type != "mcp_approval_response":
            yield _words(message)


def _words(message: Message) -> InputMessage:
    contents = message.content or []
    uploads = [*_uploads(contents)]
    given.check_count(len(uploads))
    role = "reasoning" if message.type == "reasoning" else message.role or "user"
    return InputMessage(
        cast("Role", "user" if role == "tool" else role),
        "\n".join(filter(None, map(_text, contents))),
        _client_id(message),
        uploads=tuple(uploads),
    )


def _text(content: AnyContent) -> str:
    """What a content says in words; of what no model is shown, at least that it was there."""
    match content:
        case TextContent():
            return content.text or ""
        case RefusalContent():
            return content.refusal or ""
        case DataContent():
            return _encode(content.data).decode() if content.data else ""
        case FileContent():
            return f"[file: {content.filename or content.file_url or content.file_id or 'unnamed'}]"
        case AudioContent():
            return "[audio]"
        case VideoContent():
            return "[video]"
    return ""


def _uploads(contents: Sequence[AnyContent]) -> Iterator[Upload]:
    for content in contents:
        if isinstance(content, ImageContent) and content.image_url:
            yield given.upload(content.image_url)


def _call(message: Message) -> InputMessage:
    told = _data(message)
    call = AskedCall(_said(told, "call_id"), _said(told, "name"), _said(told, "arguments") or "{}")
    return InputMessage("assistant", "", _client_id(message), tool_calls=(call,))


def _output(message: Message) -> InputMessage:
    told = _data(message)
    call_id = _said(told, "call_id")
    if not call_id:
        raise InvalidRequest("A tool's output needs data with a call_id.", code="call_id_required")
    return InputMessage(
        "tool",
        _said(told, "output"),
        _client_id(message),
        name=_said(told, "name") or None,
        tool_call_id=call_id,
    )


def _answers(said: Sequence[Message]) -> Iterator[InterruptAnswer]:
    """The approvals that the client gives or refuses (McpApprovalResponse)."""
    for message in said:
        if message.type == "mcp_approval_response":
            told = _data(message)
            asked, approve = _said(told, "approval_request_id"), told.get("approve")
            if not asked or not isinstance(approve, bool):
                raise InvalidRequest(
                    "An mcp_approval_response needs data with approval_request_id and approve.",
                    code="invalid_approval",
                )
            yield InterruptAnswer(
                asked, "resolved", {"approved": approve, "reason": _said(told, "reason")}
            )


def _data(message: Message) -> dict[Any, Any]:
    found = (part.data for part in message.content or [] if isinstance(part, DataContent))
    return next((data for data in found if data), {})


def _said(told: dict[Any, Any], key: str) -> str:
    """A member as text; what is none is written as JSON."""
    value = told.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    return _encode(value).decode()


def _client_id(message: Message) -> str | None:
    """The id by which a message is known again, if it was given one; ours begin with `msg_`."""
    return message.id.removeprefix("msg_")[:200] if "id" in message.model_fields_set else None
