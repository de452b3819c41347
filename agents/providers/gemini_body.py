"""Request bodies of the `gemini.generate_content` wire: contents made of parts."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from agents.providers.base import ChatMessage, Effort, ImagePart, ModelRequest, ToolCall, ToolSpec
from agents.providers.decoding import parse_object
from agents.providers.gemini_schema import gemini_schema
from agents.providers.schemas import describe_schema, is_open
from agents.providers.tool_calls import MADE
from agents.providers.tool_names import ToolNames
from agents.providers.turns import make_turns

WIRE: Final = "gemini.generate_content"
_BUDGETS: Final[dict[Effort, int]] = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
_MOST_STOPS: Final = 5
_PARAMETERS: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}

Body = dict[str, Any]


def forms(model: str, request: ModelRequest, names: ToolNames) -> list[Body]:
    """Return the bodies with thoughts shown, for models 3 (a level) and 2.5 (a budget), and one without.

    The wire accepts no form of the answer if a tool must be called; its call is not the answer yet.
    """
    if request.must_call is not None:
        request = replace(request, json_schema=None)
    shown: Body = {"includeThoughts": True}
    levels = _levels(request)
    body, config = _body(request, names), _config(request)
    thinking = [config | {"thinkingConfig": shown | level} for level in levels]
    bodies = [body | ({"generationConfig": each} if each else {}) for each in (*thinking, config)]
    if request.json_schema is not None and request.tools:
        bodies += _worded(body, config, request.json_schema)
    return bodies


def _worded(body: Body, config: Body, schema: dict[str, Any]) -> list[Body]:
    """Return bodies with the form of the answer as a text: older models refuse it beside tools."""
    plain = {name: value for name, value in config.items() if not name.startswith("response")}
    system = body.get("systemInstruction", {"parts": []})["parts"]
    body_in_words = body | {"systemInstruction": {"parts": [*system, {"text": describe_schema(schema)}]}}
    return [body_in_words | ({"generationConfig": plain} if plain else {})]


def _levels(request: ModelRequest) -> list[Body]:
    """Return how much to think; a requested budget comes before the equivalent level."""
    effort, budget = request.reasoning, request.reasoning_budget
    level: list[Body] = [{"thinkingLevel": effort.upper()}] if effort else []
    if budget is not None:
        return [{"thinkingBudget": budget}, *level]
    return [*level, {"thinkingBudget": _BUDGETS[effort]}] if effort else [{}]


def _body(request: ModelRequest, names: ToolNames) -> Body:
    called = {call.id: call.name for message in request.messages for call in message.tool_calls}
    turns = make_turns(
        request.messages,
        lambda message: _parts(message, names, called),
        model="model",
        opening={"text": "…"},
    )
    body: Body = {"contents": [_content(*turn) for turn in turns]}
    system = [each.content for each in request.messages if each.role == "system" and each.content]
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool, names) for tool in request.tools]}]
        if request.must_call is not None:
            named = [names.to_provider(request.must_call)] if request.must_call else []
            only = {"allowedFunctionNames": named} if named else {}
            body["toolConfig"] = {"functionCallingConfig": {"mode": "ANY"} | only}
    return body


def _config(request: ModelRequest) -> Body:
    config: Body = {
        key: value for name, key in _PARAMETERS.items() if (value := getattr(request, name)) is not None
    }
    if request.stop:
        config["stopSequences"] = list(request.stop[:_MOST_STOPS])
    if request.json_schema is not None:
        config["responseMimeType"] = "application/json"
        if not is_open(request.json_schema):  # for this wire, an object of unknown members is no schema
            config["responseSchema"] = gemini_schema(request.json_schema)
    return config


def _content(side: str, parts: list[Body]) -> Body:
    """Return a turn with the answers to calls first, whatever else it shows."""
    return {"role": side, "parts": sorted(parts, key=lambda part: "functionResponse" not in part)}


def _parts(message: ChatMessage, names: ToolNames, called: dict[str, str]) -> list[Body]:
    match message.role:
        case "tool":
            return [_result(message, names, called), *map(_image, message.images)]
        case "assistant":
            return _answer(message, names)
        case _:
            return [{"text": one} if isinstance(one, str) else _image(one) for one in message.blocks]


def _answer(message: ChatMessage, names: ToolNames) -> list[Body]:
    """Return the model's message, each signature on the part that it came with."""
    signed = [kept.block for kept in message.reasoning if kept.wire == WIRE]
    of_calls = {block["call"]: _signature(block) for block in signed if "call" in block}
    of_text = next((_signature(block) for block in reversed(signed) if "call" not in block), {})
    words = [{"text": message.content} | of_text] if message.content or of_text else []
    return [*words, *(_call(call, names) | of_calls.get(call.id, {}) for call in message.tool_calls)]


def _signature(block: dict[str, Any]) -> Body:
    return {"thoughtSignature": block["thoughtSignature"]}


def _call(call: ToolCall, names: ToolNames) -> Body:
    fields = {"name": names.to_provider(call.name), "args": parse_object(call.arguments)}
    return {"functionCall": fields | _id(call.id)}


def _result(message: ChatMessage, names: ToolNames, called: dict[str, str]) -> Body:
    """Return the answer to a call; on the wire a call has a name, and its answer is an object."""
    name = called.get(message.tool_call_id)
    found = parse_object(message.content)
    response = {"result": message.content} if found == {"arguments": message.content} else found
    fields = {"name": names.to_provider(name) if name else "unknown", "response": response}
    return {"functionResponse": fields | _id(message.tool_call_id)}


def _id(call_id: str) -> Body:
    """Return the provider's own id; an id that we made is unknown to it."""
    return {} if not call_id or call_id.startswith(MADE) else {"id": call_id}


def _image(image: ImagePart) -> Body:
    if image.url and not image.data:
        return {"fileData": {"mimeType": image.mime_type, "fileUri": image.url}}
    return {"inlineData": {"mimeType": image.mime_type, "data": image.data}}


def _tool(tool: ToolSpec, names: ToolNames) -> Body:
    declaration: Body = {"name": names.to_provider(tool.name), "description": tool.description}
    schema = gemini_schema(tool.parameters)
    return declaration | ({"parameters": schema} if schema.get("properties") else {})
