"""Translation of an AgentRequest into a RunRequest (specs/agent-api.md, "What to build" 4 and 6)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, cast

import msgspec

from agents.dialects import client_inputs, tool_outputs
from agents.dialects.agent_api import entities
from agents.dialects.agent_api.entities import AgentRequest, AnyContent, Message, Tool
from agents.dialects.client_inputs import Parts
from agents.dialects.field_errors import validate_body
from agents.dialects.generation import make_generation
from agents.dialects.wire import json_text
from agents.requests import (
    AskedCall,
    ClientTool,
    InputMessage,
    InterruptAnswer,
    Role,
    RunRequest,
    Upload,
)
from config.errors import InvalidRequest

NAME: Final = "agent-api"
MOST_MESSAGES: Final = 1_000
LONGEST_SESSION: Final = 512
LONGEST_ID: Final = 128
_CALLS: Final = frozenset({"function_call", "plugin_call", "component_call", "mcp_call"})
_OUTPUTS: Final = frozenset(f"{kind}_output" for kind in _CALLS)
_UNSAID: Final = frozenset({"heartbeat", "error", "mcp_list_tools", "mcp_approval_request"})
_ANSWERS: Final = frozenset({"mcp_approval_response"})
_WORDS: Final = (entities.TextContent, entities.RefusalContent, entities.DataContent)
_MOST_VALUES: Final = 50_000
_BLOCKS: Final = ("[", '{"content"')
_CALL_ID: Final = ("call_id", "tool_call_id")


def parse(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """Return the canonical request; raise InvalidRequest with field errors for a wrong body.

    A request with an `id` is one run, however often it is sent; its `response_id`, which names the
    response, is equivalent. `user_id` is ignored: the token determines whose run it is.
    """
    parsed = validate_body(AgentRequest, body, "AgentRequest")
    _check(parsed)
    name = parsed.id or parsed.response_id or None
    return RunRequest(
        dialect=NAME,
        model=(parsed.model or "").strip(),
        messages=tuple(_messages(parsed.input)),
        request_id=request_id,
        client_run_id=name,
        known="id" if parsed.session_id and len(parsed.input) > 1 else "none",
        tools=tuple(_tools(parsed.tools or ())),
        answers=tuple(_answers(parsed.input)),
        generation=make_generation(parsed),
        wire={"session_id": parsed.session_id, "id": name},
        **client_inputs.session_thread(parsed.session_id),
    )


def _check(parsed: AgentRequest) -> None:
    if len(parsed.input) > MOST_MESSAGES:
        raise InvalidRequest(
            f"input holds more than {MOST_MESSAGES} messages.", code="too_many_messages"
        )
    named = (
        ("session_id", parsed.session_id, LONGEST_SESSION),
        ("id", parsed.id, LONGEST_ID),
        ("response_id", parsed.response_id, LONGEST_ID),
    )
    for name, value, longest in named:
        if value and len(value) > longest:
            raise InvalidRequest(f"{name} is longer than {longest} characters.", code="id_too_long")
    if parsed.id and parsed.response_id and parsed.id != parsed.response_id:
        raise InvalidRequest(
            "id and response_id both name the response: send one of them.", code="response_id_ambiguous"
        )
    if (parsed.n or 1) > 1:
        raise InvalidRequest("n must be 1: a run has one answer.", code="n_not_supported")
    _check_end(parsed.input)


def _check_end(messages: Sequence[Message]) -> None:
    """Require something to answer: words, a tool's output or an approval must come last."""
    relevant = [
        (place, message) for place, message in enumerate(messages) if message.type not in _UNSAID
    ]
    if not relevant:
        raise InvalidRequest("input holds no message that can be answered.", code="input_required")
    place, last = relevant[-1]
    by_assistant = last.role == "assistant" and last.type not in _OUTPUTS | _ANSWERS
    if by_assistant or last.type in _CALLS or last.type == "reasoning":
        raise InvalidRequest(
            f"input[{place}] is the assistant's: the last message must be a user's, a system's or a "
            "tool's.",
            code="nothing_to_answer",
        )


def _tools(tools: Sequence[Tool | dict[str, Any]]) -> Iterator[ClientTool]:
    """Yield the functions that the client runs itself; tools of other types are refused."""
    for place, tool in enumerate(tools):
        if not isinstance(tool, Tool) or tool.function is None or tool.type not in ("function", None):
            raise InvalidRequest(
                f"tools[{place}] is no function: only tools of the type function, with a function that "
                "has a name, can be offered.",
                code="tool_not_supported",
            )
        schema = tool.function.parameters
        if not isinstance(schema, dict):
            schema = schema.model_dump(exclude_none=True)
        yield ClientTool(tool.function.name, tool.function.description, schema)


def _messages(messages: Sequence[Message]) -> Iterator[InputMessage]:
    waiting: dict[str, None] = {}  # calls that have no output yet
    for place, message in enumerate(messages):
        if message.type in _CALLS:
            made = _calls(message)
            waiting |= dict.fromkeys(call.id for call in made.tool_calls)
            yield made
        elif message.type in _OUTPUTS:
            yield from [_answered(output, waiting) for output in _outputs(message, place)]
        elif message.type in _UNSAID or message.type in _ANSWERS:
            continue
        elif message.role == "tool":
            yield _answered(_tool_words(message, place, waiting), waiting)
        else:
            yield _words(message, place)


def _answered(output: InputMessage, waiting: dict[str, None]) -> InputMessage:
    waiting.pop(output.tool_call_id or "", None)
    return output


def _words(message: Message, place: int) -> InputMessage:
    role = "reasoning" if message.type == "reasoning" else message.role or "user"
    parts = Parts()
    for number, content in enumerate(message.content or []):
        _take(content, f"input[{place}].content[{number}]", parts, role)
    if not (parts.text or parts.uploads or role in ("assistant", "reasoning")):
        raise InvalidRequest(f"input[{place}] has no content.", code="content_required")
    return parts.message(cast("Role", role), _client_id(message))


def _tool_words(message: Message, place: int, waiting: dict[str, None]) -> InputMessage:
    """Return the words of a message with the role `tool` as the output of the call that it names.

    If it names none, it is the output of the one call of this input that still waits for one.
    """
    call_id = _call_id(message) or (next(iter(waiting)) if len(waiting) == 1 else "")
    if not call_id:
        raise InvalidRequest(
            f"input[{place}] has the role tool and names no call: its data or metadata need a call_id.",
            code="call_id_required",
        )
    parts, output = Parts(), _data(message).get("output")
    if output is not None:
        tool_outputs.add_output(_decoded(output), f"input[{place}].content", parts)
    for number, content in enumerate(message.content or []):
        if not isinstance(content, entities.DataContent):
            _take(content, f"input[{place}].content[{number}]", parts, "tool")
    return parts.message("tool", _client_id(message), tool_call_id=call_id)


def _call_id(message: Message) -> str:
    """Return the call that a message of the role `tool` names, in data, metadata or extra members."""
    places = (_data(message), message.metadata or {}, message.model_extra or {})
    found = (_member(place, key) for place in places for key in _CALL_ID)
    return next(filter(None, found), "")


def _take(content: AnyContent, place: str, parts: Parts, role: str) -> None:
    """Add a content; files that the assistant has shown are known, and are sent to no model again.

    Raise InvalidRequest for a content that no model can see, and for a file of the system's.
    """
    if text := _text(content):
        parts.add(text)
    if role in ("assistant", "reasoning") or isinstance(content, _WORDS):
        return
    if role == "system":
        raise client_inputs.unsupported_kind(place, "a file of the system's")
    match content:
        case entities.ImageContent() if content.image_url:
            parts.add(client_inputs.image_upload(content.image_url, f"{place}.image_url"))
        case entities.FileContent():
            parts.add(_file(content, place))
        case entities.AudioContent():
            raise client_inputs.unsupported_kind(place, "audio")
        case entities.VideoContent():
            raise client_inputs.unsupported_kind(place, "a video")


def _text(content: AnyContent) -> str:
    """Return the words of a content."""
    match content:
        case entities.TextContent():
            return content.text or ""
        case entities.RefusalContent():
            return content.refusal or ""
        case entities.DataContent():
            return json_text(content.data) if content.data else ""
    return ""


def _file(content: entities.FileContent, place: str) -> Upload:
    """Return a file by its data, id or URL: our own output names a file in two of these ways."""
    data = content.file_data or ""
    file_id = "" if data else content.file_id or ""
    url = "" if data or file_id else content.file_url or ""
    used = "file_id" if file_id else "file_url" if url else "file_data"
    return client_inputs.file_upload(
        f"{place}.{used}", url=url, data=data, file_id=file_id, name=content.filename or ""
    )


def _calls(message: Message) -> InputMessage:
    """Return the calls of a message, one per data content."""
    calls = tuple(
        AskedCall(_member(data, "call_id"), _member(data, "name"), _member(data, "arguments") or "{}")
        for data in _datas(message) or [{}]
    )
    return InputMessage("assistant", "", _client_id(message), tool_calls=calls)


def _outputs(message: Message, place: int) -> Iterator[InputMessage]:
    """Yield the outputs of a message, one per data content; its id and files belong to the first."""
    for number, data in enumerate(_datas(message) or [{}], 1):
        call_id, parts = _member(data, "call_id"), Parts()
        if not call_id:
            raise InvalidRequest(
                f"input[{place}]: a tool's output needs data with a call_id.", code="call_id_required"
            )
        if data.get("output") is not None:
            tool_outputs.add_output(_decoded(data["output"]), f"input[{place}].content", parts)
        for at, content in enumerate(message.content or [] if number == 1 else []):
            if not isinstance(content, _WORDS):
                _take(content, f"input[{place}].content[{at}]", parts, "tool")
        client_id = _client_id(message)
        if number > 1 and client_id is not None:
            client_id = f"{client_id[:190]}-{number}"
        name = _member(data, "name") or None
        yield parts.message("tool", client_id, name=name, tool_call_id=call_id)


def _decoded(output: Any) -> Any:
    """Return an output; the package writes blocks as JSON text, which is decoded here."""
    if not isinstance(output, str) or not output.startswith(_BLOCKS):
        return output
    if sum(map(output.count, ",[{")) > _MOST_VALUES:  # its values too are limited to a body's number
        return output
    try:
        blocks = msgspec.json.decode(output)
    except (msgspec.DecodeError, RecursionError):
        return output
    return output if tool_outputs.blocks_in(blocks) is None else blocks


def _answers(messages: Sequence[Message]) -> Iterator[InterruptAnswer]:
    """Yield the approvals and refusals of the client (McpApprovalResponse)."""
    for message in messages:
        if message.type == "mcp_approval_response":
            data = _data(message)
            approval_id, approve = _member(data, "approval_request_id"), data.get("approve")
            if not approval_id or not isinstance(approve, bool):
                raise InvalidRequest(
                    "An mcp_approval_response needs data with approval_request_id and approve.",
                    code="invalid_approval",
                )
            yield InterruptAnswer(
                approval_id, "resolved", {"approved": approve, "reason": _member(data, "reason")}
            )


def _data(message: Message) -> dict[Any, Any]:
    return next(iter(_datas(message)), {})


def _datas(message: Message) -> list[dict[Any, Any]]:
    found = (part.data for part in message.content or [] if isinstance(part, entities.DataContent))
    return [data for data in found if data]


def _member(data: dict[Any, Any], key: str) -> str:
    """Return a member as text; any other value is encoded as JSON."""
    value = data.get(key)
    if value is None or isinstance(value, str):
        return value or ""
    return json_text(value)


def _client_id(message: Message) -> str | None:
    """Return the client's id of a message, if it has one; our ids begin with `msg_`."""
    return message.id.removeprefix("msg_")[:200] if "id" in message.model_fields_set else None
