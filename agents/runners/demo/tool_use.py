"""How the offline model uses the client's tools: it calls the one named, then tells the answer."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any, Final

import msgspec

from agents.requests import ClientTool, ToolUse
from agents.runners.base import CHINESE, RunContext
from conversations import events

_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_LONGEST: Final = 2_000
_APPROVE: Final = re.compile(r"\bapprove\b|批准", re.IGNORECASE)
NOTE: Final = "demo.note"


def wanted_call(context: RunContext) -> events.ToolCallStarted | None:
    """The call of the client's tool that the newest question names, or the client requires; None once it
    is answered, where it is not required."""
    choice, tools = context.request.tool_choice, context.request.tools
    if choice.name:
        tools = tuple(tool for tool in tools if tool.name == choice.name)
    elif _answers(context) and not choice.required:
        return None
    named = [tool for tool in tools if tool.name in context.question]
    if not named and not (choice.required and tools):
        return None
    tool = max(named, key=lambda tool: len(tool.name)) if named else tools[0]
    call_id = f"call_{context.run_id.hex}"
    return events.ToolCallStarted(call_id, tool.name, _arguments(tool, context.question), "frontend")


def wanted_note(context: RunContext) -> ToolUse | None:
    """The call of `demo.note` that the newest question wants approved; None once it is answered."""
    if _answers(context) or NOTE not in context.question or not _APPROVE.search(context.question):
        return None
    rest = " ".join(_APPROVE.sub(" ", context.question.replace(NOTE, " ")).split())
    return ToolUse(NOTE, {"text": rest[:_LONGEST]})


def answered(context: RunContext) -> str:
    """What the client's tools have answered since the question; "" if nothing."""
    told = "工具的结果：" if CHINESE.search(context.question) else "The tool answered:"
    lines = [f"{told} {answer[:_LONGEST]}" for answer in _answers(context)]
    return "\n".join(lines)


def _answers(context: RunContext) -> list[str]:
    given = [said.content for said in context.request.messages if said.role == "tool"]
    newest = takewhile(lambda said: said.role == "tool", reversed(context.conversation))
    return given or [said.content for said in newest]


def _arguments(tool: ClientTool, question: str) -> dict[str, Any]:
    """Arguments for the tool: the JSON object in the question, or something for each field."""
    if (given := _object(question[question.find("{") : question.rfind("}") + 1])) is not None:
        return given
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return {}
    rest = " ".join(question.replace(tool.name, " ").split())[:_LONGEST]
    found = _NUMBER.search(rest)
    number = found.group() if found else "0"
    return {
        name: _value(properties.get(name), rest, number=number)
        for name in required
        if isinstance(name, str)
    }


def _object(text: str) -> dict[str, Any] | None:
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _value(schema: object, question: str, *, number: str) -> Any:
    """Something of the schema's type, from the question where that can be."""
    told = schema if isinstance(schema, dict) else {}
    if isinstance(told.get("enum"), list) and told["enum"]:
        return next((item for item in told["enum"] if str(item) in question), told["enum"][0])
    match told.get("type"):
        case "integer":
            return int(float(number))
        case "number":
            return float(number)
        case "boolean":
            return True
        case "array":
            return []
        case "object":
            return {}
    return question
