"""A thread as a model reads it: every tool call beside its answer, and nothing unanswered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import convert
from msgspec.structs import replace

from agents.providers.base import ChatMessage, ImagePart, ReasoningBlock, ToolCall
from agents.requests import AskedCall, Attachment, InputMessage

PREFETCHED: Final = "prefetch-"  # ids of calls that the request made before the model was asked


def chat_messages(said: Sequence[InputMessage]) -> tuple[ChatMessage, ...]:
    """The messages for a model, oldest first; calls without an answer are left out.

    A model's provider refuses a call without its answer, and an answer without its call. An answer that
    brings its call along knows best with what arguments it was made.
    """
    answered = {message.tool_call_id for message in said if message.role == "tool"}
    return tuple(_together(_paired(said, answered)))


def _together(said: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """Calls that follow each other in one message: their answers come after all of them."""
    held: ChatMessage | None = None
    for message in said:
        if held and held.tool_calls and message.role == "assistant" and not message.content:
            calls = (*held.tool_calls, *message.tool_calls)
            held = replace(held, tool_calls=calls, reasoning=(*held.reasoning, *message.reasoning))
            continue
        if held:
            yield held
        held = message
    if held:
        yield held


def _paired(said: Sequence[InputMessage], answered: set[str | None]) -> Iterator[ChatMessage]:
    asked: set[str] = set()
    made_with = {call.id: call for one in said if one.role == "tool" for call in one.tool_calls}
    for message in said:
        match message.role:
            case "user" | "system":
                images = tuple(map(_image, message.attachments))
                yield ChatMessage(message.role, message.content, images, layout=message.layout)
            case "developer":
                yield ChatMessage("system", message.content)
            case "assistant":
                calls = [call for call in message.tool_calls if call.id in answered - asked]
                asked |= {call.id for call in calls}
                if calls or message.content:
                    made = tuple(_call(made_with.get(call.id, call)) for call in calls)
                    thoughts = _thoughts(message) if calls else ()
                    yield ChatMessage("assistant", message.content, tool_calls=made, reasoning=thoughts)
            case "tool":
                yield from _answer(message, asked)


def _answer(message: InputMessage, asked: set[str]) -> Iterator[ChatMessage]:
    """A tool's answer; one of our own tools brings its call along."""
    call_id = message.tool_call_id or ""
    if call_id.startswith(PREFETCHED):
        return
    if call_id not in asked:
        if not message.tool_calls:
            return
        made = tuple(map(_call, message.tool_calls))
        yield ChatMessage("assistant", "", tool_calls=made, reasoning=_thoughts(message))
    asked.discard(call_id)
    content = message.content if message.error is None else f"Error: {message.error}"
    images = tuple(map(_image, message.attachments))
    yield ChatMessage("tool", content, images, tool_call_id=call_id, layout=message.layout)


def _thoughts(message: InputMessage) -> tuple[ReasoningBlock, ...]:
    return tuple(convert(block, ReasoningBlock) for block in message.reasoning)


def _call(call: AskedCall) -> ToolCall:
    return ToolCall(call.id, call.name, call.arguments)


def _image(file: Attachment) -> ImagePart:
    return ImagePart(file.mime_type, stored=f"{file.bucket}/{file.path}")
