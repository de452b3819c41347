"""The `openai.responses` wire, streaming, with no state at the provider: POST {base_url}/responses.

Written from the provider's public API reference ("Create a model response", "Streaming events").
The model's thoughts come encrypted and are sent back with the next request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from agents.providers.base import Finished, ModelEvent, ReasoningBlock, ReasoningText, TextDelta
from agents.providers.decoding import make_decoder
from agents.providers.exchange import DONE, Wire
from agents.providers.openai_chat import TokenDetails, bearer_headers
from agents.providers.openai_responses_body import WIRE, forms
from agents.providers.reader import Reader, Reasons, sum_counts
from agents.providers.refusals import interrupted_error, stream_error
from agents.providers.tool_names import ToolNames
from conversations.events import Usage

_MEANINGS: Final[Reasons] = {"max_output_tokens": "length", "max_tokens": "length"}
_KEPT: Final = ("type", "id", "summary", "content", "encrypted_content")


class _Item(Struct, gc=False):
    type: str = ""
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None  # text of a function's call; an object of some of OpenAI's own tools
    encrypted_content: str | None = None


class _Usage(Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: TokenDetails | None = None
    output_tokens_details: TokenDetails | None = None


class _Incomplete(Struct, gc=False):
    reason: str | None = None


class _Response(Struct, gc=False):
    status: str | None = None
    error: Any = None
    incomplete_details: _Incomplete | None = None
    usage: _Usage | None = None


class _Event(Struct, gc=False):
    type: str
    delta: Any = None
    output_index: int = 0
    summary_index: int = 0
    arguments: str | None = None
    item: msgspec.Raw = msgspec.Raw(b"{}")
    response: _Response | None = None
    error: Any = None
    code: str | None = None


_decode: Final = make_decoder(_Event)
_decode_item: Final = make_decoder(_Item)
_decode_block: Final = make_decoder(dict[str, Any])


class ResponsesReader(Reader):
    """The reader of one response's events; it is whole only with an event of its ending."""

    def __init__(self, names: ToolNames) -> None:
        super().__init__(names)
        self._counts = _Usage()
        self._thoughts: list[dict[str, Any]] = []

    def read(self, data: bytes) -> Sequence[ModelEvent]:
        if data == DONE:  # OpenAI does not send it here, but others do
            return ()
        event = _decode(data)
        self.kind = kind = event.type
        if kind == "response.output_text.delta":
            return [TextDelta(event.delta)] if _is_text(event.delta) else ()
        if kind == "response.function_call_arguments.delta":
            if _is_text(event.delta):
                self.calls.add(event.output_index, event.delta)
            return ()
        return self._produce(event)

    def _produce(self, event: _Event) -> Sequence[ModelEvent]:
        match event.type:
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                return [ReasoningText(event.delta)] if _is_text(event.delta) else ()
            case "response.reasoning_summary_part.added" if event.summary_index:
                return [ReasoningText("\n\n")]
            case "response.refusal.delta" if _is_text(event.delta):
                self.refused = True
                return [TextDelta(event.delta)]
            case "response.output_item.added":
                self._begin(event.output_index, _decode_item(bytes(event.item)))
            case "response.function_call_arguments.done":
                self.calls.set_arguments(event.output_index, event.arguments or "")
            case "response.output_item.done":
                self._settle(event.output_index, bytes(event.item))
            case "response.completed" | "response.incomplete":
                self._end(event.response or _Response(), event.type.removeprefix("response."))
            case "response.failed":
                self._count(event.response)
                raise stream_error(event.response and event.response.error)
            case "error":
                raise stream_error(event.error or {"code": event.code})
        return ()

    def _begin(self, place: int, item: _Item) -> None:
        if item.type == "function_call":
            self.calls.begin(place, id=item.call_id, name=item.name)

    def _settle(self, place: int, raw: bytes) -> None:
        item = _decode_item(raw)
        if item.type == "function_call":
            self._begin(place, item)
            self.calls.set_arguments(place, item.arguments if _is_text(item.arguments) else "")
            self._thoughts_lead_to(item.call_id)
        elif item.type == "reasoning" and item.encrypted_content:
            whole = _decode_block(raw)
            kept = {name: whole[name] for name in _KEPT if whole.get(name) is not None}
            self._thoughts.append({"item": kept})

    def _thoughts_lead_to(self, call_id: str | None) -> None:
        """Note the call after each thought; a thought is sent back before the call that followed."""
        for thought in self._thoughts:
            thought.setdefault("before", call_id or "")

    def _end(self, response: _Response, how: str) -> None:
        self.done = True
        reason = response.incomplete_details and response.incomplete_details.reason
        self.reason = (reason or "") if how == "incomplete" else "completed"
        self._count(response)

    def _count(self, response: _Response | None) -> None:
        if response is not None and response.usage is not None:
            self._counts = response.usage

    @property
    def usage(self) -> Usage:
        counts = self._counts
        read = counts.input_tokens_details or TokenDetails()
        made = counts.output_tokens_details or TokenDetails()
        return Usage(
            input_tokens=sum_counts(counts.input_tokens),
            output_tokens=sum_counts(counts.output_tokens),
            cached_tokens=sum_counts(read.cached_tokens),
            reasoning_tokens=sum_counts(made.reasoning_tokens),
            cache_write_tokens=sum_counts(read.cache_write_tokens),
        )

    def end(self) -> Finished:
        if not self.done:
            raise interrupted_error()
        calls = self.calls.assembled()
        blocks = tuple(ReasoningBlock(WIRE, thought) for thought in self._thoughts)
        meanings = {**_MEANINGS, "completed": self.regular_end(calls)}
        return self.finish(self.reason or "incomplete", meanings, calls, blocks)


def _is_text(delta: object) -> bool:
    return isinstance(delta, str) and delta != ""


stream: Final = Wire(WIRE, lambda model: "/responses", bearer_headers, forms, ResponsesReader)
