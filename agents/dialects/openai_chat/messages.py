"""The `messages` of a Chat Completions request: the whole conversation, oldest first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from agents.dialects import client_inputs
from agents.dialects.client_inputs import Parts
from agents.dialects.wire import Wire, invalid_member, optional_text, required_text
from agents.requests import AskedCall, InputMessage, Upload

MOST_MESSAGES: Final = 1_000
_TEXT: Final = {"text": "text"}
_ASSISTANT_TEXT: Final = {"text": "text", "refusal": "refusal"}
_ELSEWHERE: Final = {
    "audio": "the answer's audio is not kept here",
    "function_call": "functions are superseded: send tool_calls",
}
_wrong: Final = partial(invalid_member, code="invalid_messages")
_needed: Final = partial(required_text, code="invalid_messages")


def parse_messages(items: list[Wire]) -> Iterator[InputMessage]:
    """Yield the messages; raise InvalidRequest, naming the place, for invalid ones.

    Every call must be answered right after it, as OpenAI demands: without an answer a model would
    answer wrongly.
    """
    unanswered: dict[str, str] = {}
    for place, message in enumerate(items):
        where = f"messages[{place}]"
        if message.get("role") == "tool":
            yield _answer(message, where, unanswered)
            continue
        _check_answered(unanswered)
        if message.get("role") == "assistant":
            made = list(_assistant(message, where))
            unanswered = {call.id: f"{where}.tool_calls" for call in made[-1].tool_calls}
            yield from made
        else:
            yield _words(message, where)
    _check_answered(unanswered)


def _check_answered(unanswered: dict[str, str]) -> None:
    if unanswered:
        where = next(iter(unanswered.values()))
        raise _wrong(where, "must be followed by messages of the role tool that answer every call")


def _words(message: Wire, where: str) -> InputMessage:
    match message.get("role"):
        case "user":
            return _user(message, where)
        case "system" | "developer" as role:
            text = "\n".join(_texts(message.get("content"), f"{where}.content", _TEXT))
            return InputMessage(role, text, name=optional_text(message, "name") or None)
    raise _wrong(f"{where}.role", "must be system, developer, user, assistant or tool")


def _user(message: Wire, where: str) -> InputMessage:
    parts = Parts()
    for place, part in enumerate(_parts(message.get("content"), f"{where}.content")):
        _take(part, f"{where}.content[{place}]", parts)
    return parts.message("user", name=optional_text(message, "name") or None)


def _take(part: Wire, here: str, parts: Parts) -> None:
    match part.get("type"):
        case "text":
            parts.add(_needed(part, "text", here, empty=True))
        case "image_url":
            url = _needed(_object(part, "image_url", here), "url", f"{here}.image_url")
            parts.add(client_inputs.image_upload(url, f"{here}.image_url.url"))
        case "file":
            parts.add(_file(_object(part, "file", here), f"{here}.file"))
        case "input_audio":
            raise client_inputs.unsupported_kind(here, "audio")
        case _:
            raise _wrong(f"{here}.type", "must be text, image_url or file")


def _object(part: Wire, key: str, where: str) -> Wire:
    value = part.get(key)
    if not isinstance(value, dict):
        raise _wrong(f"{where}.{key}", "must be an object")
    return value


def _file(part: Wire, where: str) -> Upload:
    data, file_id = optional_text(part, "file_data"), optional_text(part, "file_id")
    place = f"{where}.file_id" if file_id else f"{where}.file_data"
    return client_inputs.file_upload(
        place, data=data, file_id=file_id, name=optional_text(part, "filename")
    )


def _assistant(message: Wire, where: str) -> Iterator[InputMessage]:
    """Yield the model's thoughts, if the client sends them back, and its text with its calls."""
    for name, why in _ELSEWHERE.items():
        if message.get(name) is not None:
            raise _wrong(f"{where}.{name}", f"cannot be taken: {why}")
    if thoughts := optional_text(message, "reasoning_content") or optional_text(message, "reasoning"):
        yield InputMessage("reasoning", thoughts)
    calls = tuple(_calls(message.get("tool_calls"), f"{where}.tool_calls"))
    content, refusal = message.get("content"), optional_text(message, "refusal")
    texts = [refusal] if refusal else []
    if content is not None or not (calls or refusal):
        texts = [*_texts(content, f"{where}.content", _ASSISTANT_TEXT), *texts]
    yield InputMessage(
        "assistant", "\n".join(texts), name=optional_text(message, "name") or None, tool_calls=calls
    )


def _calls(made: Any, where: str) -> Iterator[AskedCall]:
    if made is None:
        return
    seen: set[str] = set()
    for place, call in enumerate(_objects(made, where)):
        here = f"{where}[{place}]"
        if call.get("type", "function") != "function":
            raise _wrong(f"{here}.type", "must be function")
        function = _object(call, "function", here)
        call_id = _needed(call, "id", here)
        if call_id in seen:
            raise _wrong(f"{here}.id", "is that of another call too")
        seen.add(call_id)
        name = _needed(function, "name", f"{here}.function")
        arguments = _needed(function, "arguments", f"{here}.function", empty=True)
        yield AskedCall(call_id, name, arguments or "{}")


def _answer(message: Wire, where: str, unanswered: dict[str, str]) -> InputMessage:
    """Return a tool's answer, and remove its call from those that wait for one."""
    call_id = _needed(message, "tool_call_id", where)
    if unanswered.pop(call_id, None) is None:
        raise _wrong(f"{where}.tool_call_id", "answers no call of the assistant's message before it")
    text = "\n".join(_texts(message.get("content"), f"{where}.content", _TEXT))
    return InputMessage("tool", text, name=optional_text(message, "name") or None, tool_call_id=call_id)


def _texts(content: Any, where: str, kinds: dict[str, str]) -> Iterator[str]:
    for place, part in enumerate(_parts(content, where)):
        kind = part.get("type")
        if not isinstance(kind, str) or kind not in kinds:
            raise _wrong(f"{where}[{place}].type", f"must be {' or '.join(kinds)}")
        yield _needed(part, kinds[kind], f"{where}[{place}]", empty=True)


def _parts(content: Any, where: str) -> list[Wire]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else _objects(content, where)


def _objects(value: Any, where: str) -> list[Wire]:
    if isinstance(value, list) and all(isinstance(one, dict) for one in value):
        return value
    kinds = "a text or a list of parts" if where.endswith("content") else "a list of objects"
    raise _wrong(where, f"must be {kinds}")
