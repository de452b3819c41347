"""Request bodies of the `anthropic.messages` wire: system apart, turns made of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from agents.providers.base import ChatMessage, Effort, ImagePart, ModelRequest, ToolCall, ToolSpec
from agents.providers.decoding import parse_object
from agents.providers.schemas import close_objects, is_open
from agents.providers.tool_names import ToolNames
from agents.providers.turns import make_turns

WIRE: Final = "anthropic.messages"
_MAX_TOKENS: Final = 8192  # the wire requires a limit; every model since 3.5 accepts this one
_LEAST_BUDGET: Final = 1024
_BUDGETS: Final[dict[Effort, int]] = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24576}
_NO_TOOL: Final = {"type": "none"}
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}
_ANSWERS: Final = "Gives the answer to the user, in the form that is asked for. Call it last."
_UNFIT_ID: Final = re.compile(r"[^A-Za-z0-9_-]")

Body = dict[str, Any]


def forms(model: str, request: ModelRequest, names: ToolNames) -> list[Body]:
    """Return the bodies: with effort, first as new models think (adaptive), then as older ones (budget).

    The newest models refuse sampling parameters, and no model accepts them while it thinks. Models
    without structured output are made to call a tool whose input is the answer, and then cannot think.
    Nor can a model that must call a tool now; its call is not the answer yet.
    """
    body = _body(model, request, names)
    schema = request.json_schema
    if request.must_call is not None:
        return [body | _sampling(request), body]
    if schema is None:
        return _with_thinking(body, request)
    called = _calling(body, schema, names)
    forced = [called | _sampling(request), called]
    if is_open(schema):  # the wire's own form closes every object: this one would be empty
        return forced
    form = {"type": "json_schema", "schema": close_objects(schema)}
    return [*_with_thinking(body | {"output_config": {"format": form}}, request), *forced]


def _with_thinking(body: Body, request: ModelRequest) -> list[Body]:
    """Return the bodies with thinking, if the request wants it, and those without."""
    without = [body | _sampling(request), body]
    effort, budget = request.reasoning, request.reasoning_budget
    if effort is None and budget is None:
        return without
    tokens = _BUDGETS[effort or "medium"] if budget is None else max(budget, _LEAST_BUDGET)
    room = body["max_tokens"] + (0 if request.max_tokens else tokens)
    level = "low" if effort == "minimal" else effort or "medium"
    config = body.get("output_config", {}) | {"effort": level}
    adaptive = body | {
        "max_tokens": room,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": config,
    }
    most = min(tokens, room // 2)
    older = body | {"max_tokens": room, "thinking": {"type": "enabled", "budget_tokens": most}}
    budgeted = [older] if most >= _LEAST_BUDGET else []
    thinking = [adaptive, *budgeted] if budget is None else [*budgeted, adaptive]
    return [*thinking, *without]


def _calling(body: Body, schema: dict[str, Any], names: ToolNames) -> Body:
    """Return the request whose answer is the input of a tool; other tools may be called before it."""
    tool = {"name": names.answer, "description": _ANSWERS, "input_schema": schema | {"type": "object"}}
    chosen = body.get("tool_choice", {})
    offered = [] if chosen == _NO_TOOL else body.get("tools", [])
    return body | {"tools": [*offered, tool], "tool_choice": chosen | {"type": "any"}}


def _body(model: str, request: ModelRequest, names: ToolNames) -> Body:
    turns = make_turns(
        request.messages,
        lambda message: _blocks(message, names),
        model="assistant",
        opening=_text("…"),
    )
    if turns[-1][1][-1]["type"] == "tool_result":  # in a tool loop: the next step comes soon
        turns[-1][1][-1] |= _CACHED
    body: Body = {
        "model": model,
        "stream": True,
        "max_tokens": request.max_tokens or _MAX_TOKENS,
        "messages": [{"role": side, "content": blocks} for side, blocks in turns],
    }
    if system := _system(request.messages):
        body["system"] = system
    if request.tools:
        body["tools"] = [_tool(tool, names) for tool in request.tools]
        body |= _choice(request, names)
    elif called := {call.name: None for message in request.messages for call in message.tool_calls}:
        # The wire refuses calls in a conversation that offers no tools: name the tools that were called.
        body["tools"] = [_tool(ToolSpec(name, "Not offered now.", {}), names) for name in called]
        body["tool_choice"] = _NO_TOOL
    if request.stop:
        body["stop_sequences"] = [stop for stop in request.stop if stop.strip()]
    return body


def _choice(request: ModelRequest, names: ToolNames) -> Body:
    """Return the tool to call, and whether several may be called at once; {} if the model may choose."""
    apart = {"disable_parallel_tool_use": True} if request.one_by_one else {}
    match request.must_call:
        case None:
            return {"tool_choice": {"type": "auto"} | apart} if apart else {}
        case "":
            return {"tool_choice": {"type": "any"} | apart}
        case name:
            return {"tool_choice": {"type": "tool", "name": names.to_provider(name)} | apart}


def _sampling(request: ModelRequest) -> Body:
    """Return the temperature, up to this wire's 1, or else top_p: newer models refuse both together."""
    if request.temperature is not None:
        return {"temperature": min(request.temperature, 1.0)}
    return {} if request.top_p is None else {"top_p": request.top_p}


def _system(messages: Iterable[ChatMessage]) -> list[Body]:
    """Return all system messages as blocks; they and the tools are the same in every run, so cached."""
    blocks = [_text(each.content) for each in messages if each.role == "system" and each.content.strip()]
    return [*blocks[:-1], blocks[-1] | _CACHED] if blocks else []


def _blocks(message: ChatMessage, names: ToolNames) -> list[Body]:
    words = [_text(message.content)] if message.content.strip() else []
    match message.role:
        case "tool":
            content = [*words, *map(_image, message.images)]
            answer = {"type": "tool_result", "tool_use_id": _id(message.tool_call_id)}
            return [answer | ({"content": content} if content else {})]
        case "assistant":
            thoughts = [kept.block for kept in message.reasoning if kept.wire == WIRE]
            return [*thoughts, *words, *(_call(call, names) for call in message.tool_calls)]
        case _:
            return [_block(block) for block in message.blocks if not _is_blank(block)]


def _is_blank(block: str | ImagePart) -> bool:
    return isinstance(block, str) and not block.strip()


def _block(block: str | ImagePart) -> Body:
    return _text(block) if isinstance(block, str) else _image(block)


def _text(text: str) -> Body:
    return {"type": "text", "text": text}


def _image(image: ImagePart) -> Body:
    if image.url and not image.data:
        source = {"type": "url", "url": image.url}
    else:
        source = {"type": "base64", "media_type": image.mime_type, "data": image.data}
    return {"type": "image", "source": source}


def _call(call: ToolCall, names: ToolNames) -> Body:
    return {
        "type": "tool_use",
        "id": _id(call.id),
        "name": names.to_provider(call.name),
        "input": parse_object(call.arguments),
    }


def _id(call_id: str) -> str:
    """Return the id in a form that this wire accepts, which another wire's id may not have."""
    return _UNFIT_ID.sub("_", call_id) or "_"


def _tool(tool: ToolSpec, names: ToolNames) -> Body:
    return {
        "name": names.to_provider(tool.name),
        "description": tool.description,
        "input_schema": {"type": "object"} | tool.parameters,
    }
