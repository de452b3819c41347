"""Request bodies of the `openai.responses` wire: a list of items instead of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agents.providers.base import ChatMessage, ImagePart, ModelRequest, ToolCall, ToolSpec
from agents.providers.openai_chat_body import call_options, given, image_url, named_schema
from agents.providers.schemas import is_strict
from agents.providers.tool_names import ToolNames

WIRE: Final = "openai.responses"

Body = dict[str, Any]


def forms(model: str, request: ModelRequest, names: ToolNames) -> list[Body]:
    """Return the bodies for reasoning models first, and for models that only sample last."""
    body = _body(model, request, names)
    sampling = given(request, "temperature", "top_p")
    effort = {"effort": request.reasoning} if request.reasoning else {}
    summary = {"summary": request.reasoning_summary or "auto"}
    thinking = {"reasoning": summary | effort, "include": ["reasoning.encrypted_content"]}
    return [body | thinking | sampling, body | thinking, body | sampling]


def _body(model: str, request: ModelRequest, names: ToolNames) -> Body:
    body: Body = {
        "model": model,
        "stream": True,
        "store": False,
        "input": [item for message in request.messages for item in _items(message, names)],
    }
    if request.tools:
        body["tools"] = [_tool(tool, names) for tool in request.tools]
        body |= call_options(request, lambda name: {"name": names.to_provider(name)})
    if request.max_tokens is not None:
        body["max_output_tokens"] = request.max_tokens
    if text := _text(request):
        body["text"] = text
    return body


def _text(request: ModelRequest) -> Body:
    text: Body = {} if request.verbosity is None else {"verbosity": request.verbosity}
    if request.json_schema is not None:
        text["format"] = {"type": "json_schema"} | named_schema(request.json_schema)
    return text


def _items(message: ChatMessage, names: ToolNames) -> Iterator[Body]:
    match message.role:
        case "tool":
            output: object = _content(message) if message.images else message.content
            yield {"type": "function_call_output", "call_id": message.tool_call_id, "output": output}
        case "assistant":
            yield from _answer(message, names)
        case role:
            yield {"type": "message", "role": role, "content": _content(message)}


def _answer(message: ChatMessage, names: ToolNames) -> Iterator[Body]:
    """Yield the model's message, with each of its thoughts before the call that followed."""
    thoughts = [kept.block for kept in message.reasoning if kept.wire == WIRE]
    called = {call.id for call in message.tool_calls}
    yield from (thought["item"] for thought in thoughts if thought.get("before") not in called)
    if message.content:
        words = [{"type": "output_text", "text": message.content}]
        yield {"type": "message", "role": "assistant", "content": words}
    for call in message.tool_calls:
        yield from (thought["item"] for thought in thoughts if thought.get("before") == call.id)
        yield _call(call, names)


def _call(call: ToolCall, names: ToolNames) -> Body:
    return {
        "type": "function_call",
        "call_id": call.id,
        "name": names.to_provider(call.name),
        "arguments": call.arguments or "{}",
    }


def _content(message: ChatMessage) -> list[Body]:
    return [_block(block) for block in message.blocks or [""]]


def _block(block: str | ImagePart) -> Body:
    if isinstance(block, str):
        return {"type": "input_text", "text": block}
    return {"type": "input_image", "image_url": image_url(block), "detail": "auto"}


def _tool(tool: ToolSpec, names: ToolNames) -> Body:
    fields = {"name": names.to_provider(tool.name), "description": tool.description}
    strict = tool.strict and is_strict(tool.parameters)
    return {"type": "function"} | fields | {"parameters": tool.parameters, "strict": strict}
