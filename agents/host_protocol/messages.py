"""Messages between runners and the Host (specs/runner-host.md, shared message entities).

A chunk from the Host's model stream is a true increment, and the last has `is_final`. A chunk in a
runner's `message.delta` is an increment too; but it is all of the text so far if it comes from a plugin
runtime (the Host of its SDK replaces each chunk by the next), and wherever the text is in `all_content`.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class ImageUrl(Struct, frozen=True):
    url: str


class ContentElement(Struct, frozen=True, kw_only=True):
    """A part of a message: `text`, `image_url`, `image_base64`, `file_url` or `file_base64`."""

    type: str
    text: str | None = None
    image_url: ImageUrl | None = None
    image_base64: str | None = None
    file_url: str | None = None
    file_base64: str | None = None
    file_name: str | None = None


SHOWN = frozenset({"image_url", "image_base64", "file_url", "file_base64"})
Content = list[ContentElement] | str | None


class FunctionCall(Struct, frozen=True):
    """A call's function; `arguments` is JSON text."""

    name: str
    arguments: str


class ToolCall(Struct, frozen=True, kw_only=True):
    id: str
    type: str = "function"
    function: FunctionCall
    provider_specific_fields: dict[str, Any] | None = None


def tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """Return a call of a function with these arguments, as JSON text."""
    return ToolCall(id=call_id, function=FunctionCall(name, arguments))


class Message(Struct, frozen=True, kw_only=True):
    role: str
    name: str | None = None
    content: Content = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    resp_message_id: str | None = None
    provider_specific_fields: dict[str, Any] | None = None


class MessageChunk(Struct, frozen=True, kw_only=True):
    resp_message_id: str | None = None
    role: str
    name: str | None = None
    all_content: str | None = None
    content: Content = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None
    is_final: bool = False
    msg_sequence: int = 0
    provider_specific_fields: dict[str, Any] | None = None


class TokenUsage(Struct, frozen=True):
    """`LLMTokenUsage`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None


class LLMTool(Struct, frozen=True, kw_only=True):
    """A tool that a runner offers to a model; `parameters` is a JSON Schema."""

    name: str
    human_desc: str = ""
    description: str = ""
    parameters: dict[str, Any] = {}


class RetrievalEntry(Struct, frozen=True, kw_only=True):
    """`RetrievalResultEntry`: a chunk of a knowledge base; a smaller distance is nearer."""

    id: str
    content: list[ContentElement]
    metadata: dict[str, Any] = {}
    distance: float = 0.0
    score: float | None = None


def text_in(content: Content) -> str:
    """Return the text of a content, with its parts joined."""
    if isinstance(content, list):
        return "".join(part.text or "" for part in content if part.type == "text")
    return content or ""


def shown_in(content: Content) -> list[ContentElement]:
    """Return the images and files of a content."""
    return [part for part in content if part.type in SHOWN] if isinstance(content, list) else []
