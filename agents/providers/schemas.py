"""JSON Schemas for the wires that accept nearly all of the standard; Gemini's has its own module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

Schema = dict[str, Any]
_LISTS: Final = ("anyOf", "oneOf", "allOf", "prefixItems")
_MAPS: Final = ("properties", "$defs", "definitions")
_SINGLE: Final = ("items", "not", "additionalProperties")
_UNCHECKED: Final = {
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
}


def is_strict(schema: Schema) -> bool:
    """Return whether every object is closed and requires all members, as OpenAI's strict mode does."""
    return all(_is_strict_object(each) for each in _all(schema) if _is_object(each))


def describe_schema(schema: Schema) -> str:
    """Return the form of the answer as an instruction, for a model without structured output."""
    text = msgspec.json.encode(schema).decode()
    return f"Answer with one JSON value and nothing else. It must fit this JSON Schema:\n{text}"


def is_open(schema: Schema) -> bool:
    """Return whether the schema only requires an object, with any content."""
    return _is_object(schema) and not schema.get("properties") and "$ref" not in schema


def close_objects(schema: Schema) -> Schema:
    """Return the schema with every object closed, without the limits that Anthropic refuses to check."""
    made: Schema = {}
    for word, value in schema.items():
        if word in _LISTS and isinstance(value, list):
            made[word] = [close_objects(each) if isinstance(each, dict) else each for each in value]
        elif word in _MAPS and isinstance(value, dict):
            made[word] = {
                name: close_objects(each) if isinstance(each, dict) else each
                for name, each in value.items()
            }
        elif word in _SINGLE and isinstance(value, dict):
            made[word] = close_objects(value)
        elif word not in _UNCHECKED:
            made[word] = value
    return made | {"additionalProperties": False} if _is_object(made) else made


def _is_object(schema: Schema) -> bool:
    return schema.get("type") == "object" or "properties" in schema


def _is_strict_object(schema: Schema) -> bool:
    required, properties = schema.get("required"), schema.get("properties")
    return (
        schema.get("additionalProperties") is False
        and isinstance(required, list)
        and isinstance(properties, dict)
        and set(properties) == set(required)
    )


def _all(schema: Schema) -> Iterator[Schema]:
    """Yield the schema and every schema in it."""
    yield schema
    for word, value in schema.items():
        if word in _MAPS and isinstance(value, dict):
            inner = list(value.values())
        elif word in _LISTS and isinstance(value, list):
            inner = value
        else:
            inner = [value] if word in _SINGLE else []
        for each in inner:
            if isinstance(each, dict):
                yield from _all(each)
