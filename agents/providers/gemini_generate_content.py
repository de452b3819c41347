"""The `gemini.generate_content` wire: POST {base_url}/v1beta/models/{model}:streamGenerateContent.

Written from the provider's public API reference ("Generating content", "Thought signatures"). Each
event is a whole response with the parts that are new; the stream has no end mark but its end.
"""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import quote

import msgspec
from msgspec import Struct

from agents.providers.base import Finished, ModelEvent, ReasoningBlock, ReasoningText, TextDelta
from agents.providers.decoding import make_decoder
from agents.providers.exchange import Wire
from agents.providers.gemini_body import WIRE, forms
from agents.providers.reader import Reader, Reasons, sum_counts
from agents.providers.refusals import interrupted_error, stream_error
from agents.providers.tool_names import ToolNames
from conversations.events import Usage

_MEANINGS: Final[Reasons] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
    "MALFORMED_FUNCTION_CALL": "invalid_tool_call",
    "UNEXPECTED_TOOL_CALL": "invalid_tool_call",
    "TOO_MANY_TOOL_CALLS": "invalid_tool_call",
}


class _Call(Struct, gc=False):
    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Part(Struct, gc=False, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _Call | None = None


class _Content(Struct, gc=False):
    parts: list[_Part] | None = None


class _Candidate(Struct, gc=False, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _Feedback(Struct, gc=False, rename="camel"):
    block_reason: str | None = None


class _Usage(Struct, gc=False, rename="camel"):
    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    cached_content_token_count: int | None = None
    thoughts_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None


class _Chunk(Struct, gc=False, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _Usage | None = None
    error: Any = None


_decode: Final = make_decoder(_Chunk)


class GeminiReader(Reader):
    """The reader of one answer's chunks; it is whole only with a finish or a block reason."""

    def __init__(self, names: ToolNames) -> None:
        super().__init__(names)
        self._called = 0
        self._blocked = ""
        self._counts = _Usage()
        self._signatures: list[dict[str, Any]] = []

    def read(self, data: bytes) -> list[ModelEvent]:
        chunk = _decode(data)
        if chunk.error:
            raise stream_error(chunk.error)
        if chunk.usage_metadata is not None:
            self._counts = chunk.usage_metadata
        if chunk.prompt_feedback is not None:
            self._blocked = chunk.prompt_feedback.block_reason or self._blocked
        produced: list[ModelEvent] = []
        if chunk.candidates:
            candidate = chunk.candidates[0]
            if candidate.finish_reason:
                self.reason = candidate.finish_reason
            if candidate.content is not None:
                for part in candidate.content.parts or ():
                    self._take(part, produced)
        return produced

    def _take(self, part: _Part, produced: list[ModelEvent]) -> None:
        if part.function_call is not None:
            self._call(part.function_call, part.thought_signature)
            return
        if part.text:
            produced.append(ReasoningText(part.text) if part.thought else TextDelta(part.text))
        if part.thought_signature and not part.thought:
            self._signatures.append({"thoughtSignature": part.thought_signature})

    def _call(self, call: _Call, signature: str | None) -> None:
        """Add a call, which comes whole and often without an id; a signature belongs to its call."""
        place, self._called = self._called, self._called + 1
        self.calls.begin(place, id=call.id, name=call.name)
        arguments = bytes(call.args).decode(errors="replace")
        self.calls.add(place, "{}" if arguments == "null" else arguments)
        if signature:
            self._signatures.append({"thoughtSignature": signature, "call": place})

    @property
    def usage(self) -> Usage:
        """Our counts; this wire counts thoughts and the results of its own tools separately."""
        counts = self._counts
        return Usage(
            input_tokens=sum_counts(counts.prompt_token_count, counts.tool_use_prompt_token_count),
            output_tokens=sum_counts(counts.candidates_token_count, counts.thoughts_token_count),
            cached_tokens=sum_counts(counts.cached_content_token_count),
            reasoning_tokens=sum_counts(counts.thoughts_token_count),
        )

    def end(self) -> Finished:
        calls = self.calls.assembled()
        meanings = _MEANINGS
        if self._blocked and not self.reason:
            meanings = {self._blocked: "content_filter"}
        elif not self.reason:
            raise interrupted_error()
        elif calls:
            meanings = {**_MEANINGS, "STOP": "tool_calls"}
        blocks = tuple(ReasoningBlock(WIRE, self._signed(block)) for block in self._signatures)
        return self.finish(self.reason or self._blocked, meanings, calls, blocks)

    def _signed(self, block: dict[str, Any]) -> dict[str, Any]:
        return block | {"call": self.calls.id_at(block["call"])} if "call" in block else block


def _path(model: str) -> str:
    name = quote(model, safe="/:@")
    place = name if name.startswith(("models/", "tunedModels/")) else f"models/{name}"
    return f"/{place}:streamGenerateContent?alt=sse"


def _headers(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key} if key else {}


stream: Final = Wire(WIRE, _path, _headers, forms, GeminiReader, version="/v1beta")
