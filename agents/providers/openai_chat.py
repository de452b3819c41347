"""The `openai.chat_completions` wire, streaming: POST {base_url}/chat/completions.

Written from the provider's public API reference ("Create chat completion", "Streaming"). Many other
servers use it too, so parameters that only OpenAI has are sent only if requested.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from agents.providers.base import Finished, ModelEvent, ReasoningBlock, ReasoningText, TextDelta
from agents.providers.decoding import make_decoder
from agents.providers.exchange import DONE, Wire
from agents.providers.openai_chat_body import WIRE, forms
from agents.providers.reader import Reader, Reasons, sum_counts
from agents.providers.refusals import interrupted_error, stream_error
from agents.providers.tool_names import ToolNames
from conversations.events import Usage

_MEANINGS: Final[Reasons] = {
    "function_call": "tool_calls",
    "max_tokens": "length",
    "end_turn": "stop",
    "eos": "stop",
    "tool_use": "tool_calls",
}


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _CallPiece(Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Part(Struct, gc=False):
    text: str | None = None
    thinking: list[_Part] | None = None


class _Detail(Struct, gc=False):
    text: str | None = None
    summary: str | None = None


class _Delta(Struct, gc=False):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: Raw = Raw()
    tool_calls: list[_CallPiece] | None = None


class _Choice(Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None


class TokenDetails(Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(Struct, gc=False):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_cache_hit_tokens: int | None = None
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None


class _Groq(Struct, gc=False):
    usage: Raw = Raw()


class _Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: Raw = Raw()
    x_groq: _Groq | None = None
    error: Any = None


_decode: Final = make_decoder(_Chunk)
_NULL: Final = Raw(b"null")  # OpenAI sends it with each piece but the last
_decode_details: Final = msgspec.json.Decoder(list[_Detail] | None).decode
_decode_usage: Final = msgspec.json.Decoder(_Usage, strict=False).decode


class ChatReader(Reader):
    """The reader of one completion's chunks; it is whole only with a finish reason or `[DONE]`."""

    def __init__(self, names: ToolNames) -> None:
        super().__init__(names)
        self._counts = _Usage()
        self._thoughts: list[str] = []

    def read(self, data: bytes) -> list[ModelEvent]:
        if data == DONE:
            self.done = True
            return []
        chunk = _decode(data)
        if chunk.error:
            raise stream_error(chunk.error)
        usage = chunk.usage or (chunk.x_groq and chunk.x_groq.usage)
        if usage and usage != _NULL and (counts := _counts(usage)):
            self._counts = counts
        produced: list[ModelEvent] = []
        for choice in chunk.choices or ():
            if choice.finish_reason:
                self.reason = choice.finish_reason
            if choice.delta is not None:
                self._take(choice.delta, produced)
        return produced

    def _take(self, delta: _Delta, produced: list[ModelEvent]) -> None:
        thought = delta.reasoning_content or delta.reasoning
        if delta.reasoning_details and not thought:
            thought = _detailed(delta.reasoning_details)
        if thought:
            if delta.reasoning_content:
                self._thoughts.append(thought)
            produced.append(ReasoningText(thought))
        if isinstance(delta.content, list):
            _take_parts(delta.content, produced)
        elif delta.content:
            produced.append(TextDelta(delta.content))
        if delta.refusal:
            self.refused = True
            produced.append(TextDelta(delta.refusal))
        if delta.tool_calls:
            self._call(delta.tool_calls)

    def _call(self, pieces: list[_CallPiece]) -> None:
        for piece in pieces:
            place, function = piece.index or 0, piece.function or _Function()
            self.calls.begin(place, id=piece.id, name=function.name)
            if function.arguments:
                self.calls.add(place, function.arguments)

    @property
    def usage(self) -> Usage:
        """Our counts; DeepSeek has its own name for cached input, xAI counts reasoning apart."""
        counts = self._counts
        prompt = counts.prompt_tokens_details or TokenDetails()
        completion = counts.completion_tokens_details or TokenDetails()
        read, written = sum_counts(counts.prompt_tokens), sum_counts(counts.completion_tokens)
        thought = sum_counts(completion.reasoning_tokens)
        apart = thought if sum_counts(counts.total_tokens) == read + written + thought else 0
        return Usage(
            input_tokens=read,
            output_tokens=sum_counts(written, apart),
            cached_tokens=sum_counts(prompt.cached_tokens) or sum_counts(counts.prompt_cache_hit_tokens),
            reasoning_tokens=thought,
            cache_write_tokens=sum_counts(prompt.cache_write_tokens),
        )

    def end(self) -> Finished:
        if not (self.done or self.reason):
            raise interrupted_error()
        calls = self.calls.assembled()
        reason = self.reason or "stop"
        meanings = _MEANINGS
        if reason == "stop":  # some servers send it with calls too, and refusals end like any answer
            meanings = {"stop": self.regular_end(calls)}
        return self.finish(reason, meanings, calls, self._blocks() if calls else ())

    def _blocks(self) -> tuple[ReasoningBlock, ...]:
        """Return the thoughts, which some providers want back with the calls that followed from them."""
        whole = "".join(self._thoughts)
        return (ReasoningBlock(WIRE, {"reasoning_content": whole}),) if whole else ()


def _detailed(details: Raw) -> str:
    """Return thoughts that OpenRouter sends twice and Snowflake only here; "" for any other form."""
    try:
        return "".join(one.text or one.summary or "" for one in _decode_details(details) or ())
    except msgspec.DecodeError:
        return ""


def _take_parts(parts: list[_Part], produced: list[ModelEvent]) -> None:
    """Add Mistral's parts: text, and thinking with texts of its own."""
    for part in parts:
        produced += [ReasoningText(thought.text) for thought in part.thinking or () if thought.text]
        if part.text:
            produced.append(TextDelta(part.text))


def _counts(raw: Raw) -> _Usage | None:
    """Decode the counts, also from 12.0 or "12"; None if they are invalid, which costs no answer."""
    try:
        return _decode_usage(raw)
    except msgspec.DecodeError:
        return None


def bearer_headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


stream: Final = Wire(WIRE, lambda model: "/chat/completions", bearer_headers, forms, ChatReader)
