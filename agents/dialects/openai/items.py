"""The `input` of a Responses request: a text, or items, as messages and answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from agents.dialects import given
from agents.requests import AskedCall, InputMessage, InterruptAnswer, Role, Upload
from config.errors import InvalidRequest

Wire = dict[str, Any]
MOST_ITEMS: Final = 1_000
_ROLES: Final = frozenset({"user", "assistant", "system", "developer"})
_TEXTS: Final = {"input_text": "text", "output_text": "text", "text": "text", "refusal": "refusal"}
# what our own responses hold beside messages and calls: shown to the client, known to us already
_UNSAID: Final = frozenset(
    {"item_reference", "mcp_call", "mcp_list_tools", "mcp_approval_request", "compaction"}
)
_encode: Final = msgspec.json.Encoder().encode


def messages(given_input: Any) -> Iterator[InputMessage]:
    """The messages of an input; InvalidRequest, naming the place, for what is none."""
    if isinstance(given_input, str):
        yield InputMessage("user", given_input)
        return
    for place, item in enumerate(_items(given_input)):
        yield from _message(item, f"input[{place}]")


def answers(given_input: Any) -> Iterator[InterruptAnswer]:
    """The approvals among the items."""
    for place, item in enumerate(_items(given_input)):
        if item.get("type") == "mcp_approval_response":
            asked, approve = item.get("approval_request_id"), item.get("approve")
            if not isinstance(asked, str) or not isinstance(approve, bool):
                raise _wrong(f"input[{place}]", "needs approval_request_id and approve")
            payload = {"approved": approve, "reason": _text(item, "reason")}
            yield InterruptAnswer(asked, "resolved", payload)


def _items(given_input: Any) -> list[Wire]:
    if isinstance(given_input, str):
        return []
    if not isinstance(given_input, list) or not all(isinstance(item, dict) for item in given_input):
        raise _wrong("input", "must be a text or a list of items")
    if len(given_input) > MOST_ITEMS:
        raise _wrong("input", f"holds more than {MOST_ITEMS} items")
    return given_input


def _message(item: Wire, where: str) -> Iterator[InputMessage]:
    match item.get("type", "message"):
        case "message":
            yield _words(item, where)
        case "function_call":
            call_id, name = (_needed(item, key, where) for key in ("call_id", "name"))
            call = AskedCall(call_id, name, _text(item, "arguments") or "{}")
            yield InputMessage("assistant", "", _client_id(item), tool_calls=(call,))
        case "function_call_output":
            call_id, output = _needed(item, "call_id", where), item.get("output")
            told = output if isinstance(output, str) else _output(output)
            yield InputMessage("tool", told, _client_id(item), tool_call_id=call_id)
        case "reasoning":
            yield InputMessage("reasoning", _summary(item), _client_id(item))
        case "mcp_approval_response":
            return
        case kind if not isinstance(kind, str) or kind not in _UNSAID:
            raise _wrong(where, "is of a type that we do not take")


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


def _output(output: Any) -> str:
    """A function's output of parts: their texts; of anything else its JSON."""
    if isinstance(output, list) and all(isinstance(part, dict) for part in output):
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
    return _text(item, "id").removeprefix("msg_")[:200] or None


def _needed(item: Wire, key: str, where: str, *, empty: bool = False) -> str:
    value = item.get(key)
    if not isinstance(value, str) or not (value or empty):
        raise _wrong(f"{where}.{key}", "must be a text")
    return value


def _text(item: Wire, key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _wrong(where: str, what: str) -> InvalidRequest:
    return InvalidRequest(f"{where} {what}.", code="invalid_input")
