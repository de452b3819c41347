"""Request bodies of the `openai.chat_completions` wire."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from agents.providers.base import ChatMessage, ImagePart, ModelRequest, ToolCall, ToolSpec
from agents.providers.schemas import describe_schema, is_strict
from agents.providers.tool_names import ToolNames

WIRE: Final = "openai.chat_completions"
_SAMPLING: Final = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_SHOWN: Final = "What the tool showed:"

Body = dict[str, Any]


def forms(model: str, request: ModelRequest, names: ToolNames) -> list[Body]:
    """Return the bodies for most servers, and for OpenAI's reasoning models, which refuse the former.

    A server without schemas for answers gets a request for JSON, with the schema as a text.
    """
    body = _body(model, request, names)
    if request.json_schema is None:
        return _sampled(body, request)
    form = {"type": "json_schema", "json_schema": named_schema(request.json_schema)}
    with_schema, with_text = body | {"response_format": form}, _worded(body, request.json_schema)
    return [*_sampled(with_schema, request), *_sampled(with_text, request)]


def _sampled(body: Body, request: ModelRequest) -> list[Body]:
    most = request.max_tokens
    plain = body | given(request, *_SAMPLING) | ({"max_tokens": most} if most else {})
    effort = {"reasoning_effort": request.reasoning} if request.reasoning else {}
    thinking = body | effort | ({"max_completion_tokens": most} if most else {})
    return [thinking, plain] if effort else [plain, thinking]


def given(request: ModelRequest, *names: str) -> Body:
    """Return those of the parameters that the request sets; both of OpenAI's wires name them alike."""
    return {name: value for name in names if (value := getattr(request, name)) is not None}


def _worded(body: Body, schema: dict[str, Any]) -> Body:
    words = {"role": "system", "content": describe_schema(schema)}
    return body | {"messages": [words, *body["messages"]], "response_format": {"type": "json_object"}}


def _body(model: str, request: ModelRequest, names: ToolNames) -> Body:
    body: Body = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": list(_messages(request.messages, names)),
    }
    if request.tools:
        body["tools"] = [_tool(tool, names) for tool in request.tools]
        body |= call_options(request, lambda name: {"function": {"name": names.to_provider(name)}})
    body |= given(request, "verbosity", "seed")
    if request.stop:
        body["stop"] = list(request.stop)
    return body


def call_options(request: ModelRequest, name_function: Callable[[str], Body]) -> Body:
    """Return the options of calls; OpenAI's two wires differ only in how a function is named."""
    body: Body = {}
    if request.must_call is not None:
        one = request.must_call and {"type": "function"} | name_function(request.must_call)
        body["tool_choice"] = one or "required"
    if request.one_by_one:
        body["parallel_tool_calls"] = False
    return body


def named_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema for both of OpenAI's wires; `strict` only if it fits the strict subset."""
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


def _messages(messages: Iterable[ChatMessage], names: ToolNames) -> Iterator[Body]:
    """Yield the messages, with a tool's images after all tool messages, which hold only text."""
    shown: tuple[ImagePart, ...] = ()
    for message in messages:
        if message.role == "tool":
            shown += message.images
        elif shown:
            yield {"role": "user", "content": _content([_SHOWN, *shown])}
            shown = ()
        yield _message(message, names)
    if shown:
        yield {"role": "user", "content": _content([_SHOWN, *shown])}


def _message(message: ChatMessage, names: ToolNames) -> Body:
    sent: Body = {"role": message.role, "content": message.content}
    if message.role == "tool":
        return sent | {"tool_call_id": message.tool_call_id}
    if message.images:
        sent["content"] = _content(message.blocks)
    if message.tool_calls:
        sent["content"] = message.content or None
        sent["tool_calls"] = [_tool_call(call, names) for call in message.tool_calls]
        for kept in message.reasoning:
            sent |= kept.block if kept.wire == WIRE else {}
    return sent


def _content(blocks: Iterable[str | ImagePart]) -> list[Body]:
    return [_block(block) for block in blocks]


def _block(block: str | ImagePart) -> Body:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return {"type": "image_url", "image_url": {"url": image_url(block)}}


def image_url(image: ImagePart) -> str:
    """Return an image's own URL, or a data URL that holds it."""
    return image.url or f"data:{image.mime_type};base64,{image.data}"


def _tool_call(call: ToolCall, names: ToolNames) -> Body:
    function = {"name": names.to_provider(call.name), "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSpec, names: ToolNames) -> Body:
    fields = {"name": names.to_provider(tool.name), "description": tool.description}
    strict = {"strict": True} if tool.strict and is_strict(tool.parameters) else {}
    return {"type": "function", "function": fields | {"parameters": tool.parameters} | strict}
