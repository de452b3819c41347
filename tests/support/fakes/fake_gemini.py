"""A scripted model on loopback that speaks `gemini.generate_content`, from its public API reference.

Its machinery is `fake_model`'s; here is what the wire says and what the provider refuses.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, ClassVar
from urllib.parse import unquote

import jsonschema_rs

from tests.support.fakes.fake_model import TEXT, Answer, End, FakeModel, Received, Step

USAGE = {"promptTokenCount": 11, "candidatesTokenCount": 8, "totalTokenCount": 19}
DETAILED_USAGE = {
    "promptTokenCount": 11,
    "cachedContentTokenCount": 7,
    "candidatesTokenCount": 3,
    "thoughtsTokenCount": 5,
    "totalTokenCount": 19,
}


def counts(usage: Mapping[str, Any] | None) -> dict[str, Any]:
    """What every chunk says of its use; a model that thinks does not say what its answer consists of."""
    if usage is None:
        return {}
    details = {"promptTokensDetails": [{"modality": "TEXT", "tokenCount": 11}]}
    if "thoughtsTokenCount" not in usage:
        details["candidatesTokensDetails"] = [{"modality": "TEXT", "tokenCount": 8}]
    return {"usageMetadata": {**usage, **details}}


def chunk(*parts: Mapping[str, Any], finish: str | None = None, **fields: Any) -> bytes:
    """One event: a response with these parts; models that think number their candidates."""
    content = {"content": {"parts": list(parts), "role": "model"}} if parts else {}
    reason = {"finishReason": finish} if finish else {}
    place = {"index": 0} if "thoughtsTokenCount" in fields.get("usageMetadata", {}) else {}
    candidate = content | reason | place
    return event(candidates=[candidate], modelVersion="gemini", responseId="r1", **fields)


def event(**fields: Any) -> bytes:
    return b"data: " + json.dumps(fields, ensure_ascii=False).encode() + b"\n\n"


def text(*pieces: str, finish: str = "STOP", usage: Mapping[str, Any] | None = USAGE) -> Answer:
    """A whole answer, one chunk a piece; the counts come with every chunk."""
    said = [chunk({"text": piece}, **counts(usage)) for piece in pieces]
    return Answer((*said, chunk({"text": ""}, finish=finish, **counts(usage))))


def call(name: str, arguments: Any, key: str | None = None, signature: str | None = None) -> Any:
    called = {"name": name, "args": arguments} | ({"id": key} if key else {})
    return {"functionCall": called} | ({"thoughtSignature": signature} if signature else {})


def status(code: int, *, kind: str = "", headers: Mapping[str, str] | None = None) -> Answer:
    """An HTTP error with Google's error body; `kind` is the reason in its details."""
    error = {"code": code, "message": "Refused: sk-secret.", "status": _KINDS.get(code, "UNKNOWN")}
    details = {"details": _details(kind)} if kind else {}
    body = json.dumps({"error": error | details}).encode()
    return Answer((body,), code, {"content-type": "application/json"} | dict(headers or {}))


def _details(reason: str) -> list[dict[str, Any]]:
    kind, about = "type.googleapis.com/google.rpc.", {"domain": "googleapis.com", "metadata": {"a": "b"}}
    words = {"locale": "en-US", "message": "Refused: sk-secret."}
    return [
        {"@type": f"{kind}ErrorInfo", "reason": reason, **about},
        {"@type": f"{kind}LocalizedMessage", **words},
    ]


_KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_HELLO = text(*TEXT)
_OPENED: tuple[Step, ...] = (chunk({"text": "Hel"}), chunk({"text": "lo"}))
_OVERLOADED = {"code": 503, "message": "Overloaded: sk-secret.", "status": "UNAVAILABLE"}

_THOUGHT = {"promptTokenCount": 11, "totalTokenCount": 16, "thoughtsTokenCount": 5}
_THOUGHTFUL = USAGE | {"candidatesTokenCount": 3, "thoughtsTokenCount": 5}

CASES: dict[str, Answer] = {
    "hello": _HELLO,
    "hang": Answer((End.HANG,)),
    "hang-midway": Answer((*_OPENED, End.HANG)),
    "cut-first": Answer((End.CUT,)),
    "cut": Answer((*_OPENED, End.CUT)),
    "truncated": Answer(_OPENED),
    "overloaded-in-stream": Answer((*_OPENED, event(error=_OVERLOADED))),
    "unknown-error-in-stream": Answer((*_OPENED, event(error={"code": 418, "status": "STRANGE"}))),
    "rubbish": Answer((b"<html><body>Bad gateway</body></html>",)),
    "bad-chunk": Answer((*_OPENED, b'data: {"candidates":[{"cont\n\n')),
    "comments": Answer((b": keep-alive\n\n", *_HELLO.steps, b": bye\n\n")),
    "crlf": replace(_HELLO, line_end=b"\r\n"),
    "split": replace(_HELLO, splits_characters=True),
    "no-usage": text(*TEXT, usage=None),
    "usage": text(*TEXT, usage=DETAILED_USAGE),
    "length": text("Hel", "lo", finish="MAX_TOKENS"),
    "refusal": text(finish="SAFETY"),
    "reasoning": Answer(
        (
            *(
                chunk({"text": one, "thought": True}, **counts(_THOUGHT))
                for one in ("Let me ", "think.")
            ),
            chunk({"text": TEXT[0], "thoughtSignature": "c2lnbmVk"}, **counts(_THOUGHTFUL)),
            *(chunk({"text": one}, **counts(_THOUGHTFUL)) for one in TEXT[1:-1]),
            chunk({"text": TEXT[-1]}, finish="STOP", **counts(_THOUGHTFUL)),
        )
    ),
    "strange": Answer(
        (
            event(candidates=[{"content": {"role": "model"}, "someNewField": [1]}]),
            chunk({"executableCode": {"code": "1"}}, {"inlineData": {"data": ""}}),
            event(usageMetadata={"promptTokenCount": 1}),
            *_HELLO.steps,
        )
    ),
    "one-tool": Answer(
        (chunk(call("weather", {"city": "São Paulo"}), finish="STOP", **counts(USAGE)),),
    ),
    "tools": replace(
        Answer(
            (
                chunk(
                    call("gymbro_exercise_search", {"query": "卧推", "top_k": 3}, "fc_a", "c2lnbmVk"),
                    call("weather", {"city": "São Paulo"}, "fc_b"),
                    **counts(_THOUGHTFUL),
                ),
                chunk({"text": ""}, finish="STOP", **counts(_THOUGHTFUL)),
            )
        ),
        splits_characters=True,
    ),
}
_PATH = re.compile(r"/v1beta/models/[^/?]+:streamGenerateContent\?alt=sse")


class FakeGemini(FakeModel):
    """The server; it refuses what Gemini refuses."""

    root: ClassVar[str] = ""
    cases: ClassVar[Mapping[str, Answer]] = CASES

    @staticmethod
    def error(code: int) -> Answer:
        return status(code)

    def receive(self, method: str, path: str, headers: Mapping[str, str], raw: bytes) -> Received:
        return super().receive(method, unquote(path), headers, raw)

    def refusal(self, request: Received) -> Answer | None:
        if request.method != "POST" or not _PATH.fullmatch(request.path):
            return status(404)
        if not request.headers.get("x-goog-api-key"):
            return status(403)
        return status(400) if faults(request.body) else None


@cache
def _request() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(_REQUEST)


def faults(body: dict[str, Any]) -> list[str]:
    """What is wrong with a request."""
    found = [error.message for error in _request().iter_errors(body)]
    return found or _turn_faults(body["contents"]) or _choice_faults(body)


def _choice_faults(body: dict[str, Any]) -> list[str]:
    calling = body.get("toolConfig", {}).get("functionCallingConfig", {})
    if not calling:
        return []
    offered = [one["name"] for tool in body.get("tools", []) for one in tool["functionDeclarations"]]
    found = [] if offered else ["function calling config is set without function_declarations"]
    found += [
        f"{one} is not declared" for one in calling.get("allowedFunctionNames", ()) if one not in offered
    ]
    formed = "responseMimeType" in body.get("generationConfig", {})
    return found + (
        ["a forced call takes no response mime type"] if formed and calling["mode"] == "ANY" else []
    )


def _turn_faults(contents: list[dict[str, Any]]) -> list[str]:
    found = [] if contents[0]["role"] == "user" else ["the first turn must be the user's"]
    for one, two in pairwise([*contents, {"role": "user", "parts": []}]):
        called = sum("functionCall" in part for part in one["parts"])
        answered = sum("functionResponse" in part for part in two["parts"][:called])
        if one["role"] == two["role"] and two["parts"]:
            found.append("roles must alternate")
        if called != answered:
            found.append("the number of function response parts must equal that of function calls")
    return found


def _closed(*required: str, **fields: Any) -> dict[str, Any]:
    rest = {"properties": fields, "required": list(required), "additionalProperties": False}
    return {"type": "object"} | rest


_STRING = {"type": "string"}
_NAME = {"type": "string", "pattern": "^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$"}
_OBJECT = {"type": "object"}
_BLOB = _closed("mimeType", "data", mimeType=_STRING, data={"pattern": "^[A-Za-z0-9+/]+=*$"})
_PART = _closed(
    text=_STRING,
    thoughtSignature=_STRING,
    inlineData=_BLOB,
    fileData=_closed("fileUri", mimeType=_STRING, fileUri=_STRING),
    functionCall=_closed("name", id=_STRING, name=_NAME, args=_OBJECT),
    functionResponse=_closed("name", "response", id=_STRING, name=_NAME, response=_OBJECT),
) | {"minProperties": 1}
_PARTS = {"type": "array", "items": _PART, "minItems": 1}
_COUNT = {"type": "integer", "minimum": 0}
_NUMBER = {"type": "number"}
_MEMBERS = {"type": "object", "additionalProperties": {"$ref": "#/$defs/schema"}, "minProperties": 1}
_SCHEMA = _closed(
    "type",
    type={"enum": ["string", "number", "integer", "boolean", "array", "object"]},
    format={"enum": ["enum", "date-time", "float", "double", "int32", "int64"]},
    title=_STRING,
    description=_STRING,
    nullable={"type": "boolean"},
    default={},
    enum={"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
    items={"$ref": "#/$defs/schema"},
    minItems=_COUNT,
    maxItems=_COUNT,
    properties={
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/schema"},
        "minProperties": 1,
    },
    required={"type": "array", "items": _STRING},
    minProperties=_COUNT,
    maxProperties=_COUNT,
    minLength=_COUNT,
    maxLength=_COUNT,
    pattern=_STRING,
    minimum=_NUMBER,
    maximum=_NUMBER,
) | {"if": {"properties": {"type": {"const": "array"}}}, "then": {"required": ["items"]}}
_UNION = _closed(
    "anyOf",
    anyOf={"type": "array", "items": {"$ref": "#/$defs/schema"}, "minItems": 2},
    description=_STRING,
    title=_STRING,
    nullable={"type": "boolean"},
    default={},
)
_TOOL = _closed(
    "name",
    "description",
    name=_NAME,
    description=_STRING,
    parameters={"$ref": "#/$defs/schema"},
)
SCHEMA = {"$defs": {"schema": {"anyOf": [_SCHEMA, _UNION]}}, "$ref": "#/$defs/schema"}
_THINKING = _closed(
    includeThoughts={"const": True},
    thinkingLevel={"enum": ["MINIMAL", "LOW", "MEDIUM", "HIGH"]},
    thinkingBudget=_COUNT,
)
_CONFIG = _closed(
    temperature=_NUMBER,
    topP=_NUMBER,
    maxOutputTokens=_COUNT,
    stopSequences={"type": "array", "items": _STRING, "maxItems": 5},
    seed={"type": "integer"},
    frequencyPenalty=_NUMBER,
    presencePenalty=_NUMBER,
    responseMimeType={"const": "application/json"},
    responseSchema={"$ref": "#/$defs/schema"},
    thinkingConfig=_THINKING,
)
_CALLING = _closed(
    "mode",
    mode={"enum": ["AUTO", "ANY", "NONE", "VALIDATED"]},
    allowedFunctionNames={"type": "array", "items": _NAME, "minItems": 1},
)
_CONTENT = _closed("role", "parts", role={"enum": ["user", "model"]}, parts=_PARTS)
_DECLARED = {"type": "array", "items": _TOOL, "minItems": 1}
_REQUEST = _closed(
    "contents",
    contents={"type": "array", "items": _CONTENT, "minItems": 1},
    systemInstruction=_closed("parts", parts=_PARTS),
    tools={"type": "array", "items": _closed(functionDeclarations=_DECLARED)},
    toolConfig=_closed(functionCallingConfig=_CALLING),
    generationConfig=_CONFIG,
) | {"$defs": SCHEMA["$defs"]}
