"""The events and the error of every provider client, independent of its wire."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, Self

from msgspec import Struct
from msgspec.structs import replace

from agents.requests import AskedCall, Generation
from agents.requests import Effort as Effort
from conversations.blocks import Layout, arrange
from conversations.events import Usage

ToolCall = AskedCall
"""A call that the model makes, put together from its pieces."""
FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "refusal", "invalid_tool_call"]


class Opened(Struct, frozen=True):
    """The provider accepted the request and will stream."""

    endpoint_id: int
    provider: str
    model: str
    upstream_request_id: str | None = None


class TextDelta(Struct, frozen=True, gc=False):
    text: str


class ReasoningText(Struct, frozen=True, gc=False):
    text: str


class ReasoningBlock(Struct, frozen=True):
    """Reasoning in the provider's own form (signed or encrypted), to be sent back with the next step.

    Only the `source` (endpoint and model) that made it can read it; the Host sends it to no other.
    """

    wire: str
    block: dict[str, Any]
    source: str = ""


ENVELOPE: Final = frozenset(
    {
        "response.created",
        "response.queued",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "message_start",
        "content_block_start",
        "ping",
    }
)
"""The `upstream_event` of pieces that announce an answer and hold nothing of it."""


class RawChunk(Struct, frozen=True):
    """One unchanged piece of the provider's stream; only if `ModelRequest.raw` asks for it."""

    wire: str
    raw: str
    upstream_event: str | None = None


class Finished(Struct, frozen=True):
    """The regular end of the provider's stream.

    `finish_reason` is a `FinishReason` if the wire's own word has such a meaning; `upstream_reason` is
    that word if it differs. A word with no such meaning is the `finish_reason` itself.
    """

    finish_reason: FinishReason | str
    usage: Usage
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: tuple[ReasoningBlock, ...] = ()
    upstream_reason: str = ""


ModelEvent = Opened | TextDelta | ReasoningText | RawChunk | Finished


class ImagePart(Struct, frozen=True):
    """An image for a model that sees: base64 `data`, or else a `url` that the provider can fetch.

    A `stored` one (`{bucket}/{path}`) is still in our storage; the Host loads it for a model that sees.
    """

    mime_type: str
    data: str = ""
    url: str = ""
    stored: str = ""


class ChatMessage(Struct, frozen=True):
    """One message as a model sees it, independent of the provider's wire.

    A `tool` message answers the call `tool_call_id`; an `assistant` message may carry the calls it
    made and the reasoning that its provider wants back. `layout` gives the places of a `user` message's
    images between its texts (`conversations.blocks`).
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    images: tuple[ImagePart, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    reasoning: tuple[ReasoningBlock, ...] = ()
    layout: Layout = ()

    @property
    def blocks(self) -> list[str | ImagePart]:
        """The texts that are not empty and the images, in the order in which they were sent."""
        return [block for block in arrange(self.content, self.images, self.layout) if block]


class ToolSpec(Struct, frozen=True):
    """A tool as a model sees it; if `strict`, its calls must match `parameters`, its JSON Schema."""

    name: str
    description: str
    parameters: dict[str, Any]
    strict: bool = False


class ModelRequest(Generation, frozen=True, kw_only=True):
    """A request to a model; None leaves a parameter to the provider.

    Parameters that a wire does not have are left out (docs/guides/providers.md has a table of them),
    except those that `first_unsupported` returns: with these no request is sent. `must_call` is a tool
    that the model must call now, "" any of them. `on_usage` receives the provider's counts when the
    stream is over, however it ended.
    """

    messages: tuple[ChatMessage, ...]
    tools: tuple[ToolSpec, ...] = ()
    raw: bool = False
    must_call: str | None = None
    one_by_one: bool = False
    on_usage: Callable[[Usage], None] | None = None

    @property
    def relaxed(self) -> Self:
        """The request without options that not every server accepts and that callers ensure anyway."""
        if not self.one_by_one and not any(tool.strict for tool in self.tools):
            return self
        tools = tuple(replace(tool, strict=False) for tool in self.tools)
        return replace(self, tools=tools, one_by_one=False)


_SUPPORTED_BY: Final = {
    "verbosity": ("openai.chat_completions", "openai.responses"),
    "reasoning_summary": ("openai.responses",),
}


def first_unsupported(wire: str, generation: Generation) -> str | None:
    """Return the first wanted parameter that the wire does not have and that nothing else can do."""
    lacking = (name for name, wires in _SUPPORTED_BY.items() if wire not in wires)
    return next((name for name in lacking if getattr(generation, name) is not None), None)


class ProviderError(Exception):
    """The provider refused or broke off. The message is ours: no body, address or key in it."""

    def __init__(
        self, code: str, message: str, *, retryable: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retryable = retryable
        self.retry_after_s = retry_after_s
