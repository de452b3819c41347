"""The offline model's use of tools: it calls the one that the question names, and repeats its answer."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import Any, Final

import msgspec

from agents.requests import ClientTool, ToolUse
from agents.runners.base import CHINESE, RunContext
from agents.tools.registry import RESERVED
from conversations import events

_NUMBER: Final = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_LONGEST: Final = 2_000
_CALL: Final = re.compile(r"([A-Za-z]\w*(?:\.\w+)+)\s*(\{.*\})?", re.DOTALL)
_APPROVE: Final = re.compile(r"\bapprove\b|批准", re.IGNORECASE)
NOTE: Final = "demo.note"


def requested_call(context: RunContext) -> events.ToolCallStarted | None:
    """Return the call of the client's tool that the newest question names, or that the client requires.

    None once it is answered, unless it is required.
    """
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


def requested_note(context: RunContext) -> ToolUse | None:
    """Return the call of `demo.note` that the newest question wants approved; None once answered."""
    if _answers(context) or NOTE not in context.question or not _APPROVE.search(context.question):
        return None
    rest = " ".join(_APPROVE.sub(" ", context.question.replace(NOTE, " ")).split())
    return ToolUse(NOTE, {"text": rest[:_LONGEST]})


def written_call(context: RunContext) -> ToolUse | None:
    """Return the call of a tool of ours that the newest question consists of: `name` or `name {…}`."""
    found = _CALL.fullmatch(context.question.strip())
    if found is None or found[1].startswith(RESERVED) or _answers(context):
        return None
    request, arguments = context.request, _object(found[2] or "{}")
    offered = request.server_tools is None or found[1] in request.server_tools
    if arguments is None or not offered or request.tool_choice.most_calls == 0:
        return None
    return ToolUse(found[1], arguments)


def answers_text(context: RunContext) -> str:
    """Return the answers of the client's tools since the question; "" if there are none."""
    return "\n".join(tell(context, answer) for answer in _answers(context))


def tell(context: RunContext, answer: str) -> str:
    """Return a sentence with the answer of a tool, in the language of the question."""
    heading = "工具的结果：" if CHINESE.search(context.question) else "The tool answered:"
    return f"{heading} {answer[:_LONGEST]}"


def _answers(context: RunContext) -> list[str]:
    answers = [message.content for message in context.request.messages if message.role == "tool"]
    newest = takewhile(lambda message: message.role == "tool", reversed(context.conversation))
    return answers or [message.content for message in newest]


def _arguments(tool: ClientTool, question: str) -> dict[str, Any]:
    """Return arguments for the tool: the JSON object in the question, or a value per required field."""
    if (literal := _object(question[question.find("{") : question.rfind("}") + 1])) is not None:
        return literal
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
    """Return a value of the schema's type, from the question if possible."""
    fields = schema if isinstance(schema, dict) else {}
    if isinstance(fields.get("enum"), list) and fields["enum"]:
        return next((item for item in fields["enum"] if str(item) in question), fields["enum"][0])
    match fields.get("type"):
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
