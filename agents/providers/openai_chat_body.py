"""Requests as the `openai.chat_completions` wire writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from agents.providers.base import ChatMessage, ImagePart, ModelRequest, ToolCall, ToolSpec
from agents.providers.schemas import in_words, is_strict
from agents.providers.tool_names import Names

WIRE: Final = "openai.chat_completions"
_SAMPLING: Final = ("temperature", "top_p", "frequency_penalty", "presence_penalty")
_SHOWN: Final = "What the tool showed:"

Body = dict[str, Any]


def forms(model: str, request: ModelRequest, names: Names) -> list[Body]:
    """As most servers know it, and as OpenAI's models want it that reason, which refuse the former.

    A server that cannot hold an answer to a schema is asked for JSON, and told the schema in words.
    """
    body = _body(model, request, names)
    if request.json_schema is None:
        return _sampled(body, request)
    form = {"type": "json_schema", "json_schema": named(request.json_schema)}
    held, told = body | {"response_format": form}, _worded(body, request.json_schema)
    return [*_sampled(held, request), *_sampled(told, request)]


def _sampled(body: Body, request: ModelRequest) -> list[Body]:
    most = request.max_tokens
    sampling = {name: value for name in _SAMPLING if (value := getattr(request, name)) is not None}
    plain = body | sampling | ({"max_tokens": most} if most else {})
    effort = {"reasoning_effort": request.reasoning} if request.reasoning else {}
    thinking = body | effort | ({"max_completion_tokens": most} if most else {})
    return [thinking, plain] if effort else [plain, thinking]


def _worded(body: Body, schema: dict[str, Any]) -> Body:
    words = {"role": "system", "content": in_words(schema)}
    return body | {"messages": [words, *body["messages"]], "response_format": {"type": "json_object"}}


def _body(model: str, request: ModelRequest, names: Names) -> Body:
    body: Body = {
        "model": model,
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": list(_messages(request.messages, names)),
    }
    if request.tools:
        body["tools"] = [_tool(tool, names) for tool in request.tools]
        body |= calling(request, lambda name: {"function": {"name": names.sent(name)}})
    if request.verbosity is not None:
        body["verbosity"] = request.verbosity
    if request.seed is not None:
        body["seed"] = request.seed
    if request.stop:
        body["stop"] = list(request.stop)
    return body


def calling(request: ModelRequest, named: Callable[[str], Body]) -> Body:
    """How the tools must be called: OpenAI's wires say it alike, but for how a function is named."""
    body: Body = {}
    if request.must_call is not None:
        one = request.must_call and {"type": "function"} | named(request.must_call)
        body["tool_choice"] = one or "required"
    if request.one_by_one:
        body["parallel_tool_calls"] = False
    return body


def named(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema as both of OpenAI's wires take it; `strict` only where it fits the strict subset."""
    return {"name": "answer", "schema": schema, "strict": is_strict(schema)}


def _messages(messages: Iterable[ChatMessage], names: Names) -> Iterator[Body]:
    """The messages; what tools showed follows all of them, for theirs hold only text."""
    shown: tuple[ImagePart, ...] = ()
    for said in messages:
        if said.role == "tool":
            shown += said.images
        elif shown:
            yield {"role": "user", "content": _content([_SHOWN, *shown])}
            shown = ()
        yield _message(said, names)
    if shown:
        yield {"role": "user", "content": _content([_SHOWN, *shown])}


def _message(said: ChatMessage, names: Names) -> Body:
    message: Body = {"role": said.role, "content": said.content}
    if said.role == "tool":
        return message | {"tool_call_id": said.tool_call_id}
    if said.images:
        message["content"] = _content(said.blocks)
    if said.tool_calls:
        message["content"] = said.content or None
        message["tool_calls"] = [_tool_call(call, names) for call in said.tool_calls]
        for kept in said.reasoning:
            message |= kept.block if kept.wire == WIRE else {}
    return message


def _content(blocks: Iterable[str | ImagePart]) -> list[Body]:
    return [_block(block) for block in blocks]


def _block(block: str | ImagePart) -> Body:
    if isinstance(block, str):
        return {"type": "text", "text": block}
    return {"type": "image_url", "image_url": {"url": url_of(block)}}


def url_of(image: ImagePart) -> str:
    """An image as a URL, its own or one that holds it."""
    return image.url or f"data:{image.mime_type};base64,{image.data}"


def _tool_call(call: ToolCall, names: Names) -> Body:
    function = {"name": names.sent(call.name), "arguments": call.arguments or "{}"}
    return {"id": call.id, "type": "function", "function": function}


def _tool(tool: ToolSpec, names: Names) -> Body:
    told = {"name": names.sent(tool.name), "description": tool.description}
    strict = {"strict": True} if tool.strict and is_strict(tool.parameters) else {}
    return {"type": "function", "function": told | {"parameters": tool.parameters} | strict}
