"""Hostile bodies for each wire: a valid one with something hostile at a random place, and rubbish.

The hostile part is JSON text, not a value: so there may be equal keys, numbers of any length, lone
surrogates and what is no JSON at all.
"""

from __future__ import annotations

import copy
import json
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from hypothesis import strategies as st

from tests.support.pictures import picture
from tests.support.properties.deep_schemas import arrays, dear_to_compile, doubling

SIZES: Final = (1, 30, 1_000, 20_000, 200_000)
LARGEST: Final = 400_000  # more than the 256 kB of the small routes; test_limits.py has what is larger
_HERE: Final = "\u2020here\u2020"
_UNITS: Final = (
    " ", "\n", "\t", "\u3000", "a", "a b ", "-", "|-", "\\", "\"", "{", "}", "[", "]", "(", "<", "<a ",
    "</", "`", "```", "#", "data:", ";base64,", "=", "://", "1", "1,", "0.", "{}", "{{", "demo.", "<ui>",
    "toolx ", "$ref", "\x00", "\x1b[31m", "\ud800", "\udfff", "\u202e", "\u0301", "e\u0301", "\u200b",
    "\ufeff", "\u2028", "\uffff", "\U0001f3cb", "练", "。", "ﷺ", "İ",
)  # fmt: skip
_NUMBERS: Final = (
    "-0", "1e999", "-1e999", "1e-999", "1E400", "NaN", "Infinity", "-Infinity", "1.0", "-1", "1.5",
    "2147483648", "9223372036854775808", "18446744073709551616", "0x10", "01", "1_000", "true", "false",
    "null", '""', "[]", "{}",
)  # fmt: skip
_PAIRS: Final = (("[", "]"), ('{"a":', "}"), ('[{"type":"text","content":', "}]"), ('{"anyOf":[', "]}"))
_PATTERNS: Final = (
    "^(a+)+$",
    "(a|a)*b",
    "(a{1,999}){1,999}",
    "\\d{1,500}{1,500}",
    "[",
    "(?=a)(?<=b)",
    ".*" * 200,
)


def _dumps(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))  # ASCII: half a surrogate stays what it is


def _times(piece: str, size: int) -> str:
    return piece * max(1, size // len(piece))


def _text(unit: str, size: int) -> str:
    return _dumps(_times(unit, min(size, LARGEST // len(_dumps(unit)))))


def _nested(pair: tuple[str, str], size: int, closed: bool) -> str:
    times = max(1, size // sum(map(len, pair)))
    return pair[0] * times + "0" + pair[1] * times * closed


def _long_number(head: str, size: int) -> str:
    return head + _times("9", size)


def _list(piece: str, size: int) -> str:
    return f"[{_times(piece + ',', size)}{piece}]"


def _equal_keys(key: str, size: int) -> str:
    return "{" + _times(f"{_dumps(key)}:1,", size) + f"{_dumps(key)}:2}}"


def _many_keys(key: str, size: int) -> str:
    return _dumps({f"{key}{number}": number for number in range(size // 16 + 1)})


def _long_key(unit: str, size: int) -> str:
    return f"{{{_text(unit, size)}:1}}"


_SIZES: Final = st.sampled_from(SIZES)
_UNIT: Final = st.sampled_from(_UNITS)
_SMALL: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
).map(_dumps)
VALUES: Final = st.one_of(
    st.builds(_text, _UNIT, _SIZES),
    st.builds(
        lambda units, size: _text("".join(units), size), st.lists(_UNIT, min_size=2, max_size=4), _SIZES
    ),
    st.builds(_nested, st.sampled_from(_PAIRS), _SIZES, st.booleans()),
    st.builds(_long_number, st.sampled_from(("", "-", "0.", "1e", "1e-")), _SIZES),
    st.builds(_list, st.sampled_from(("0", '""', "[]", "{}", "[[]]", '{"type":"text"}')), _SIZES),
    st.builds(_equal_keys, _UNIT, _SIZES),
    st.builds(_many_keys, _UNIT, _SIZES),
    st.builds(_long_key, _UNIT, _SIZES),
    st.sampled_from(_NUMBERS),
    _SMALL,
)


def _deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"]}
    return schema


def _wide(size: int) -> dict[str, Any]:
    names = [f"n{number}" for number in range(size)]
    return {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
    }


def _pattern(pattern: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"a": {"type": "string", "pattern": pattern}},
        "required": ["a"],
    }


def _own(keyword: str, value: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": {keyword: value}}, "required": ["a"]}


SCHEMAS: Final = st.one_of(
    st.builds(doubling, st.sampled_from((1, 8, 16, 24, 60))),
    st.builds(dear_to_compile, st.sampled_from((1, 8, 16, 24))),
    st.builds(arrays, st.sampled_from((1, 2, 3, 8)), st.sampled_from((1, 1_000, 10**9))),
    st.builds(_deep, st.sampled_from((1, 30, 120, 500))),
    st.builds(_wide, st.sampled_from((1, 100, 3_000))),
    st.builds(_pattern, st.sampled_from(_PATTERNS)),
    st.builds(
        _own,
        st.sampled_from(
            (
                "minLength",
                "maxLength",
                "minItems",
                "multipleOf",
                "minimum",
                "enum",
                "const",
                "$ref",
                "type",
            )
        ),
        st.sampled_from(
            (
                0,
                -1,
                1e-300,
                10**30,
                1_000_000_000,
                [],
                [[]],
                "#",
                "#/properties/a",
                "http://127.0.0.1:1/",
                None,
            )
        ),
    ),
).map(_dumps)


# --- where it goes --------------------------------------------------------------------------------

_IMAGE: Final = b64encode(picture("PNG", (2, 2))).decode()
_FORM: Final = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}


@dataclass(frozen=True)
class Wire:
    """A way to send a run: the route, a valid body, and where schemas are in it."""

    path: str
    valid: Callable[[], dict[str, Any]]
    schemas: tuple[tuple[Any, ...], ...] = ()


def _agent_input() -> dict[str, Any]:
    messages = [
        {
            "id": "m1",
            "role": "user",
            "content": [{"type": "text", "text": "Which exercises for the chest?"}],
        }
    ]
    return {
        "threadId": str(uuid4()),
        "runId": f"run-{uuid4().hex}",
        "state": {"a": [1]},
        "messages": messages,
        "tools": [{"name": "toolx", "description": "Does.", "parameters": _FORM}],
        "context": [{"description": "who", "value": "me"}],
        "forwardedProps": {"model": "demo", "response_format": {"type": "json_schema", "schema": _FORM}},
    }


def _ag_ui() -> dict[str, Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "toolx", "arguments": '{"a": 1}'}}
    image = {"type": "image", "source": {"type": "data", "mimeType": "image/png", "value": _IMAGE}}
    earlier = [
        {"id": "m1", "role": "user", "content": "Hello"},
        {"id": "m2", "role": "assistant", "content": "", "toolCalls": [call]},
        {"id": "m3", "role": "tool", "content": "1", "toolCallId": "c1"},
        {"id": "m4", "role": "activity", "activityType": "a", "content": {"a": 1}},
        {"id": "m5", "role": "user", "content": [{"type": "text", "text": "See"}, image]},
        {"id": "m6", "role": "user", "content": "And?"},
    ]
    return _agent_input() | {"messages": earlier, "resume": None}


def _text_run() -> dict[str, Any]:
    return {
        "model": "demo",
        "text": "Which exercises for the chest?",
        "conversation_id": str(uuid4()),
        "metadata": {"a": 1},
        "result_mode": "raw_passthrough",
        "enable_exercise_search": True,
        "generation": {"temperature": 1, "stop": ["x"]},
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": _FORM}},
    }


def _agent_api() -> dict[str, Any]:
    said = {"role": "user", "type": "message", "content": [{"type": "text", "text": "hello"}]}
    tool = {"type": "function", "function": {"name": "toolx", "parameters": _FORM}}
    return {
        "input": [said],
        "model": "demo",
        "session_id": uuid4().hex,
        "user_id": "u",
        "tools": [tool],
        "metadata": {"a": "1"},
        "temperature": 1,
        "max_tokens": 100,
        "stream": True,
    }


def _responses() -> dict[str, Any]:
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]}
    called = {"type": "function_call", "call_id": "c1", "name": "toolx", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c1", "output": "1"}
    return {
        "input": [said, called, output, said],
        "model": "demo",
        "stream": True,
        "instructions": "Be brief.",
        "tools": [{"type": "function", "name": "toolx", "parameters": _FORM}],
        "text": {"format": {"type": "json_schema", "name": "a", "schema": _FORM}},
        "metadata": {"a": "1"},
        "conversation": uuid4().hex,
    }


def _completion() -> dict[str, Any]:
    said = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
    function = {"name": "toolx", "parameters": _FORM}
    call = {"id": "c1", "type": "function", "function": {"name": "toolx", "arguments": "{}"}}
    return {
        "messages": [
            {"role": "system", "content": "Be brief."},
            said,
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "1"},
            said,
        ],
        "model": "demo",
        "stream": True,
        "stream_options": {"include_usage": True},
        "tools": [{"type": "function", "function": function}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": _FORM}},
        "metadata": {"a": "1"},
        "stop": ["x"],
    }


def _envelope() -> dict[str, Any]:
    return {
        "input": {"text": "hello", "contents": [{"type": "text", "text": "hello"}]},
        "run_id": uuid4().hex,
        "event": {"event_id": "e1", "event_type": "message.received"},
        "conversation": {"conversation_id": uuid4().hex},
        "model": "demo",
        "metadata": {"params": {"a": 1}},
        "resources": {},
    }


_PARAMETERS: Final = ("tools", 0, "parameters")
WIRES: Final = {
    "run-agent-input": Wire(
        "/api/v1/agent/runs",
        _agent_input,
        (_PARAMETERS, ("forwardedProps", "response_format", "schema")),
    ),
    "text": Wire("/api/v1/agent/runs", _text_run, (("response_format", "json_schema", "schema"),)),
    "agent-api": Wire("/process", _agent_api, (("tools", 0, "function", "parameters"),)),
    "ag-ui": Wire(
        "/api/v1/agent/ag-ui", _ag_ui, (_PARAMETERS, ("forwardedProps", "response_format", "schema"))
    ),
    "responses": Wire("/v1/responses", _responses, (_PARAMETERS, ("text", "format", "schema"))),
    "chat-completions": Wire(
        "/v1/chat/completions",
        _completion,
        (("tools", 0, "function", "parameters"), ("response_format", "json_schema", "schema")),
    ),
    "runner": Wire("/api/v1/agent/runners/builtin:demo/run", _envelope),
}


def _places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every part of a value."""
    members = (
        value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    )
    for key, part in members:
        yield (*place, key)
        yield from _places(part, (*place, key))


def _with(body: dict[str, Any], place: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(body)
    inner: Any = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


def _at(body: dict[str, Any], place: tuple[Any, ...]) -> Any:
    for key in place:
        body = body[key]
    return body


def _repeated(value: Any, size: int) -> str:
    """A list of many of the same; each with an id of its own where it has one."""
    times = size // len(_dumps(value)) + 1
    numbered = isinstance(value, dict) and "id" in value
    return _dumps([value | {"id": f"n{number}"} if numbered else value for number in range(times)])


@st.composite
def mutated(draw: st.DrawFn, wire: Wire) -> bytes:
    """A valid body with something hostile in it."""
    body = wire.valid()
    places = sorted(_places(body), key=str)
    kind = draw(st.sampled_from(("value", "value", "value", "schema", "repeated", "added", "bytes")))
    if kind == "bytes":
        return _damaged(draw, _dumps(body).encode())
    place, hostile = draw(st.sampled_from(places)), ""
    if kind == "schema" and wire.schemas:
        place, hostile = draw(st.sampled_from(wire.schemas)), draw(SCHEMAS)
    elif kind == "repeated":
        place = draw(
            st.sampled_from([one for one in places if isinstance(_at(body, one), list)] or places)
        )
        part = _at(body, place)
        hostile = _repeated(part[-1] if isinstance(part, list) and part else part, draw(_SIZES))
    elif kind == "added":
        place = (*place[:-1], draw(st.text(max_size=8))) if isinstance(place[-1], str) else place
    written = _dumps(_with(body, place, _HERE))
    return written.replace(_dumps(_HERE), hostile or draw(VALUES)).encode()[:LARGEST]


def _damaged(draw: st.DrawFn, body: bytes) -> bytes:
    """The body with some bytes in place of others, anywhere."""
    start = draw(st.integers(0, len(body)))
    end = draw(st.integers(start, min(len(body), start + 20)))
    some = draw(
        st.binary(max_size=20)
        | st.sampled_from((b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\\u00", b" " * 100_000))
    )
    return body[:start] + some + body[end:]


def bodies(wire: Wire) -> st.SearchStrategy[bytes]:
    """Mostly mutations of what is valid, so that they get past the first check."""
    return st.one_of(
        mutated(wire), mutated(wire), mutated(wire), VALUES.map(str.encode), st.binary(max_size=200)
    )
