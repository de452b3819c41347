"""A client's own tools for which OpenAI's wire has more than a name: of a namespace, or custom.

Inside, a client's tool is a function with one name. One of a namespace is `{namespace}__{name}` there,
and a custom tool, whose input is a text, is a function with an `input`. `ToolName` holds the form of
each on the wire; a tool with its own name as a function has none.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct

from agents.dialects.wire import Wire, json_text, optional_text

INPUT: Final[Wire] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}


class ToolName(Struct, frozen=True, omit_defaults=True):
    """The name of a tool on the wire, and whether its input is a text."""

    name: str
    namespace: str = ""
    is_custom: bool = False

    @property
    def function_name(self) -> str:
        """The name of the function that represents the tool."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


def tool_name(wire: Wire, name: str) -> ToolName:
    """Return the form of a function on the wire of a request, from `RunRequest.wire`."""
    return msgspec.convert(wire.get("named", {}).get(name, {"name": name}), ToolName)


def function_name_of(item: Wire) -> str:
    """Return the function of an item or a choice, which has a name and maybe a namespace."""
    return ToolName(item["name"], optional_text(item, "namespace")).function_name


def text_as_arguments(text: str) -> str:
    """Return the input of a custom tool as a function's arguments."""
    return json_text({"input": text})


def arguments_as_text(arguments: str) -> str:
    """Return the reverse; arguments of any other form are the text themselves."""
    try:
        return msgspec.json.decode(arguments, type=_Input).input
    except msgspec.MsgspecError:
        return arguments


class _Input(Struct):
    input: str
