"""A scripted model on loopback that speaks `anthropic.messages`, from its public API reference.

Its machinery is `fake_model`'s; here is what the wire says and what the provider refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise, zip_longest
from typing import Any, ClassVar

import jsonschema_rs

from tests.support.fakes.fake_model import TEXT, Answer, End, FakeModel, Received, Step

USAGE = {"input_tokens": 11, "output_tokens": 8}
DETAILED_USAGE = {
    "input_tokens": 4,
    "cache_read_input_tokens": 7,
    "cache_creation_input_tokens": 3,
    "output_tokens": 8,
}


_CACHE = {"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
_ABOUT = {
    "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
    "service_tier": "standard",
    "inference_geo": "global",
}


def event(kind: str, **fields: Any) -> bytes:
    """One named server-sent event; its data repeats the name."""
    data = json.dumps({"type": kind} | fields, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


_STOPPED = {"stop_reason": None, "stop_sequence": None}
_REFUSED = {
    "type": "refusal",
    "category": "cyber",
    "explanation": "Why not.",
    "recommended_model": "claude-other",
}


def opening(usage: Mapping[str, Any] | None = USAGE) -> bytes:
    """The beginning of a message; the output counted so far is one token."""
    counted = {"usage": {**_CACHE, **_ABOUT, **usage, "output_tokens": 1}} if usage is not None else {}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude"}
    return event("message_start", message=message | _STOPPED | counted)


def block(index: int, block: Mapping[str, Any], *deltas: Mapping[str, Any]) -> bytes:
    """A content block: its start, its deltas, its stop."""
    more = [event("content_block_delta", index=index, delta=delta) for delta in deltas]
    start = event("content_block_start", index=index, content_block=block)
    return b"".join([start, *more, event("content_block_stop", index=index)])


def words(index: int, *pieces: str) -> bytes:
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return block(index, {"type": "text", "text": ""}, *deltas)


def ending(reason: str, usage: Mapping[str, Any] | None = USAGE) -> bytes:
    counted = {"usage": {**_CACHE, **usage}} if usage is not None else {}
    details = {"stop_details": _REFUSED} if reason == "refusal" else {}
    delta = {"stop_reason": reason, "stop_sequence": None} | details
    return event("message_delta", delta=delta, **counted) + event("message_stop")


def answer(*blocks: bytes, reason: str = "end_turn", usage: Mapping[str, Any] | None = USAGE) -> Answer:
    """A whole message of these blocks, with a ping after the first has begun."""
    told = re.findall(rb"(?s).+?\n\n", b"".join(blocks))
    begun = 2 if told and b'"tool_use"' in told[0] else 1
    steps = [b"".join(told[:begun]), event("ping"), b"".join(told[begun:])]
    return Answer((opening(usage), *steps, ending(reason, usage)))


def text(*pieces: str, finish: str = "end_turn", usage: Mapping[str, Any] | None = USAGE) -> Answer:
    return answer(words(0, *pieces), reason=finish, usage=usage)


def tool(index: int, key: str, name: str, arguments: str) -> tuple[bytes, list[bytes]]:
    """The start of a call, and its arguments in pieces of four characters."""
    called = {"type": "tool_use", "id": key, "name": name, "input": {}}
    pieces = ["", *re.findall(r".{1,4}", arguments, re.DOTALL)]
    deltas = [
        event(
            "content_block_delta",
            index=index,
            delta={"type": "input_json_delta", "partial_json": piece},
        )
        for piece in pieces
    ]
    return event("content_block_start", index=index, content_block=called), deltas


def tool_calls(*calls: tuple[str, str, str]) -> Answer:
    """Calls of (id, name, arguments), one after the other."""
    made = [tool(index, *call) for index, call in enumerate(calls)]
    blocks = [
        b"".join([start, *deltas, event("content_block_stop", index=index)])
        for index, (start, deltas) in enumerate(made)
    ]
    return answer(*blocks, reason="tool_use")


def woven_calls(*calls: tuple[str, str, str]) -> Answer:
    """Calls whose pieces take turns, as the wire allows and nobody was seen to send."""
    made = [tool(index, *call) for index, call in enumerate(calls)]
    woven = [one for turn in zip_longest(*(deltas for _, deltas in made)) for one in turn if one]
    stops = [event("content_block_stop", index=index) for index in range(len(calls))]
    return answer(*(start for start, _ in made), *woven, *stops, reason="tool_use")


def failed(kind: str) -> bytes:
    """An error in the middle of a stream."""
    return event("error", error={"type": kind, "message": "Overloaded: sk-secret."})


def status(code: int, *, kind: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """An HTTP error with Anthropic's error body."""
    error = {"type": kind or _KINDS.get(code, "api_error"), "message": "Refused: sk-secret."}
    body = json.dumps({"type": "error", "error": error, "request_id": "req_1"}).encode()
    return Answer((body,), code, {"content-type": "application/json"} | dict(headers or {}))


_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
_HELLO = text(*TEXT)
_OPENED: tuple[Step, ...] = (
    opening(),
    event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    *(
        event("content_block_delta", index=0, delta={"type": "text_delta", "text": piece})
        for piece in ("Hel", "lo")
    ),
)
THOUGHT = {"type": "thinking", "thinking": "Let me think.", "signature": "c2lnbmVkIQ=="}
REDACTED = {"type": "redacted_thinking", "data": "c2VjcmV0"}
_THOUGHTS = block(
    0,
    {"type": "thinking", "thinking": "", "signature": ""},
    {"type": "thinking_delta", "thinking": "Let me "},
    {"type": "thinking_delta", "thinking": "think."},
    {"type": "thinking_delta", "thinking": ""},
    {"type": "signature_delta", "signature": "c2lnbmVkIQ=="},
) + block(1, REDACTED)

_CALLS = (
    ("toolu_a", "gymbro_exercise_search", '{"query": "卧推", "top_k": 3}'),
    ("toolu_b", "weather", '{"city": "São Paulo"}'),
)

CASES: dict[str, Answer] = {
    "hello": _HELLO,
    "hang": Answer((End.HANG,)),
    "hang-midway": Answer((*_OPENED, End.HANG)),
    "cut-first": Answer((End.CUT,)),
    "cut": Answer((*_OPENED, End.CUT)),
    "truncated": Answer(_OPENED),
    "overloaded-in-stream": Answer((*_OPENED, failed("overloaded_error"))),
    "unknown-error-in-stream": Answer((*_OPENED, failed("strange_error"))),
    "rubbish": Answer((b"<html><body>Bad gateway</body></html>",)),
    "bad-chunk": Answer((*_OPENED, b'event: content_block_delta\ndata: {"type":"cont\n\n')),
    "comments": Answer((b": keep-alive\n\n", event("ping"), *_HELLO.steps, b": bye\n\n")),
    "crlf": replace(_HELLO, line_end=b"\r\n"),
    "split": replace(_HELLO, splits_characters=True),
    "no-usage": text(*TEXT, usage=None),
    "usage": text(*TEXT, usage=DETAILED_USAGE),
    "length": text("Hel", "lo", finish="max_tokens"),
    "refusal": answer(reason="refusal"),
    "reasoning": answer(_THOUGHTS, words(2, *TEXT)),
    "strange": Answer(
        (
            event("some_new_event", delta={"text": "not text"}, index=3),
            *_HELLO.steps[:2],
            block(7, {"type": "some_new_block", "input": [7]}),
            *_HELLO.steps[2:],
        )
    ),
    "tools": replace(tool_calls(*_CALLS), splits_characters=True),
    "woven": woven_calls(*_CALLS),
}


class FakeAnthropic(FakeModel):
    """The server; it refuses what Anthropic refuses."""

    root: ClassVar[str] = ""
    cases: ClassVar[Mapping[str, Answer]] = CASES

    @staticmethod
    def error(code: int) -> Answer:
        return status(code)

    def refusal(self, request: Received) -> Answer | None:
        if (request.method, request.path) != ("POST", "/v1/messages"):
            return status(404)
        if not request.headers.get("x-api-key"):
            return status(401)
        wrong = request.headers.get("anthropic-version") != "2023-06-01" or faults(request.body)
        return status(400) if wrong else None

    def receive(self, *arrived: Any) -> Received:
        received = super().receive(*arrived)
        self.faults = faults(received.body)
        return received


@cache
def _request() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(_REQUEST)


def faults(body: dict[str, Any]) -> list[str]:
    """What is wrong with a request."""
    found = [error.message for error in _request().iter_errors(body)]
    found = found or [*_turn_faults(body["messages"]), *_limit_faults(body), *_tool_faults(body)]
    return found or _choice_faults(body)


def _turn_faults(messages: list[dict[str, Any]]) -> list[str]:
    found = [] if messages[0]["role"] == "user" else ["the first message must be the user's"]
    found += ["roles must alternate" for one, two in pairwise(messages) if one["role"] == two["role"]]
    for one, two in pairwise([*messages, {"role": "user", "content": []}]):
        called = [part["id"] for part in one["content"] if part["type"] == "tool_use"]
        first = two["content"][: len(called)]
        answered = [part.get("tool_use_id") for part in first]
        if sorted(called) != sorted(map(str, answered)):
            found.append("tool_use ids were found without tool_result blocks immediately after")
    return found


def _tool_faults(body: dict[str, Any]) -> list[str]:
    told = {part["type"] for one in body["messages"] for part in one["content"]}
    if told.isdisjoint({"tool_use", "tool_result"}) or "tools" in body:
        return []
    return ["requests which include tool_use or tool_result blocks must define tools"]


def _choice_faults(body: dict[str, Any]) -> list[str]:
    choice, offered = body.get("tool_choice", {}), [tool["name"] for tool in body.get("tools", [])]
    if choice and not offered:
        return ["tool_choice may only be specified while providing tools"]
    named = choice.get("name")
    return [f"tool {named} not found in provided tools"] if named and named not in offered else []


def _limit_faults(body: dict[str, Any]) -> list[str]:
    thinking = body.get("thinking", {})
    budget, sampled = thinking.get("budget_tokens", 0), {"temperature", "top_p"} & set(body)
    found = ["max_tokens must be greater than the budget"] if budget >= body["max_tokens"] else []
    found += ["temperature and top_p cannot both be given"] if len(sampled) == 2 else []
    forces = body.get("tool_choice", {}).get("type") in ("any", "tool")
    found += ["thinking may not force a tool"] if thinking and forces else []
    return found + (["thinking takes no sampling"] if thinking and sampled else [])


def _one(kind: str, *required: str, **fields: Any) -> dict[str, Any]:
    allowed = {"type": {"const": kind}, "cache_control": {"const": {"type": "ephemeral"}}} | fields
    needed = list(dict.fromkeys(["type", *(required or fields)]))
    return {"type": "object", "properties": allowed, "required": needed, "additionalProperties": False}


_TEXT = _one("text", text={"type": "string", "pattern": r"\S"})
_ID = {"type": "string", "pattern": "^[a-zA-Z0-9_-]+$"}
_STRING = {"type": "string", "minLength": 1}
_NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,128}$"}
_BASE64 = {"type": "string", "pattern": "^[A-Za-z0-9+/]+=*$"}
_MEDIA = {"enum": ["image/jpeg", "image/png", "image/gif", "image/webp"]}
_IMAGE = _one(
    "image",
    source={"anyOf": [_one("base64", media_type=_MEDIA, data=_BASE64), _one("url", url=_STRING)]},
)
_RESULT = _one(
    "tool_result",
    "tool_use_id",
    tool_use_id=_ID,
    content={"type": "array", "items": {"anyOf": [_TEXT, _IMAGE]}, "minItems": 1},
)
_CALL = _one("tool_use", id=_ID, name=_NAME, input={"type": "object"})
_THINKING = _one("thinking", thinking={"type": "string"}, signature=_STRING)
_BLOCKS = [_TEXT, _IMAGE, _RESULT, _CALL, _THINKING, _one("redacted_thinking", data=_STRING)]
_MESSAGE = {
    "type": "object",
    "properties": {
        "role": {"enum": ["user", "assistant"]},
        "content": {"type": "array", "items": {"anyOf": _BLOCKS}, "minItems": 1},
    },
    "required": ["role", "content"],
    "additionalProperties": False,
}
_TOOL = {
    "type": "object",
    "properties": {
        "name": _NAME,
        "description": {"type": "string"},
        "input_schema": {"type": "object", "properties": {"type": {"const": "object"}}},
    },
    "required": ["name", "input_schema"],
    "additionalProperties": False,
}
_THINK = [
    _one("adaptive", "type", display={"enum": ["summarized", "omitted"]}),
    _one("enabled", budget_tokens={"type": "integer", "minimum": 1024}),
]
_APART = {"type": "boolean"}
_CHOICES = [
    _one("auto", "type", disable_parallel_tool_use=_APART),
    _one("any", "type", disable_parallel_tool_use=_APART),
    _one("tool", "name", name=_NAME, disable_parallel_tool_use=_APART),
    _one("none", "type"),
]
_OUTPUT = {
    "type": "object",
    "properties": {
        "effort": {"enum": ["low", "medium", "high"]},
        "format": _one("json_schema", schema={"type": "object"}),
    },
    "additionalProperties": False,
}
_REQUEST = {
    "type": "object",
    "properties": {
        "model": _STRING,
        "stream": {"const": True},
        "max_tokens": {"type": "integer", "minimum": 1},
        "messages": {"type": "array", "items": _MESSAGE, "minItems": 1},
        "system": {"type": "array", "items": _TEXT, "minItems": 1},
        "tools": {"type": "array", "items": _TOOL, "minItems": 1},
        "tool_choice": {"anyOf": _CHOICES},
        "stop_sequences": {"type": "array", "items": {"type": "string", "pattern": r"\S"}},
        "temperature": {"type": "number", "minimum": 0, "maximum": 1},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "thinking": {"anyOf": _THINK},
        "output_config": _OUTPUT,
    },
    "required": ["model", "max_tokens", "messages", "stream"],
    "additionalProperties": False,
}
