"""The `openai.chat_completions` wire, streaming: POST {base_url}/chat/completions.

Written from the provider's public API reference ("Create chat completion", "Streaming"). A chunk
is decoded into structs that know only the fields we use; everything else is skipped unread.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any, Final

import aiohttp
import msgspec
from msgspec import Struct

from agents.providers import http
from agents.providers.base import (
    Finished,
    ModelEvent,
    ModelRequest,
    Opened,
    ProviderError,
    ReasoningText,
    Target,
    TextDelta,
    ToolCall,
)
from agents.providers.sse import Cutter, EventTooLarge
from conversations.events import Usage


class _Function(Struct):
    name: str | None = None
    arguments: str | None = None


class _CallPiece(Struct):
    index: int = 0
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct):
    content: str | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(Struct):
    delta: _Delta | None = None
    finish_reason: str | None = None


class _Details(Struct):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None


class _Chunk(Struct):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: Any = None


_decode: Final = msgspec.json.Decoder(_Chunk).decode

_MOMENT_S: Final = 0.1
_LONGEST_REASON: Final = 64
_LONGEST_NAME: Final = 128
_LARGEST_COUNT: Final = 2**31 - 1


async def stream(target: Target, request: ModelRequest) -> AsyncGenerator[ModelEvent]:
    """Stream one completion. ProviderError when the provider refuses, hangs, breaks off or rambles."""
    async with http.posting(
        f"{target.base_url.rstrip('/')}/chat/completions",
        headers={"Authorization": f"Bearer {target.key}"} if target.key else {},
        body=_body(target, request),
    ) as response:
        yield Opened(
            target.endpoint_id, target.provider, target.model, response.headers.get("x-request-id")
        )
        async for event in _read(response):
            yield event


def _body(target: Target, request: ModelRequest) -> bytes:
    body: dict[str, Any] = {
        "model": target.model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": request.messages,
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    return msgspec.json.encode(body)


async def _read(response: aiohttp.ClientResponse) -> AsyncGenerator[ModelEvent]:
    """The events of a response body; the stream is whole only with a finish reason or `[DONE]`."""
    cutter, calls, body = Cutter(), _Calls(), http.read(response)
    finish_reason, usage, done, heard = "", Usage(), False, False
    async for some in body:
        for data in _events(cutter, some):
            heard = True
            if data == b"[DONE]":
                done = True
                break
            chunk = _chunk(data)
            if chunk.usage is not None:
                usage = _usage(chunk.usage)
            for choice in chunk.choices or ():
                finish_reason = choice.finish_reason or finish_reason
                delta = choice.delta
                if delta is None:
                    continue
                if delta.reasoning_content:
                    yield ReasoningText(delta.reasoning_content)
                if text := delta.content or delta.refusal:
                    yield TextDelta(text)
                calls.take(delta.tool_calls or ())
        if done:
            await _let_end(body)
            break
    if not heard:
        raise http.invalid_response()
    if not (done or finish_reason):
        raise http.interrupted()
    yield Finished(_reason(finish_reason), usage, calls.whole())


async def _let_end(body: AsyncGenerator[bytes]) -> None:
    """Give a body that is done a moment to end, so that its connection can serve again."""
    with suppress(ProviderError, TimeoutError):
        async with asyncio.timeout(_MOMENT_S):
            async for _ in body:
                pass


def _events(cutter: Cutter, some: bytes) -> list[bytes]:
    try:
        return list(cutter.feed(some))
    except EventTooLarge:
        raise http.invalid_response() from None


def _chunk(data: bytes) -> _Chunk:
    try:
        chunk = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        chunk = _mended(data)
    if chunk.error:
        raise ProviderError("provider_error", "The model provider reported an error in its stream.")
    return chunk


def _mended(data: bytes) -> _Chunk:
    """A chunk with half a surrogate pair in it, as providers send that cut text by UTF-16 units."""
    try:
        text = json.dumps(json.loads(data), ensure_ascii=False)
        return _decode(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))
    except (ValueError, RecursionError):
        raise http.invalid_response() from None


def _reason(given: str) -> str:
    """Why the model stopped, as far as the run's row can hold it."""
    return given.replace("\x00", "")[:_LONGEST_REASON] or "stop"


def _usage(usage: _Usage) -> Usage:
    prompt, completion = usage.prompt_tokens_details, usage.completion_tokens_details
    return Usage(
        input_tokens=_count(usage.prompt_tokens),
        output_tokens=_count(usage.completion_tokens),
        cached_tokens=_count(prompt.cached_tokens) if prompt else 0,
        reasoning_tokens=_count(completion.reasoning_tokens) if completion else 0,
    )


def _count(given: int | None) -> int:
    """A provider's count, as far as the run's row can hold it."""
    return min(max(given or 0, 0), _LARGEST_COUNT)


class _Call(Struct):
    """A tool call so far."""

    id: str
    name: str = ""
    arguments: list[str] = []


class _Calls:
    """Puts tool calls together from their pieces, which may interleave.

    A new id begins a new call: some providers give every call the same index, or none.
    """

    def __init__(self) -> None:
        self._all: list[_Call] = []
        self._open: dict[int, _Call] = {}

    def take(self, pieces: list[_CallPiece] | tuple[()]) -> None:
        for piece in pieces:
            call = self._open.get(piece.index)
            if call is None or (piece.id and piece.id != call.id):
                call = self._open[piece.index] = _Call(piece.id or f"call_{piece.index}")
                self._all.append(call)
            if piece.function and piece.function.name:
                call.name = piece.function.name[:_LONGEST_NAME]
            if piece.function and piece.function.arguments:
                call.arguments.append(piece.function.arguments)

    def whole(self) -> tuple[ToolCall, ...]:
        return tuple(
            ToolCall(call.id, call.name, "".join(call.arguments) or "{}")
            for call in self._all
            if call.name
        )
