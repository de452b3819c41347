"""Requests as the `gemini.generate_content` wire writes them: contents made of parts."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from agents.providers.base import ChatMessage, Effort, ImagePart, ModelRequest, ToolCall, ToolSpec
from agents.providers.decoding import object_of
from agents.providers.gemini_schema import gemini_schema
from agents.providers.schemas import in_words, is_open
from agents.providers.tool_calls import MADE
from agents.providers.tool_names import Names
from agents.providers.turns import merged

WIRE: Final = "gemini.generate_content"
_BUDGETS: Final[dict[Effort, int]] = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24576}
_MOST_STOPS: Final = 5
_ASKED: Final = {
    "temperature": "temperature",
    "top_p": "topP",
    "max_tokens": "maxOutputTokens",
    "seed": "seed",
    "frequency_penalty": "frequencyPenalty",
    "presence_penalty": "presencePenalty",
}

Body = dict[str, Any]


def forms(model: str, request: ModelRequest, names: Names) -> list[Body]:
    """With its thoughts shown, as models 3 (a level) and 2.5 (a budget) are asked; and without.

    The wire takes no form of the answer where a tool must be called, whose call is no answer yet.
    """
    if request.must_call is not None:
        request = replace(request, json_schema=None)
    shown: Body = {"includeThoughts": True}
    levels = _levels(request)
    body, config = _body(request, names), _config(request)
    thinking = [config | {"thinkingConfig": shown | level} for level in levels]
    asked = [body | ({"generationConfig": each} if each else {}) for each in (*thinking, config)]
    if request.json_schema is not None and request.tools:
        asked += _worded(body, config, request.json_schema)
    return asked


def _worded(body: Body, config: Body, schema: dict[str, Any]) -> list[Body]:
    """Older models take no form of the answer beside tools: they are told it in words."""
    plain = {name: value for name, value in config.items() if not name.startswith("response")}
    system = body.get("systemInstruction", {"parts": []})["parts"]
    told = body | {"systemInstruction": {"parts": [*system, {"text": in_words(schema)}]}}
    return [told | ({"generationConfig": plain} if plain else {})]


def _levels(request: ModelRequest) -> list[Body]:
    """How much to think; a budget that the request names comes before the level it comes to."""
    effort, budget = request.reasoning, request.reasoning_budget
    level: list[Body] = [{"thinkingLevel": effort.upper()}] if effort else []
    if budget is not None:
        return [{"thinkingBudget": budget}, *level]
    return [*level, {"thinkingBudget": _BUDGETS[effort]}] if effort else [{}]


def _body(request: ModelRequest, names: Names) -> Body:
    called = {call.id: call.name for said in request.messages for call in said.tool_calls}
    said = [
        (_side(each), _parts(each, names, called)) for each in request.messages if each.role != "system"
    ]
    turns = merged(said, opening={"text": "…"})
    body: Body = {"contents": [_content(*turn) for turn in turns]}
    system = [said.content for said in request.messages if said.role == "system" and said.content]
    if system:
        body["systemInstruction"] = {"parts": [{"text": text} for text in system]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool, names) for tool in request.tools]}]
        if request.must_call is not None:
            named = [names.sent(request.must_call)] if request.must_call else []
            only = {"allowedFunctionNames": named} if named else {}
            body["toolConfig"] = {"functionCallingConfig": {"mode": "ANY"} | only}
    return body


def _config(request: ModelRequest) -> Body:
    config: Body = {
        told: value for name, told in _ASKED.items() if (value := getattr(request, name)) is not None
    }
    if request.stop:
        config["stopSequences"] = list(request.stop[:_MOST_STOPS])
    if request.json_schema is not None:
        config["responseMimeType"] = "application/json"
        if not is_open(request.json_schema):  # an object of unknown members is no schema to this wire
            config["responseSchema"] = gemini_schema(request.json_schema)
    return config


def _content(side: str, parts: list[Body]) -> Body:
    """A turn; the answers to calls come first, whatever was shown with them."""
    return {"role": side, "parts": sorted(parts, key=lambda part: "functionResponse" not in part)}


def _side(said: ChatMessage) -> str:
    return "model" if said.role == "assistant" else "user"


def _parts(said: ChatMessage, names: Names, called: dict[str, str]) -> list[Body]:
    match said.role:
        case "tool":
            return [_result(said, names, called), *map(_image, said.images)]
        case "assistant":
            return _answer(said, names)
        case _:
            return [{"text": one} if isinstance(one, str) else _image(one) for one in said.blocks]


def _answer(said: ChatMessage, names: Names) -> list[Body]:
    """What the model said, each signature on the part that it came with."""
    signed = [kept.block for kept in said.reasoning if kept.wire == WIRE]
    of_calls = {block["call"]: _signature(block) for block in signed if "call" in block}
    of_text = next((_signature(block) for block in reversed(signed) if "call" not in block), {})
    words = [{"text": said.content} | of_text] if said.content or of_text else []
    return [*words, *(_call(call, names) | of_calls.get(call.id, {}) for call in said.tool_calls)]


def _signature(block: dict[str, Any]) -> Body:
    return {"thoughtSignature": block["thoughtSignature"]}


def _call(call: ToolCall, names: Names) -> Body:
    told = {"name": names.sent(call.name), "args": object_of(call.arguments)}
    return {"functionCall": told | _id(call.id)}


def _result(said: ChatMessage, names: Names, called: dict[str, str]) -> Body:
    """The answer to a call; the wire knows calls by name, and the answer as an object."""
    name = called.get(said.tool_call_id)
    found = object_of(said.content)
    response = {"result": said.content} if found == {"arguments": said.content} else found
    told = {"name": names.sent(name) if name else "unknown", "response": response}
    return {"functionResponse": told | _id(said.tool_call_id)}


def _id(given: str) -> Body:
    """The provider's own ids go back; it never saw those that we made."""
    return {} if not given or given.startswith(MADE) else {"id": given}


def _image(image: ImagePart) -> Body:
    if image.url and not image.data:
        return {"fileData": {"mimeType": image.mime_type, "fileUri": image.url}}
    return {"inlineData": {"mimeType": image.mime_type, "data": image.data}}


def _tool(tool: ToolSpec, names: Names) -> Body:
    told: Body = {"name": names.sent(tool.name), "description": tool.description}
    schema = gemini_schema(tool.parameters)
    return told | ({"parameters": schema} if schema.get("properties") else {})
