"""JSON Schema cut down to the part of OpenAPI 3.0 that Gemini accepts (its reference, "Schema").

The model sees less than the whole schema; arguments are checked against the whole schema later.
"""

from __future__ import annotations

from typing import Any, Final

from conversations.thread_state import split_pointer

Schema = dict[str, Any]

_DEEPEST: Final = 12
_MOST: Final = 4096
_TYPES: Final = frozenset(("string", "number", "integer", "boolean", "array", "object"))
_KEPT: Final[tuple[str, ...]] = (
    "title",
    "description",
    "default",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "pattern",
    "minProperties",
    "maxProperties",
)
_FORMATS: Final = frozenset(("date-time", "enum", "float", "double", "int32", "int64"))


def gemini_schema(schema: Schema) -> Schema:
    """Return the schema without references, unions of types, closed objects and all else it refuses."""
    return _Cutting(schema).cut(schema, 0)


class _Cutting:
    """The cutting of one schema; references are looked up in the whole.

    Schemas come from clients too, so depth and width that result from references are limited, and a
    reference inside itself is any object.
    """

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._left = _MOST
        self._followed: list[str] = []

    def cut(self, node: object, depth: int) -> Schema:
        self._left -= 1
        if not isinstance(node, dict) or depth > _DEEPEST or self._left < 0:
            return {"type": "string"}
        before = len(self._followed)
        schema = _joined([self._resolved(node), *self._list(node, "allOf")])
        made = self._cut(schema, depth)
        del self._followed[before:]
        return made

    def _cut(self, schema: Schema, depth: int) -> Schema:
        made = {word: schema[word] for word in _KEPT if word in schema}
        options = self._options(schema)
        nullable = any(_is_null(option) for option in options)
        options = [option for option in options if not _is_null(option)]
        if len(options) > 1:
            made["anyOf"] = [self.cut(option, depth + 1) for option in options]
        elif options:
            made = self.cut(options[0], depth + 1) | made
        else:
            made |= self._typed(schema, depth)
        return made | {"nullable": True} if nullable else made

    def _resolved(self, schema: Schema) -> Schema:
        """Return the schema with its references resolved, a few steps far."""
        for _ in range(_DEEPEST):
            if not isinstance(reference := schema.get("$ref"), str):
                break
            found = {"type": "object"} if reference in self._followed else self._found(reference)
            self._followed.append(reference)
            schema = found | {word: value for word, value in schema.items() if word != "$ref"}
        return schema

    def _found(self, reference: str) -> Schema:
        found: object = self._root
        for name in split_pointer(reference.removeprefix("#")):
            found = found.get(name) if isinstance(found, dict) else None
        return found if isinstance(found, dict) else {}

    def _list(self, schema: Schema, word: str) -> list[Schema]:
        found = schema.get(word)
        members = found if isinstance(found, list) else []
        return [self._resolved(each) for each in members if isinstance(each, dict)]

    def _options(self, schema: Schema) -> list[Schema]:
        """Return the alternatives of the schema, from its anyOf, oneOf or list of types."""
        for word in ("anyOf", "oneOf"):
            if options := self._list(schema, word):
                return options
        types = schema.get("type")
        return [schema | {"type": each} for each in types] if isinstance(types, list) else []

    def _typed(self, schema: Schema, depth: int) -> Schema:
        kind = _kind(schema)
        made: Schema = {"type": kind}
        if schema.get("format") in _FORMATS:
            made["format"] = schema["format"]
        match kind:
            case "string":
                return made | _enum(schema)
            case "array":
                items = schema.get("items") or schema.get("prefixItems", [{}])
                first = (items or [{}])[0] if isinstance(items, list) else items
                return made | {"items": self.cut(first, depth + 1)}
            case "object":
                return made | self._members(schema, depth)
            case _:
                return made | _described_values(schema)

    def _members(self, schema: Schema, depth: int) -> Schema:
        properties = schema.get("properties")
        members = properties if isinstance(properties, dict) else {}
        made: Schema = {}
        if members:
            made["properties"] = {name: self.cut(each, depth + 1) for name, each in members.items()}
        required = schema.get("required")
        if isinstance(required, list) and (kept := [name for name in required if name in members]):
            made["required"] = kept
        return made


def _joined(schemas: list[Schema]) -> Schema:
    """Return one schema for all: their members together, of other words the first schema's."""
    whole: Schema = {}
    for schema in schemas:
        whole = schema | whole | _joined_members(whole, schema)
    return whole


def _joined_members(one: Schema, other: Schema) -> Schema:
    made: Schema = {}
    if one.get("properties") and other.get("properties"):
        made["properties"] = other["properties"] | one["properties"]
    if one.get("required") and other.get("required"):
        made["required"] = [*one["required"], *other["required"]]
    return made


def _is_null(schema: Schema) -> bool:
    return schema.get("type") == "null"


def _kind(schema: Schema) -> str:
    """Return the type, or the type that other words of the schema suggest."""
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _TYPES:
        return kind
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else "string"


def _values(schema: Schema) -> list[Any]:
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    return values if isinstance(values, list) else []


def _enum(schema: Schema) -> Schema:
    values = [value for value in _values(schema) if isinstance(value, str) and value]
    return {"enum": values, "format": "enum"} if values else {}


def _described_values(schema: Schema) -> Schema:
    """Return the values as a description: only strings may be enumerated."""
    values = _values(schema)
    if not values:
        return {}
    words = f"One of: {', '.join(map(str, values))}."
    return {"description": f"{schema.get('description', '')} {words}".strip()}
