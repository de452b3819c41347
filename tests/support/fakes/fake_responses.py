"""A scripted model on loopback that speaks `openai.responses`, from its public API reference.

Its machinery is `fake_model`'s; here is what the wire says and what the provider refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import count, zip_longest
from typing import Any, ClassVar

import jsonschema_rs

from tests.support.fakes.fake_model import TEXT, Answer, End, FakeModel, Received, Step
from tests.support.fakes.fake_model import status as chat_status

USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 8,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 19,
}
DETAILED_USAGE = USAGE | {
    "input_tokens_details": {"cached_tokens": 7},
    "output_tokens_details": {"reasoning_tokens": 5},
}


_ASKED: dict[str, Any] = {
    "created_at": 1_700_000_000,
    "background": False,
    "completed_at": None,
    "error": None,
    "frequency_penalty": 0.0,
    "incomplete_details": None,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "model": "fake",
    "moderation": None,
    "output": [],
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "prompt_cache_retention": "24h",
    "reasoning": {"effort": "medium", "summary": None},
    "safety_identifier": None,
    "service_tier": "default",
    "store": False,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}, "verbosity": "medium"},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 0.98,
    "truncation": "disabled",
    "usage": None,
    "user": None,
    "metadata": {},
}
"""A response says again what it was asked for."""
_TO_THINK: dict[str, Any] = {
    "reasoning": {"effort": "high", "summary": "detailed"},
    "prompt_cache_retention": None,
}


def event(kind: str, **fields: Any) -> bytes:
    """One named server-sent event; its data repeats the name."""
    told = {"type": kind, "sequence_number": 0} | fields
    data = json.dumps(told, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {data}\n\n".encode()


def response(status: str, **fields: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "status": status} | _ASKED | fields


def opening(**asked: Any) -> bytes:
    begun = response("in_progress", **asked)
    return event("response.created", response=begun) + event("response.in_progress", response=begun)


def _item(
    place: int, kind: str, item: Mapping[str, Any], ended: Mapping[str, Any], *steps: bytes
) -> bytes:
    """An item: its start, what comes of it, its end, where it differs."""
    told = {"type": kind, **item}
    begun = event("response.output_item.added", output_index=place, item=told)
    return b"".join(
        [begun, *steps, event("response.output_item.done", output_index=place, item=told | dict(ended))]
    )


def _part(place: int, part: Mapping[str, Any], ended: Mapping[str, Any], *steps: bytes) -> bytes:
    """A message item of one part."""
    at = {"item_id": f"msg_{place}", "output_index": place, "content_index": 0}
    item = {
        "id": f"msg_{place}",
        "status": "in_progress",
        "content": [],
        "phase": "final_answer",
        "role": "assistant",
    }
    whole = {**part, **ended}
    return _item(
        place,
        "message",
        item,
        {"status": "completed", "content": [whole]},
        event("response.content_part.added", **at, part=part),
        *steps,
        event("response.content_part.done", **at, part=whole),
    )


def words(place: int, *pieces: str) -> bytes:
    """A message item: its start, its deltas, its end."""
    at = {"item_id": f"msg_{place}", "output_index": place, "content_index": 0, "logprobs": []}
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
    return _part(
        place,
        part,
        {"text": "".join(pieces)},
        *(event("response.output_text.delta", **at, delta=one, obfuscation="aZ09") for one in pieces),
        event("response.output_text.done", **at, text="".join(pieces)),
    )


def refused(place: int, words: str) -> bytes:
    """A message item that is a refusal, by the reference: none was recorded."""
    at = {"item_id": f"msg_{place}", "output_index": place, "content_index": 0}
    return _part(
        place,
        {"type": "refusal", "refusal": ""},
        {"refusal": words},
        event("response.refusal.delta", **at, delta=words),
        event("response.refusal.done", **at, refusal=words),
    )


def thoughts(place: int, *parts: str, secret: str = "ZW5jcnlwdGVk") -> bytes:
    """A reasoning item of these summary parts, each in two pieces."""
    item: dict[str, Any] = {"id": f"rs_{place}", "encrypted_content": secret, "summary": []}
    steps, shown = [], []
    for index, part in enumerate(parts):
        at = {"item_id": f"rs_{place}", "output_index": place, "summary_index": index}
        kind, half = "response.reasoning_summary_text.delta", len(part) // 2
        shown.append({"type": "summary_text", "text": part})
        steps += [
            event("response.reasoning_summary_part.added", **at, part=shown[-1] | {"text": ""}),
            event(kind, **at, delta=part[:half], obfuscation="aZ09"),
            event(kind, **at, delta=part[half:], obfuscation="aZ09"),
            event("response.reasoning_summary_text.done", **at, text=part),
            event("response.reasoning_summary_part.done", **at, part=shown[-1]),
        ]
    return _item(place, "reasoning", item, {"summary": shown}, *steps)


def ended(kind: str = "completed", **fields: Any) -> bytes:
    at = {"completed_at": 1_700_000_001} if kind == "completed" else {}
    return event(f"response.{kind}", response=response(kind, **at, **fields))


def numbered(*steps: bytes) -> bytes:
    """The events of a stream, each with its number."""
    number, told = count(), b"".join(steps)
    return re.sub(rb'"sequence_number":0', lambda _: b'"sequence_number":%d' % next(number), told)


def answer(*items: bytes, usage: Mapping[str, Any] | None = USAGE) -> Answer:
    """A whole response of these items, which stand in its end once more."""
    said = [json.loads(one[6:]) for one in b"".join(items).splitlines() if one.startswith(b"data: ")]
    output = [one["item"] for one in said if one["type"] == "response.output_item.done"]
    asked = _TO_THINK if any(item["type"] == "reasoning" for item in output) else {}
    end = ended(usage=usage, output=output, **asked)
    return Answer((numbered(opening(**asked), *items, end),))


def text(*pieces: str, usage: Mapping[str, Any] | None = USAGE) -> Answer:
    return answer(words(0, *pieces), usage=usage)


def tool_calls(*calls: tuple[str, str, str], first: int = 0) -> bytes:
    """Calls of (id, name, arguments), one after the other."""
    return b"".join(_call(place, *call) for place, call in enumerate(calls, first))


def woven_calls(*calls: tuple[str, str, str]) -> bytes:
    """Calls whose events take turns, as the wire allows and nobody was seen to send."""
    told = [re.findall(rb"(?s).+?\n\n", _call(place, *call)) for place, call in enumerate(calls)]
    return b"".join(one for turn in zip_longest(*told) for one in turn if one)


def _call(place: int, key: str, name: str, arguments: str) -> bytes:
    item = {"id": f"fc_{place}", "status": "in_progress", "arguments": "", "call_id": key, "name": name}
    ended = {"status": "completed", "arguments": arguments}
    at = {"item_id": f"fc_{place}", "output_index": place}
    kind = "response.function_call_arguments"
    pieces = re.findall(r"(?s).{1,4}", arguments)
    return _item(
        place,
        "function_call",
        item,
        ended,
        *(event(f"{kind}.delta", **at, delta=one, obfuscation="aZ09") for one in pieces),
        event(f"{kind}.done", **at, arguments=arguments),
    )


def failed(code: str, message: str) -> bytes:
    """An error in the middle: it is told, and the response fails."""
    error = {"type": code, "code": code, "message": message, "param": None}
    return event("error", error=error) + ended("failed", error={"code": code, "message": message})


def status(code: int, *, kind: str | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    """An HTTP error with OpenAI's error body; `kind` is its code."""
    made = chat_status(code, headers=headers)
    if kind is None:
        return made
    error = {
        "message": "Refused: sk-secret.",
        "type": "invalid_request_error",
        "param": "input",
        "code": kind,
    }
    return replace(made, steps=(json.dumps({"error": error}).encode(),))


_AT = {"item_id": "msg_0", "output_index": 0, "content_index": 0}
_HELLO = text(*TEXT)
_OPENED: tuple[Step, ...] = (
    opening(),
    *(event("response.output_text.delta", **_AT, delta=piece) for piece in ("Hel", "lo")),
)
_INCOMPLETE = {"incomplete_details": {"reason": "max_output_tokens"}, "usage": USAGE}

_CALLS = (
    ("call_a", "gymbro_exercise_search", '{"query": "卧推", "top_k": 3}'),
    ("call_b", "weather", '{"city": "São Paulo"}'),
)

CASES: dict[str, Answer] = {
    "hello": _HELLO,
    "hang": Answer((End.HANG,)),
    "hang-midway": Answer((*_OPENED, End.HANG)),
    "cut-first": Answer((End.CUT,)),
    "cut": Answer((*_OPENED, End.CUT)),
    "truncated": Answer(_OPENED),
    "overloaded-in-stream": Answer((*_OPENED, failed("server_error", "Failed: sk-secret."))),
    "unknown-error-in-stream": Answer((*_OPENED, failed("strange", "sk-secret"))),
    "rubbish": Answer((b"<html><body>Bad gateway</body></html>",)),
    "bad-chunk": Answer((*_OPENED, b'data: {"type":"response.output_text.del\n\n')),
    "comments": Answer((b": keep-alive\n\n", *_HELLO.steps, b": bye\n\n")),
    "crlf": replace(_HELLO, line_end=b"\r\n"),
    "split": replace(_HELLO, splits_characters=True),
    "no-usage": text(*TEXT, usage=None),
    "usage": text(*TEXT, usage=DETAILED_USAGE),
    "length": Answer((*_OPENED, ended("incomplete", **_INCOMPLETE))),
    "refusal": answer(refused(0, "I can't.")),
    "reasoning": answer(thoughts(0, "Let me think."), words(1, *TEXT)),
    "strange": Answer(
        (
            event("response.some_new_event", delta={"not": "text"}, item={"type": "new"}),
            event("response.output_item.added", output_index=5, item={"type": "web_search_call"}),
            *_HELLO.steps,
        )
    ),
    "tools": replace(answer(tool_calls(*_CALLS)), splits_characters=True),
    "woven": answer(woven_calls(*_CALLS)),
}


class FakeResponses(FakeModel):
    """The server; it refuses what OpenAI refuses."""

    cases: ClassVar[Mapping[str, Answer]] = CASES

    @staticmethod
    def error(code: int) -> Answer:
        return status(code)

    def refusal(self, request: Received) -> Answer | None:
        if (request.method, request.path) != ("POST", "/v1/responses"):
            return status(404)
        if not request.headers.get("authorization", "").startswith("Bearer sk-"):
            return status(401)
        return status(400) if faults(request.body) else None


@cache
def _request() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(_REQUEST)


def faults(body: dict[str, Any]) -> list[str]:
    """What is wrong with a request."""
    found = [error.message for error in _request().iter_errors(body)]
    return found or _item_faults(body["input"])


def _item_faults(items: list[dict[str, Any]]) -> list[str]:
    called = [item["call_id"] for item in items if item["type"] == "function_call"]
    answered = [item["call_id"] for item in items if item["type"] == "function_call_output"]
    alone = [
        item["id"]
        for item, after in zip(items, [*items[1:], {"type": ""}], strict=True)
        if item["type"] == "reasoning" and not _may_follow(after)
    ]
    return [f"no output for {key}" for key in called if key not in answered] + [
        f"{key} was provided without its required following item" for key in alone
    ]


def _may_follow(item: dict[str, Any]) -> bool:
    return item["type"] in {"reasoning", "function_call"} or item.get("role") == "assistant"


def _one(kind: str, *optional: str, **fields: Any) -> dict[str, Any]:
    needed = ["type", *(name for name in fields if name not in optional)]
    allowed = {"type": {"const": kind}} | fields
    return {"type": "object", "properties": allowed, "required": needed, "additionalProperties": False}


_STRING = {"type": "string"}
_NAME = {"type": "string", "pattern": "^[a-zA-Z0-9_-]{1,64}$"}
_URL = {"type": "string", "pattern": "^(https?://|data:image/[a-z]+;base64,[A-Za-z0-9+/]+=*$)"}
_INPUT = [
    _one("input_text", text=_STRING),
    _one("input_image", image_url=_URL, detail={"enum": ["auto", "low", "high"]}),
]
_SAID = {"anyOf": [*_INPUT, _one("output_text", text=_STRING)]}
_ITEMS = [
    _one(
        "message",
        role={"enum": ["user", "assistant", "system", "developer"]},
        content={"type": "array", "items": _SAID, "minItems": 1},
    ),
    _one("function_call", call_id=_STRING, name=_NAME, arguments=_STRING),
    _one(
        "function_call_output",
        call_id=_STRING,
        output={"anyOf": [_STRING, {"type": "array", "items": {"anyOf": _INPUT}}]},
    ),
    _one(
        "reasoning",
        id=_STRING,
        summary={"type": "array", "items": _one("summary_text", text=_STRING)},
        encrypted_content=_STRING,
    ),
]
_FORMAT = _one("json_schema", name=_NAME, schema={"type": "object"}, strict={"type": "boolean"})
_TOOL = _one(
    "function",
    name=_NAME,
    description=_STRING,
    parameters={"type": "object"},
    strict={"type": "boolean"},
)
_REQUEST = {
    "type": "object",
    "properties": {
        "model": _STRING,
        "stream": {"const": True},
        "store": {"const": False},
        "input": {"type": "array", "items": {"anyOf": _ITEMS}, "minItems": 1},
        "tools": {"type": "array", "items": _TOOL, "minItems": 1},
        "temperature": {"type": "number", "minimum": 0, "maximum": 2},
        "top_p": {"type": "number", "minimum": 0, "maximum": 1},
        "max_output_tokens": {"type": "integer", "minimum": 1},
        "tool_choice": {
            "anyOf": [{"enum": ["none", "auto", "required"]}, _one("function", name=_NAME)],
        },
        "parallel_tool_calls": {"type": "boolean"},
        "include": {"const": ["reasoning.encrypted_content"]},
        "reasoning": {
            "type": "object",
            "properties": {
                "summary": {"enum": ["auto", "concise", "detailed"]},
                "effort": {"enum": ["low", "medium", "high"]},
            },
            "additionalProperties": False,
        },
        "text": {
            "type": "object",
            "properties": {"format": _FORMAT, "verbosity": {"enum": ["low", "medium", "high"]}},
            "additionalProperties": False,
        },
    },
    "required": ["model", "stream", "input"],
    "dependentRequired": {"tool_choice": ["tools"], "parallel_tool_calls": ["tools"]},
    "additionalProperties": False,
}
