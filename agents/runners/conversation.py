"""A thread as a model reads it: every tool call beside its answer, and nothing unanswered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import convert
from msgspec.structs import replace

from agents.providers.base import ChatMessage, ImagePart, ReasoningBlock
from agents.requests import Attachment, InputMessage

PREFETCHED: Final = "prefetch-"  # ids of calls that the request made before the model's


def chat_messages(messages: Sequence[InputMessage]) -> tuple[ChatMessage, ...]:
    """Return the messages for a model, oldest first; calls without an answer are left out.

    A provider refuses a call without its answer, and an answer without its call. If an answer contains
    its call, the arguments in it are those that were used.
    """
    answered = {message.tool_call_id for message in messages if message.role == "tool"}
    return tuple(_together(_paired(messages, answered)))


def _together(messages: Iterable[ChatMessage]) -> Iterator[ChatMessage]:
    """Join calls that follow each other into one message; their answers come after all of them."""
    joined: ChatMessage | None = None
    for message in messages:
        if joined and joined.tool_calls and message.role == "assistant" and not message.content:
            calls = (*joined.tool_calls, *message.tool_calls)
            joined = replace(joined, tool_calls=calls, reasoning=(*joined.reasoning, *message.reasoning))
            continue
        if joined:
            yield joined
        joined = message
    if joined:
        yield joined


def _paired(messages: Sequence[InputMessage], answered: set[str | None]) -> Iterator[ChatMessage]:
    open_calls: set[str] = set()
    made_with = {call.id: call for one in messages if one.role == "tool" for call in one.tool_calls}
    for message in messages:
        match message.role:
            case "user" | "system":
                images = tuple(map(_image, message.attachments))
                yield ChatMessage(message.role, message.content, images, layout=message.layout)
            case "developer":
                yield ChatMessage("system", message.content)
            case "assistant":
                calls = [call for call in message.tool_calls if call.id in answered - open_calls]
                open_calls |= {call.id for call in calls}
                if calls or message.content:
                    made = tuple(made_with.get(call.id, call) for call in calls)
                    thoughts = _thoughts(message) if calls else ()
                    yield ChatMessage("assistant", message.content, tool_calls=made, reasoning=thoughts)
            case "tool":
                yield from _answer(message, open_calls)


def _answer(message: InputMessage, open_calls: set[str]) -> Iterator[ChatMessage]:
    """Yield a tool's answer; one of our own tools contains its call."""
    call_id = message.tool_call_id or ""
    if call_id.startswith(PREFETCHED):
        return
    if call_id not in open_calls:
        if not message.tool_calls:
            return
        thoughts = _thoughts(message)
        yield ChatMessage("assistant", "", tool_calls=message.tool_calls, reasoning=thoughts)
    open_calls.discard(call_id)
    content = message.content if message.error is None else f"Error: {message.error}"
    images = tuple(map(_image, message.attachments))
    yield ChatMessage("tool", content, images, tool_call_id=call_id, layout=message.layout)


def _thoughts(message: InputMessage) -> tuple[ReasoningBlock, ...]:
    return tuple(convert(block, ReasoningBlock) for block in message.reasoning)


def _image(file: Attachment) -> ImagePart:
    return ImagePart(file.mime_type, stored=f"{file.bucket}/{file.path}")
