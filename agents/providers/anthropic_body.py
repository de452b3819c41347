"""Requests as the `anthropic.messages` wire writes them: system apart, turns made of blocks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from agents.providers.base import ChatMessage, Effort, ImagePart, ModelRequest, ToolCall, ToolSpec
from agents.providers.decoding import object_of
from agents.providers.schemas import closed, is_open
from agents.providers.tool_names import Names
from agents.providers.turns import merged

WIRE: Final = "anthropic.messages"
_MAX_TOKENS: Final = 8192  # the wire requires a limit; every model since 3.5 takes this one
_LEAST_BUDGET: Final = 1024
_BUDGETS: Final[dict[Effort, int]] = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24576}
_NO_TOOL: Final = {"type": "none"}
_CACHED: Final = {"cache_control": {"type": "ephemeral"}}
_ANSWERS: Final = "Gives the answer to the user, in the form that is asked for. Call it last."
_UNFIT_ID: Final = re.compile(r"[^A-Za-z0-9_-]")

Body = dict[str, Any]


def forms(model: str, request: ModelRequest, names: Names) -> list[Body]:
    """With effort asked: as new models think (adaptive), then as older ones do (a budget).

    The newest models refuse to be told how to sample, and none may be told so while it thinks. Those
    that know no form of the answer are made to call a tool that takes it, and then cannot think. Nor can
    one that must call a tool now, whose call is no answer yet.
    """
    body = _body(model, request, names)
    schema = request.json_schema
    if request.must_call is not None:
        return [body | _sampling(request), body]
    if schema is None:
        return _asked(body, request)
    called = _calling(body, schema, names)
    forced = [called | _sampling(request), called]
    if is_open(schema):  # the wire's own form closes every object: this one would be empty
        return forced
    told = {"type": "json_schema", "schema": closed(schema)}
    return [*_asked(body | {"output_config": {"format": told}}, request), *forced]


def _asked(body: Body, request: ModelRequest) -> list[Body]:
    """Thinking, if it is asked for, and without."""
    unasked = [body | _sampling(request), body]
    effort, budget = request.reasoning, request.reasoning_budget
    if effort is None and budget is None:
        return unasked
    wanted = _BUDGETS[effort or "medium"] if budget is None else max(budget, _LEAST_BUDGET)
    room = body["max_tokens"] + (0 if request.max_tokens else wanted)
    level = "low" if effort == "minimal" else effort or "medium"
    config = body.get("output_config", {}) | {"effort": level}
    adaptive = body | {
        "max_tokens": room,
        "thinking": {"type": "adaptive", "display": "summarized"},
        "output_config": config,
    }
    most = min(wanted, room // 2)
    older = body | {"max_tokens": room, "thinking": {"type": "enabled", "budget_tokens": most}}
    budgeted = [older] if most >= _LEAST_BUDGET else []
    thinking = [adaptive, *budgeted] if budget is None else [*budgeted, adaptive]
    return [*thinking, *unasked]


def _calling(body: Body, schema: dict[str, Any], names: Names) -> Body:
    """The request whose answer is the input of a tool; the other tools may be called before it."""
    tool = {"name": names.answer, "description": _ANSWERS, "input_schema": schema | {"type": "object"}}
    chosen = body.get("tool_choice", {})
    offered = [] if chosen == _NO_TOOL else body.get("tools", [])
    return body | {"tools": [*offered, tool], "tool_choice": chosen | {"type": "any"}}


def _body(model: str, request: ModelRequest, names: Names) -> Body:
    said = [(_side(each), _blocks(each, names)) for each in request.messages if each.role != "system"]
    turns = merged(said, opening={"type": "text", "text": "…"})
    if turns[-1][1][-1]["type"] == "tool_result":  # a loop comes back at once: keep what is so far
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
    elif called := {call.name: None for said in request.messages for call in said.tool_calls}:
        # The wire refuses calls in a conversation that offers no tools: what was called may be named.
        body["tools"] = [_tool(ToolSpec(name, "Not offered now.", {}), names) for name in called]
        body["tool_choice"] = _NO_TOOL
    if request.stop:
        body["stop_sequences"] = [stop for stop in request.stop if stop.strip()]
    return body


def _choice(request: ModelRequest, names: Names) -> Body:
    """Which tool must be called, and whether several may be at once; {} where the model may choose."""
    apart = {"disable_parallel_tool_use": True} if request.one_by_one else {}
    match request.must_call:
        case None:
            return {"tool_choice": {"type": "auto"} | apart} if apart else {}
        case "":
            return {"tool_choice": {"type": "any"} | apart}
        case name:
            return {"tool_choice": {"type": "tool", "name": names.sent(name)} | apart}


def _sampling(request: ModelRequest) -> Body:
    """Temperature up to this wire's 1, or else top_p: newer models refuse both together."""
    if request.temperature is not None:
        return {"temperature": min(request.temperature, 1.0)}
    return {} if request.top_p is None else {"top_p": request.top_p}


def _system(messages: Iterable[ChatMessage]) -> list[Body]:
    """All system messages as blocks; tools and they are the same in every run, so they are cached."""
    blocks = [_text(said.content) for said in messages if said.role == "system" and said.content.strip()]
    return [*blocks[:-1], blocks[-1] | _CACHED] if blocks else []


def _side(said: ChatMessage) -> str:
    return "assistant" if said.role == "assistant" else "user"


def _blocks(said: ChatMessage, names: Names) -> list[Body]:
    words = [_text(said.content)] if said.content.strip() else []
    match said.role:
        case "tool":
            content = [*words, *map(_image, said.images)]
            answer = {"type": "tool_result", "tool_use_id": _id(said.tool_call_id)}
            return [answer | ({"content": content} if content else {})]
        case "assistant":
            thoughts = [kept.block for kept in said.reasoning if kept.wire == WIRE]
            return [*thoughts, *words, *(_call(call, names) for call in said.tool_calls)]
        case _:
            return [_block(block) for block in said.blocks if not _is_blank(block)]


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


def _call(call: ToolCall, names: Names) -> Body:
    told = {"id": _id(call.id), "name": names.sent(call.name), "input": object_of(call.arguments)}
    return {"type": "tool_use"} | told


def _id(given: str) -> str:
    """An id as this wire takes it; one that another wire gave may not be."""
    return _UNFIT_ID.sub("_", given) or "_"


def _tool(tool: ToolSpec, names: Names) -> Body:
    schema = {"type": "object"} | tool.parameters
    return {
        "name": names.sent(tool.name),
        "description": tool.description,
        "input_schema": schema,
    }
