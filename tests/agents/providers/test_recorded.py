"""Our readers, and the providers that we fake, against what real providers sent.

The recordings are shapes, in tests/agents/providers/recorded; to read them again, with the sources
cloned into FOLDER: `python -m tests.support.fakes.recordings FOLDER` (see its docstring).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from agents.providers.base import ProviderError, ReasoningText, TextDelta
from agents.providers.refusals import refusal_error
from agents.providers.sse import EventSplitter
from agents.providers.tool_names import ToolNames
from agents.tools.exa_results import parse_results
from conversations.events import Usage
from tests.support.fakes.recordings import DONE, Frame, Recording, recordings
from tests.support.fakes.shapes import TEXT
from tests.support.fakes.wires import WIRES

CHAT, RESPONSES = "openai.chat_completions", "openai.responses"
MESSAGES, GEMINI = "anthropic.messages", "gemini.generate_content"
ALL = {wire: recordings(wire) for wire in WIRES}
_COUNTS = {
    "prompt_tokens": 100,
    "input_tokens": 100,
    "promptTokenCount": 100,
    "completion_tokens": 20,
    "output_tokens": 20,
    "candidatesTokenCount": 20,
    "total_tokens": 120,
    "totalTokenCount": 120,
    "cached_tokens": 7,
    "cache_read_input_tokens": 7,
    "cachedContentTokenCount": 7,
    "reasoning_tokens": 5,
    "thinking_tokens": 5,
    "thoughtsTokenCount": 5,
    "cache_creation_input_tokens": 3,
    "cache_write_tokens": 3,
    "toolUsePromptTokenCount": 2,
}


@dataclass(frozen=True)
class Read:
    """What a recording says: how many pieces of text and of thoughts, which calls, how it ended."""

    text: int = 0
    thoughts: int = 0
    calls: tuple[str, ...] = ()
    reason: str = "stop"
    usage: Usage = field(default_factory=lambda: _usage())


def _usage(input_tokens: int = 100, output_tokens: int = 20, **more: Any) -> Usage:
    return Usage(input_tokens, output_tokens, **more)


SAID: dict[str, dict[str, Read | str]] = {
    CHAT: {
        "openai text": Read(text=8),
        "openai call": Read(calls=("11111",), reason="tool_calls"),
        "openai two calls": Read(calls=("1", "1"), reason="tool_calls"),
        "openai text of 2025": Read(text=24),
        "azure content filter results": Read(text=4, usage=_usage(reasoning_tokens=5)),
        "deepseek thoughts": Read(text=11, thoughts=198, usage=_usage(reasoning_tokens=5)),
        "deepseek thoughts and call": Read(
            thoughts=39,
            calls=("1111111111",),
            reason="tool_calls",
            usage=_usage(cached_tokens=7, reasoning_tokens=5),
        ),
        "deepseek length": Read(text=400, reason="length"),
        "mistral thoughts": Read(text=97, thoughts=57),
        "mistral call": Read(calls=("1",), reason="tool_calls"),
        "mistral incremental call": Read(
            calls=("1",), reason="tool_calls", usage=_usage(cached_tokens=7)
        ),
        "groq text": Read(text=987),
        "groq thoughts": Read(text=722, thoughts=782),
        "groq call": Read(calls=("1",), reason="tool_calls"),
        "groq error in the stream": "provider_bad_request",
        "openrouter thoughts": Read(text=2, thoughts=3, usage=_usage(reasoning_tokens=5)),
        "openrouter annotations": Read(text=12),
        "openrouter error in the stream": "provider_bad_request",
        "kimi by openrouter": Read(calls=("1",), reason="tool_calls"),
        "xai call": Read(
            thoughts=5,
            calls=("1",),
            reason="tool_calls",
            usage=_usage(cached_tokens=7, reasoning_tokens=5),
        ),
        "zai thoughts": Read(text=1, thoughts=90, usage=_usage(reasoning_tokens=5)),
        "snowflake thoughts": Read(text=10, thoughts=2),
        "anthropic by a gateway": Read(
            text=2, calls=("11",), reason="tool_calls", usage=_usage(input_tokens=0, output_tokens=0)
        ),
        "vllm text": Read(text=13),
    },
    RESPONSES: {
        "openai text": Read(text=1),
        "openai call": Read(calls=("1",), reason="tool_calls"),
        "openai text of 2025": Read(text=7),
        "openai call of 2025": Read(calls=("1",), reason="tool_calls"),
        "openai words and call": Read(
            text=13, calls=("1",), reason="tool_calls", usage=_usage(reasoning_tokens=5)
        ),
        "openai thoughts": Read(text=271, thoughts=383, usage=_usage(reasoning_tokens=5)),
        "openai encrypted thoughts": Read(thoughts=32, calls=("1",), reason="tool_calls"),
        "openai annotations": Read(text=4, usage=_usage(reasoning_tokens=5)),
        "openai error in the stream": "provider_quota_exceeded",
        "openai tool search": Read(),
        "openai hosted tool search and call": Read(
            calls=("1",), reason="tool_calls", usage=_usage(reasoning_tokens=5)
        ),
        "openai custom tool": Read(),
        "deepseek thoughts and call": Read(
            thoughts=14,
            calls=("1",),
            reason="tool_calls",
            usage=_usage(cached_tokens=7, reasoning_tokens=5),
        ),
        "deepseek thoughts": Read(text=7, thoughts=7, usage=_usage(reasoning_tokens=5)),
        "openrouter thoughts": Read(text=1, thoughts=26, usage=_usage(reasoning_tokens=5)),
        "xai thoughts": Read(text=578, thoughts=64, usage=_usage(cached_tokens=7, reasoning_tokens=5)),
        "azure call": Read(calls=("1",), reason="tool_calls"),
    },
    MESSAGES: {
        "anthropic text": Read(text=6),
        "anthropic call": Read(text=2, calls=("11",), reason="tool_calls"),
        "anthropic call alone": Read(calls=("11",), reason="tool_calls"),
        "anthropic call without arguments": Read(text=2, calls=("{}",), reason="tool_calls"),
        "anthropic thoughts": Read(text=95, thoughts=13),
        "anthropic redacted thoughts": Read(text=15),
        "anthropic refusal": Read(reason="refusal"),
        "anthropic counts at the end": Read(text=2),
        "anthropic fallback": Read(text=2),
        "anthropic citations": Read(text=48),
        "anthropic compaction": Read(text=3),
    },
    GEMINI: {
        "gemini text": Read(text=3, usage=_usage(output_tokens=25, reasoning_tokens=5)),
        "gemini call": Read(calls=('{"a": 1}',), reason="tool_calls"),
        "gemini text of 2.0": Read(text=3),
        "gemini thoughts": Read(text=19, thoughts=4, usage=_usage(output_tokens=25, reasoning_tokens=5)),
        "gemini signed call": Read(
            calls=("{}",), reason="tool_calls", usage=_usage(output_tokens=25, reasoning_tokens=5)
        ),
        "gemini signed text": Read(text=2, usage=_usage(output_tokens=25, reasoning_tokens=5)),
        "gemini native output and call": Read(
            calls=("{}",), reason="tool_calls", usage=_usage(output_tokens=25, reasoning_tokens=5)
        ),
        "gemini code execution": Read(
            text=3, usage=_usage(input_tokens=102, output_tokens=25, reasoning_tokens=5)
        ),
        "gemini web search": Read(
            text=10, usage=_usage(input_tokens=102, output_tokens=25, reasoning_tokens=5)
        ),
        "gemini arguments in pieces": Read(
            calls=("{}", "{}"), reason="tool_calls", usage=_usage(output_tokens=25, reasoning_tokens=5)
        ),
        "vertex text": Read(text=1, usage=_usage(output_tokens=25, reasoning_tokens=5)),
    },
}
"""What our readers make of the recordings, or the code that they fail with."""
REFUSED = {
    CHAT: {
        "openai 400": "provider_bad_request",
        "openai 401": "provider_auth_error",
        "openai 404": "provider_model_not_found",
        "openai 429 quota": "provider_quota_exceeded",
        "groq 404": "provider_model_not_found",
        "openrouter 429": "provider_rate_limited",
    },
    RESPONSES: {
        "openai 400": "provider_bad_request",
        "openai 400 model": "provider_model_not_found",
        "deepseek 400": "provider_bad_request",
    },
    MESSAGES: {
        "anthropic 400": "provider_bad_request",
        "anthropic 404": "provider_model_not_found",
        "anthropic 529": "provider_unavailable",
        "anthropic 529 of 2025": "provider_unavailable",
    },
    GEMINI: {
        "gemini 400 key": "provider_auth_error",
        "gemini 429": "provider_rate_limited",
        "gemini 503": "provider_unavailable",
    },
}


def filled(value: Any, name: str = "") -> Any:
    """A shape with a value in each place: a text is one letter, and a count says what it counts."""
    match value:
        case dict() if TEXT in value:
            return {"a": 1}
        case dict():
            return {key: filled(inner, key) for key, inner in value.items()}
        case list():
            return [filled(inner, name) for inner in value]
        case str() if value == TEXT:
            return "w"
        case 1 if not isinstance(value, bool):
            return _COUNTS.get(name, 1)
    return value


def sent(frames: tuple[Frame, ...]) -> bytes:
    told = [frame if frame == DONE else json.dumps(filled(frame)) for frame in frames]
    return b"".join(b"data: %b\n\n" % one.encode() for one in told)


def read(wire: str, recording: Recording) -> Read:
    """What our reader makes of it."""
    reader, events = WIRES[wire].wire.reader(ToolNames([])), list[Any]()
    for data in EventSplitter().feed(sent(recording.frames)):
        events += reader.read(data)
        if reader.done:
            break
    finished = reader.end()
    return Read(
        len("".join(event.text for event in events if isinstance(event, TextDelta))),
        len([event for event in events if isinstance(event, ReasoningText) and event.text == "w"]),
        tuple(call.arguments for call in finished.tool_calls),
        finished.finish_reason,
        finished.usage,
    )


def _each(told: dict[str, dict[str, Any]]) -> list[Any]:
    return [pytest.param(wire, name, id=f"{wire}: {name}") for wire in told for name in told[wire]]


def test_every_recording_is_read_here() -> None:
    assert {wire: {*SAID[wire], *REFUSED[wire]} for wire in WIRES} == {
        wire: set(found) for wire, found in ALL.items()
    }


@pytest.mark.parametrize(("wire", "name"), _each(SAID))
def test_what_a_real_provider_sent_is_read_whole(wire: str, name: str) -> None:
    try:
        found: Read | str = read(wire, ALL[wire][name])
    except ProviderError as error:
        found = error.code
    assert found == SAID[wire][name]


@pytest.mark.parametrize(("wire", "name"), _each(REFUSED))
def test_how_a_real_provider_refuses_is_understood(wire: str, name: str) -> None:
    refused = ALL[wire][name]
    (body,) = refused.frames
    found = refusal_error(refused.status, {}, json.dumps(filled(body)).encode())
    assert found.code == REFUSED[wire][name]


@pytest.mark.parametrize("name", ["exa text", "exa text without an author", "exa text with a score"])
def test_what_exa_answers_is_read(name: str) -> None:
    (frame,) = recordings("exa.search")[name].frames
    address = {"url": "https://example.com/"}
    told = filled(frame) | {"results": [filled(one) | address for one in frame["results"]]}
    (found,) = parse_results(json.dumps(told).encode(), top_k=3)
    (page,) = frame["results"]
    assert found == {
        "title": "w",
        "url": "https://example.com/",
        "published_date": "w" if page.get("publishedDate") else None,
        "author": "w" if page.get("author") else None,
        "score": page.get("score"),
        "snippet": "w" if "text" in page else "",
    }
