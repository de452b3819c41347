"""The `input` of a Responses request: a text, or items, as messages and answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, cast
from uuid import UUID

import msgspec

from agents.dialects import given
from agents.requests import AskedCall, InputMessage, InterruptAnswer, Reference, Role, Upload
from config.errors import InvalidRequest

Wire = dict[str, Any]
MOST_ITEMS: Final = 1_000
LONGEST_ID: Final = 200
_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_TEXTS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
# what our own responses hold beside what is said: shown to the client, known to us already
_UNSAID: Final = frozenset({"mcp_list_tools", "mcp_approval_request", "mcp_approval_response"})
_ANSWER: Final = "mcp_approval_response"
_FILES: Final = frozenset({"input_image", "input_file", "input_audio"})
_encode: Final = msgspec.json.Encoder().encode


def messages(given_input: Any, *, after_requests: bool = False) -> Iterator[InputMessage]:
    """The messages of an input; InvalidRequest, naming the place, for what is none.

    With `after_requests` only those after the last request for approval, which the input answers.
    """
    if isinstance(given_input, str):
        if given_input:
            yield InputMessage("user", given_input)
        return
    found = _items(given_input)
    begin = _after_requests(found) if after_requests else 0
    for place, item in enumerate(found):
        said = _message(item, f"input[{place}]")
        yield from said if place >= begin else ()


def _after_requests(found: list[Wire]) -> int:
    """The place after the last item that asks for an approval, or names one that does."""
    answered = {_text(item, "approval_request_id") for item in found if _kind(item) == _ANSWER}
    asking = (
        place
        for place, item in enumerate(found)
        if _kind(item) == "mcp_approval_request"
        or (_kind(item) == "item_reference" and _text(item, "id") in answered)
    )
    return max(asking, default=-1) + 1


def answers(given_input: Any) -> Iterator[InterruptAnswer]:
    """The approvals among the items."""
    for place, item in enumerate(_items(given_input)):
        if item.get("type") == _ANSWER:
            asked, approve = item.get("approval_request_id"), item.get("approve")
            if not isinstance(asked, str) or not isinstance(approve, bool):
                raise _wrong(f"input[{place}]", "needs approval_request_id and approve")
            payload = {"approved": approve, "reason": _text(item, "reason")}
            yield InterruptAnswer(asked, "resolved", payload)


def shown(row_id: UUID, said: InputMessage, *, sign: Callable[[str, str], str]) -> Iterator[Wire]:
    """A message that a client has said, as `input_items` lists it; files with fresh URLs."""
    item_id, done = row_id.hex, {"status": "completed"}
    if said.role == "tool":
        output = {"call_id": said.tool_call_id, "output": said.content}
        yield {"id": f"fco_{item_id}", "type": "function_call_output"} | done | output
        return
    for call in said.tool_calls:
        made = {"call_id": call.id, "name": call.name, "arguments": call.arguments}
        yield {"id": f"fc_{call.id}-{item_id}", "type": "function_call"} | done | made
    kind = "output_text" if said.role == "assistant" else "input_text"
    content = [{"type": kind, "text": said.content}] if said.content else []
    content += [
        {"type": "input_image", "image_url": sign(file.bucket, file.path), "detail": "auto"}
        for file in said.attachments
    ]
    if content:
        yield {"id": f"msg_{item_id}", "type": "message", "role": said.role, "content": content} | done


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
            call_id, name = (_needed(item, key, where) for key in ("call_id", "name"))
            call = AskedCall(call_id, name, _text(item, "arguments") or "{}")
            yield InputMessage("assistant", "", _client_id(item), tool_calls=(call,))
        case "function_call_output":
            call_id, output = _needed(item, "call_id", where), item.get("output")
            told = output if isinstance(output, str) else _output(output, f"{where}.output")
            yield InputMessage("tool", told, _client_id(item), tool_call_id=call_id)
        case "reasoning":
            yield InputMessage("reasoning", _summary(item), _client_id(item))
        case "mcp_call":
            yield from _made(item, where)
        case "compaction" | "compaction_summary":
            raise _wrong(where, "is a compaction, which only the server that made it can read")
        case kind if not isinstance(kind, str) or kind not in _UNSAID:
            raise _wrong(where, "is of a type that we do not take")


def _kind(item: Wire) -> Any:
    """The type of an item, which both of the shortest forms leave out."""
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "id" in item and "role" not in item else "message"
    return kind


def _spoken(said: InputMessage, where: str) -> Iterator[InputMessage]:
    """The message, unless nobody says anything in it; a user who asks nothing is refused."""
    if said.content or said.uploads:
        yield said
    elif said.role == "user":
        raise _wrong(f"{where}.content", "must say something")


def _made(item: Wire, where: str) -> Iterator[InputMessage]:
    """A call that a server's tool has answered, as an earlier response showed it; one without an answer
    tells nothing."""
    name, output, fault = _needed(item, "name", where), item.get("output"), item.get("error")
    if output is None and fault is None:
        return
    call_id = _needed(item, "id", where).removeprefix("mcp_")[:LONGEST_ID]
    call = AskedCall(call_id, name, _text(item, "arguments") or "{}")
    yield InputMessage("assistant", "", call_id, tool_calls=(call,))
    told = output if isinstance(output, str) else _encode({"error": fault}).decode()
    yield InputMessage("tool", told, f"{call_id}-answer"[:LONGEST_ID], name=name, tool_call_id=call_id)


def _words(item: Wire, where: str) -> InputMessage:
    role = item.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise _wrong(f"{where}.role", f"must be one of {', '.join(sorted(_ROLES))}")
    texts: list[str] = []
    uploads: list[Upload] = []
    for place, part in enumerate(_parts(item.get("content"), where)):
        here = f"{where}.content[{place}]"
        match part.get("type"):
            case str() as kind if kind in _TEXTS:
                texts.append(_needed(part, _TEXTS[kind], here, empty=True))
            case "input_image":
                uploads.append(given.upload(_needed(part, "image_url", here)))
            case "input_file":
                name = _text(part, "filename") or _text(part, "file_url") or _text(part, "file_id")
                texts.append(f"[file: {name or 'unnamed'}]")
            case "input_audio":
                texts.append("[audio]")
            case _:
                raise _wrong(here, "is of a type that we do not take")
    given.check_count(len(uploads))
    return InputMessage(cast("Role", role), "\n".join(texts), _client_id(item), uploads=tuple(uploads))


def _parts(content: Any, where: str) -> list[Wire]:
    if isinstance(content, str):
        return [{"type": "input_text", "text": content}]
    if isinstance(content, list) and all(isinstance(part, dict) for part in content):
        return content
    raise _wrong(f"{where}.content", "must be a text or a list of parts")


def _output(output: Any, where: str) -> str:
    """A function's output of parts: their texts; of anything else its JSON."""
    if isinstance(output, list) and all(isinstance(part, dict) for part in output):
        for place, part in enumerate(output):
            if part.get("type") in _FILES:
                raise _wrong(f"{where}[{place}]", "is a file, and a function's output is text here")
        texts = [_text(part, "text") for part in output]
        if all(texts):
            return "\n".join(texts)
    return _encode(output).decode()


def _summary(item: Wire) -> str:
    parts = item.get("summary")
    found = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
    return "\n".join(_text(part, "text") for part in found)


def _client_id(item: Wire) -> str | None:
    """The id by which a message is known again; ours on this wire begin with `msg_`."""
    return _text(item, "id").removeprefix("msg_")[:LONGEST_ID] or None


def _needed(item: Wire, key: str, where: str, *, empty: bool = False) -> str:
    value = item.get(key)
    if not isinstance(value, str) or not (value or empty):
        raise _wrong(f"{where}.{key}", "must be a text")
    return value


def _text(item: Wire, key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _wrong(where: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{where} {what}.", code="invalid_input", param=where)
