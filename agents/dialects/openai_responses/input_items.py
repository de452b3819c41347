"""The `input` of a Responses request: a text, or items, as messages and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final, TypeGuard, cast
from uuid import UUID

from agents.dialects import client_inputs, tool_outputs
from agents.dialects.client_inputs import Parts
from agents.dialects.openai_responses import client_tools, items
from agents.dialects.wire import Wire, invalid_member, json_text, optional_text, required_text
from agents.requests import (
    AskedCall,
    Attachment,
    InputMessage,
    InterruptAnswer,
    Reference,
    Role,
    Upload,
)
from conversations.blocks import arrange

MOST_ITEMS: Final = 1_000
LONGEST_ID: Final = 200
_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_TEXTS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
# items of our own responses beside messages: for the client; we know them already
_UNSAID: Final = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response"})
_ANSWER: Final = "mcp_approval_response"
_FILES: Final = frozenset({"input_image", "input_file", "input_audio"})
_wrong: Final = partial(invalid_member, code="invalid_input")
_needed: Final = partial(required_text, code="invalid_input")


def parse_messages(value: Any, *, after_requests: bool = False) -> Iterator[InputMessage]:
    """Yield the messages of an input; raise InvalidRequest, naming the place, for invalid items.

    With `after_requests` only those after the last request for approval, which the input answers.
    """
    if isinstance(value, str):
        if value:
            yield InputMessage("user", value)
        return
    found = _items(value)
    begin = _after_requests(found) if after_requests else 0
    for place, item in enumerate(found):
        parsed = _message(item, f"input[{place}]")
        yield from parsed if place >= begin else ()


def _after_requests(found: list[Wire]) -> int:
    """Return the place after the last item that requests an approval, or refers to such an item."""
    answered = {optional_text(item, "approval_request_id") for item in found if _kind(item) == _ANSWER}
    asking = (
        place
        for place, item in enumerate(found)
        if _kind(item) == "mcp_approval_request"
        or (_kind(item) == "item_reference" and optional_text(item, "id") in answered)
    )
    return max(asking, default=-1) + 1


def parse_answers(value: Any) -> Iterator[InterruptAnswer]:
    """Yield the approvals among the items."""
    for place, item in enumerate(_items(value)):
        if item.get("type") == _ANSWER:
            approval_id, approve = item.get("approval_request_id"), item.get("approve")
            if not isinstance(approval_id, str) or not isinstance(approve, bool):
                raise _wrong(f"input[{place}]", "needs approval_request_id and approve")
            payload = {"approved": approve, "reason": optional_text(item, "reason")}
            yield InterruptAnswer(approval_id, "resolved", payload)


def to_input_items(
    row_id: UUID, message: InputMessage, *, wire: Wire, sign: Callable[[str, str], str]
) -> Iterator[items.InputItem]:
    """Yield a client's message in the form of `input_items`; files with fresh URLs."""
    item_id = row_id.hex
    if message.role == "tool":
        parts = _shown_parts(message, items.ResponseInputText, sign)
        yield items.ResponseFunctionToolCallOutput(
            id=f"fco_{item_id}",
            call_id=message.tool_call_id or "",
            output=parts if message.attachments else message.content,
        )
        return
    for call in message.tool_calls:
        yield items.client_call(
            f"{call.id}-{item_id}",
            call.id,
            client_tools.tool_name(wire, call.name),
            call.arguments,
            "completed",
        )
    text = items.ResponseOutputText if message.role == "assistant" else items.ResponseInputText
    if content := _shown_parts(message, text, sign):
        yield items.ResponseInputMessage(id=f"msg_{item_id}", role=message.role, content=content)


def _shown_parts(
    message: InputMessage,
    text: type[items.ResponseInputText | items.ResponseOutputText],
    sign: Callable[[str, str], str],
) -> list[items.InputContent]:
    """Return texts and files in the order in which they were sent."""
    blocks = arrange(message.content, message.attachments, message.layout)
    return [
        text(block) if isinstance(block, str) else _shown_file(block, sign) for block in blocks if block
    ]


def _shown_file(file: Attachment, sign: Callable[[str, str], str]) -> items.InputContent:
    url = sign(file.bucket, file.path)
    if file.is_image:
        return items.ResponseInputImage(url)
    return items.ResponseInputFile(url, file.name or "file.txt")


def _items(given_input: Any) -> list[Wire]:
    if given_input is None or isinstance(given_input, str):
        return []
    if not isinstance(given_input, list) or not all(isinstance(item, dict) for item in given_input):
        raise _wrong("input", "must be a text or a list of items")
    if len(given_input) > MOST_ITEMS:
        raise _wrong("input", f"holds more than {MOST_ITEMS} items")
    return given_input


def _message(item: Wire, where: str) -> Iterator[InputMessage]:
    match _kind(item):
        case "message":
            yield from _spoken(_words(item, where), where)
        case "item_reference":
            named = Reference(_needed(item, "id", where)[:LONGEST_ID], where)
            yield InputMessage("user", "", refers=named)
        case "function_call":
            yield _called(item, optional_text(item, "arguments") or "{}", where)
        case "custom_tool_call":
            text = _needed(item, "input", where, empty=True)
            yield _called(item, client_tools.text_as_arguments(text), where)
        case "function_call_output" | "custom_tool_call_output":
            call_id = _needed(item, "call_id", where)
            yield _output(item, where).message("tool", _client_id(item), tool_call_id=call_id)
        case "reasoning":
            yield InputMessage("reasoning", _summary(item), _client_id(item))
        case "mcp_call":
            yield from _made(item, where)
        case "compaction" | "compaction_summary":
            raise _wrong(where, "is a compaction, which only the server that made it can read")
        case kind if not isinstance(kind, str) or kind not in _UNSAID:
            raise _wrong(where, "is of a type that we do not take")


def _called(item: Wire, arguments: str, where: str) -> InputMessage:
    """Return a call of one of the client's own tools."""
    call_id, _ = (_needed(item, key, where) for key in ("call_id", "name"))
    call = AskedCall(call_id, client_tools.function_name_of(item), arguments)
    return InputMessage("assistant", "", _client_id(item), tool_calls=(call,))


def _kind(item: Wire) -> Any:
    """Return the type of an item, which both of the shortest forms leave out."""
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "id" in item and "role" not in item else "message"
    return kind


def _spoken(message: InputMessage, where: str) -> Iterator[InputMessage]:
    """Yield the message unless it is empty; an empty one of a user is refused."""
    if message.content or message.uploads:
        yield message
    elif message.role == "user":
        raise _wrong(f"{where}.content", "must say something")


def _made(item: Wire, where: str) -> Iterator[InputMessage]:
    """Yield a server tool's call with its answer, as an earlier response showed it, if it has one."""
    name, output, fault = _needed(item, "name", where), item.get("output"), item.get("error")
    if output is None and fault is None:
        return
    call_id = _needed(item, "id", where).removeprefix("mcp_")[:LONGEST_ID]
    call = AskedCall(call_id, name, optional_text(item, "arguments") or "{}")
    yield InputMessage("assistant", "", call_id, tool_calls=(call,))
    text = output if isinstance(output, str) else json_text({"error": fault})
    answer_id = f"{call_id}-answer"[:LONGEST_ID]
    yield InputMessage("tool", text, answer_id, name=name, tool_call_id=call_id, repeats=True)


def _words(item: Wire, where: str) -> InputMessage:
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise _wrong(f"{where}.role", f"must be one of {', '.join(sorted(_ROLES))}")
    parts = Parts()
    for place, part in enumerate(_parts(item.get("content"), where)):
        _take(part, f"{where}.content[{place}]", parts, files=role == "user")
    return parts.message(cast("Role", role), _client_id(item))


def _take(part: Wire, here: str, parts: Parts, *, files: bool) -> None:
    """Add a part of a message or of a function's output; only users and functions show files."""
    match part.get("type"):
        case str() as kind if kind in _TEXTS:
            parts.add(_needed(part, _TEXTS[kind], here, empty=True))
        case str() as kind if kind in _FILES and not files:
            raise _wrong(here, "is a file, and those are taken from a user or a function only")
        case "input_image":
            parts.add(_image(part, here))
        case "input_file":
            given_as = {name: optional_text(part, name) for name in ("file_url", "file_data", "file_id")}
            used = next((name for name, value in given_as.items() if value), "file_data")
            parts.add(
                client_inputs.file_upload(
                    f"{here}.{used}",
                    url=given_as["file_url"],
                    data=given_as["file_data"],
                    file_id=given_as["file_id"],
                    name=optional_text(part, "filename"),
                )
            )
        case "input_audio":
            raise client_inputs.unsupported_kind(here, "audio")
        case _:
            raise _wrong(here, "is of a type that we do not take")


def _image(part: Wire, here: str) -> Upload:
    """Return an image by its URL or, if it is stored here, by its id."""
    if (file_id := optional_text(part, "file_id")) and not optional_text(part, "image_url"):
        return Upload("", file_id=file_id, place=f"{here}.file_id")
    return client_inputs.image_upload(_needed(part, "image_url", here), f"{here}.image_url")


def _parts(content: Any, where: str) -> list[Wire]:
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return content
    raise _wrong(f"{where}.content", "must be a text or a list of parts")


def _output(item: Wire, where: str) -> Parts:
    """Return a function's output: its text, or its parts if they are OpenAI's, or any other form."""
    output, parts = item.get("output"), Parts()
    if isinstance(output, str):
        parts.add(output)
    elif _is_parts(output):
        for place, part in enumerate(output):
            _take(part, f"{where}.output[{place}]", parts, files=True)
    else:
        tool_outputs.add_output(output, f"{where}.output", parts)
    return parts


def _is_parts(output: Any) -> TypeGuard[list[Wire]]:
    kinds = _TEXTS.keys() | _FILES
    if not isinstance(output, list) or not output:
        return False
    return all(isinstance(part, dict) and part.get("type") in kinds for part in output)


def _summary(item: Wire) -> str:
    parts = item.get("summary")
    found = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(optional_text(part, "text") for part in found)


def _client_id(item: Wire) -> str | None:
    """Return the client's id of a message; ours on this wire begin with `msg_`."""
    return optional_text(item, "id").removeprefix("msg_")[:LONGEST_ID] or None
