"""The `anthropic.messages` wire, streaming: POST {base_url}/v1/messages.

Written from the provider's public API reference ("Create a Message", "Streaming Messages"). An
answer is a list of blocks: text, thoughts (signed, to be sent back unchanged), tool calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from agents.providers.anthropic_body import WIRE, forms
from agents.providers.base import Finished, ModelEvent, ReasoningBlock, ReasoningText, TextDelta
from agents.providers.decoding import make_decoder
from agents.providers.exchange import Wire
from agents.providers.reader import Reader, Reasons, sum_counts
from agents.providers.refusals import interrupted_error, stream_error
from agents.providers.tool_names import ToolNames
from conversations.events import Usage

_MEANINGS: Final[Reasons] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
}


class _Delta(Struct, gc=False):
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Block(Struct, gc=False):
    type: str = ""
    id: str | None = None
    name: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    input: Any = None


class _Details(Struct, gc=False):
    thinking_tokens: int | None = None


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _Details | None = None


class _Message(Struct, gc=False):
    usage: _Usage | None = None


class _Event(Struct, gc=False):
    type: str
    index: int = 0
    delta: _Delta | None = None
    content_block: _Block | None = None
    message: _Message | None = None
    usage: _Usage | None = None
    error: Any = None


class _Thought(Struct, gc=False):
    """A thinking block so far; with `data` it is a redacted one."""

    words: list[str]
    signed: list[str]
    data: str = ""

    @property
    def block(self) -> dict[str, Any]:
        """The block in the form that the provider wants back; {} if it did not sign it."""
        if self.data:
            return {"type": "redacted_thinking", "data": self.data}
        fields = {"thinking": "".join(self.words), "signature": "".join(self.signed)}
        return {"type": "thinking"} | fields if fields["signature"] else {}


_decode: Final = make_decoder(_Event)


class MessagesReader(Reader):
    """The reader of one message's events; it is whole only with a stop reason or `message_stop`."""

    def __init__(self, names: ToolNames) -> None:
        super().__init__(names)
        self._answer_tool = names.answer
        self._answers: set[int] = set()
        self._counts = _Usage()
        self._thoughts: dict[int, _Thought] = {}

    def read(self, data: bytes) -> Sequence[ModelEvent]:
        event = _decode(data)
        self.kind = event.type
        match event.type:
            case "content_block_delta":
                return self._more(event.index, event.delta) if event.delta else ()
            case "content_block_start":
                return self._begin(event.index, event.content_block or _Block())
            case "message_start" if event.message:
                self._count(event.message.usage)
            case "message_delta":
                self.reason = (event.delta and event.delta.stop_reason) or self.reason
                self._count(event.usage)
            case "message_stop":
                self.done = True
            case "error":
                raise stream_error(event.error)
        return ()  # pings, and future additions to the wire

    def _more(self, place: int, delta: _Delta) -> Sequence[ModelEvent]:
        if delta.text:
            return [TextDelta(delta.text)]
        if delta.partial_json:
            if place in self._answers:
                return [TextDelta(delta.partial_json)]
            self.calls.add(place, delta.partial_json)
        elif delta.thinking or delta.signature:
            return self._think(place, delta.thinking or "", delta.signature or "")
        return ()

    def _begin(self, place: int, block: _Block) -> Sequence[ModelEvent]:
        match block.type:
            case "text" if block.text:
                return [TextDelta(block.text)]
            case "thinking":
                return self._think(place, block.thinking or "", block.signature or "")
            case "redacted_thinking":
                self._thoughts[place] = _Thought([], [], data=block.data or "")
            case "tool_use" if self._answer_tool and block.name == self._answer_tool:
                self._answers.add(place)
            case "tool_use":
                self.calls.begin(place, id=block.id, name=block.name)
                if isinstance(block.input, dict) and block.input:  # whole, as other servers send it
                    self.calls.add(place, msgspec.json.encode(block.input).decode())
        return ()

    def _think(self, place: int, words: str, signature: str) -> Sequence[ModelEvent]:
        thought = self._thoughts.setdefault(place, _Thought([], []))
        thought.words.append(words)
        thought.signed.append(signature)
        return [ReasoningText(words)] if words else ()

    def _count(self, counts: _Usage | None) -> None:
        """Update the counts, which are totals so far; counts that an event leaves out stay."""
        for name in _Usage.__struct_fields__:
            if counts is not None and (total := getattr(counts, name)) is not None:
                setattr(self._counts, name, total)

    @property
    def usage(self) -> Usage:
        """Our counts; this wire counts input that it read from and wrote to its cache separately."""
        counts = self._counts
        read, written = counts.cache_read_input_tokens, counts.cache_creation_input_tokens
        details = counts.output_tokens_details or _Details()
        return Usage(
            input_tokens=sum_counts(counts.input_tokens, read, written),
            output_tokens=sum_counts(counts.output_tokens),
            cached_tokens=sum_counts(read),
            reasoning_tokens=sum_counts(details.thinking_tokens),
            cache_write_tokens=sum_counts(written),
        )

    def end(self) -> Finished:
        if not (self.done or self.reason):
            raise interrupted_error()
        blocks = (thought.block for _, thought in sorted(self._thoughts.items()))
        reasoning = tuple(ReasoningBlock(WIRE, block) for block in blocks if block)
        calls = self.calls.assembled()
        gave_answer = self._answers and not calls and self.reason == "tool_use"
        reason = "end_turn" if gave_answer else self.reason
        return self.finish(reason, _MEANINGS, calls, reasoning)


def _headers(key: str) -> dict[str, str]:
    return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})


stream: Final = Wire(WIRE, lambda model: "/messages", _headers, forms, MessagesReader, version="/v1")
