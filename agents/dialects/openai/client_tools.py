"""A client's own tools that OpenAI's wire knows by more than a name: of a namespace, or custom.

Inside, a client's tool is a function with one name. One of a namespace is `{namespace}__{name}` there,
and a custom tool, whose input is a text, is a function with an `input`. `Named` says what each is on the
wire; what is already known by its name has none.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

Wire = dict[str, Any]
NAMESPACE: Final = "namespace"
INPUT: Final[Wire] = {
    "type": "object",
    "properties": {"input": {"type": "string"}},
    "required": ["input"],
    "additionalProperties": False,
}
_encode: Final = msgspec.json.Encoder().encode


class Named(Struct, frozen=True, omit_defaults=True):
    """What a tool is called on the wire, and whether its input is a text."""

    name: str
    namespace: str = ""
    is_custom: bool = False

    @property
    def inside(self) -> str:
        """The name of the function that stands for it."""
        return f"{self.namespace}__{self.name}" if self.namespace else self.name


def named(wire: Wire, name: str) -> Named:
    """What a function is on the wire of a request, by `RunRequest.wire`."""
    return msgspec.convert(wire.get("named", {}).get(name, {"name": name}), Named)


def name_inside(item: Wire) -> str:
    """The function that an item or a choice means, which says a name and maybe a namespace."""
    space = item.get(NAMESPACE)
    return Named(item["name"], space if isinstance(space, str) else "").inside


def text_as_arguments(text: str) -> str:
    """The input of a custom tool as a function's arguments."""
    return _encode({"input": text}).decode()


def arguments_as_text(arguments: str) -> str:
    """The reverse; arguments of any other form are the text themselves."""
    try:
        return msgspec.json.decode(arguments, type=_Input).input
    except msgspec.MsgspecError:
        return arguments


class _Input(Struct):
    input: str
