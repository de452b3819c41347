"""The offline model's answers in a requested form: an example of it, made from the question.

A schema may need more than there is room for, or refer to itself for ever. So an answer grows one step
at a time (a value, a name, a look at an option), and stays incomplete when its steps or its characters
are used up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

_STEPS: Final = 20_000
_CHARACTERS: Final = 256 * 1024
_DEEPEST: Final = 32
_LARGEST_NUMBER: Final = 1_000
_LOOKED_AT: Final = 1_000  # characters of the question that are searched for an option
Schema = dict[str, Any]


def fill_schema(schema: Schema, question: str) -> str:
    """Return JSON that fits the schema as far as a simple model can tell; each text is the question."""
    return msgspec.json.encode(_Example(schema, question).value(schema)).decode()


class _Example:
    """An answer while it grows."""

    def __init__(self, root: Schema, question: str) -> None:
        self._root = root
        self._question = question
        self._steps, self._characters = _STEPS, _CHARACTERS

    def value(self, given: object, depth: int = 0) -> Any:
        """Return an example of a schema; None if there is no room for one."""
        if depth > _DEEPEST or not self._spend():
            return None
        schema = self._resolved(given)
        if "const" in schema:
            return self._whole(schema["const"])
        if isinstance(options := schema.get("enum"), list) and options:
            return self._whole(self._chosen(options))
        for word in ("anyOf", "oneOf", "allOf"):
            if isinstance(options := schema.get(word), list) and options:
                return self.value(options[0], depth + 1)
        return self._of_kind(schema, depth)

    def _spend(self, characters: int = 0) -> bool:
        """Take a step that writes or reads so much; return False if the answer must not grow further."""
        self._steps -= 1
        self._characters -= characters
        return self._steps >= 0 and self._characters >= 0

    def _of_kind(self, schema: Schema, depth: int) -> Any:
        match _kind(schema):
            case "object":
                return self._members(schema, depth)
            case "array":
                return self._items(schema, depth)
            case "integer" | "number":
                return _number(schema.get("minimum"), 1)
            case "boolean":
                return True
            case "null":
                return None
        return self._text(schema)

    def _members(self, schema: Schema, depth: int) -> Schema:
        """Return every member at the top level, below it only those that are required."""
        properties, required = schema.get("properties"), schema.get("required")
        members = properties if isinstance(properties, dict) else {}
        names: Iterable[object] = required if isinstance(required, list) else ()
        found: Schema = {}
        for name in names if depth else members:
            if not (isinstance(name, str) and self._spend(len(name))):
                break
            found[name] = self.value(members.get(name), depth + 1)
        return found

    def _items(self, schema: Schema, depth: int) -> list[Any]:
        count = _number(schema.get("minItems"), 1)
        found: list[Any] = []
        while len(found) < count and self._spend():
            found.append(self.value(schema.get("items"), depth + 1))
        return found

    def _text(self, schema: Schema) -> str:
        least, most = _number(schema.get("minLength"), 0), schema.get("maxLength")
        room = max(0, self._characters if most is None else min(_number(most, 0), self._characters))
        text = (self._question[:room] or "-").ljust(least, ".")[:room]
        self._spend(len(text))
        return text

    def _whole(self, value: Any) -> Any:
        """Return the schema's own value, if there is room for it."""
        return value if self._spend(len(msgspec.json.encode(value))) else None

    def _chosen(self, options: list[Any]) -> Any:
        """Return the option that the question names, else the first."""
        looked_at = self._question[:_LOOKED_AT]
        for option in options:
            if not self._spend():
                break
            if isinstance(option, str) and option in looked_at:
                return option
        return options[0]

    def _resolved(self, node: object) -> Schema:
        """Return the schema with its references resolved in the whole."""
        schema = node if isinstance(node, dict) else {}
        for _ in range(_DEEPEST):
            reference = schema.get("$ref")
            if not (isinstance(reference, str) and self._spend(len(reference))):
                break
            found: object = self._root
            for step in reference.removeprefix("#").split("/")[1:]:
                found = found.get(step) if isinstance(found, dict) else None
            schema = found if isinstance(found, dict) else {}
        return schema


def _number(value: object, otherwise: int) -> int:
    """Return a number within small limits: a schema may name any."""
    if not isinstance(value, int | float):
        return otherwise
    return int(max(-_LARGEST_NUMBER, min(value, _LARGEST_NUMBER)))


def _kind(schema: Schema) -> str:
    kind = schema.get("type")
    first = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind
    return str(first or ("object" if "properties" in schema else "string"))
