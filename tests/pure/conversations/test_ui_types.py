"""The types of cards and hints say exactly what the published JSON Schemas say."""

from __future__ import annotations

from typing import Any

import msgspec

from conversations.cards.ui_hints import UiHints
from conversations.cards.ui_nodes import UiSchemaRenderer
from tests.support.properties import json_schemas

Schema = dict[str, Any]
_SIZES = ("minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum")
_LIMITS = (*_SIZES, "pattern", "enum", "type")


def test_hints_have_the_published_fields_and_limits() -> None:
    """But for `minProperties`: no hint at all is one of the ways to show nothing."""
    ours = msgspec.json.schema(UiHints)
    assert flat(ours) == flat(json_schemas.load("ui_hints_1"))


def test_a_card_has_the_published_fields_and_limits() -> None:
    ours = msgspec.json.schema(UiSchemaRenderer)
    assert flat(ours) == flat(json_schemas.load("ui_schema_renderer_2_0"))


def test_what_we_leave_out_as_default_is_the_published_default() -> None:
    ours = defaults(msgspec.json.schema(UiSchemaRenderer))
    published = defaults(json_schemas.load("ui_schema_renderer_2_0"))
    assert len(ours) > 10
    assert ours.items() <= published.items()
    assert published.keys() - ours.keys() == {"text.role", "badge.status"}


def flat(schema: Schema) -> dict[str, Any]:
    """The whole of a schema by name: its root, and every object that says its `type`, by that tag."""
    defs = schema.get("$defs", {})
    root = _resolved(schema, defs) if "$ref" in schema else schema
    return {"": _plain(root, defs)} | {tag: _object(part, defs) for tag, part in _tagged(schema)}


def defaults(schema: Schema) -> dict[str, Any]:
    """`tag.field` → the default of every field of the tagged objects."""
    return {
        f"{tag}.{name}": field["default"]
        for tag, part in _tagged(schema)
        for name, field in part["properties"].items()
        if "default" in field
    }


def _tagged(schema: Schema) -> list[tuple[str, Schema]]:
    defs = schema.get("$defs", {})
    parts = [choice for part in defs.values() for choice in part.get("oneOf", [part])]
    return [(tag, part) for part in parts if (tag := _tag(part))]


def _tag(part: Schema) -> str | None:
    said = part.get("properties", {}).get("type", {})
    found: str | None = said.get("const") or next(iter(said.get("enum", ())), None)
    return found


def _plain(schema: Schema, defs: Schema) -> Any:
    """One form for two ways to write a schema: no references, a tagged object is its tag."""
    schema = _resolved(schema, defs)
    if tag := _tag(schema):
        return tag
    if choices := schema.get("oneOf") or schema.get("anyOf"):
        return sorted(_plain(choice, defs) for choice in choices)
    if "properties" in schema:
        return _object(schema, defs)
    kept = {name: schema[name] for name in _LIMITS if name in schema}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if "enum" in kept:
        return sorted(kept["enum"])
    return kept | ({"items": _plain(schema["items"], defs)} if "items" in schema else {})


def _object(schema: Schema, defs: Schema) -> Schema:
    assert schema["additionalProperties"] is False
    fields = {name: _plain(part, defs) for name, part in schema["properties"].items()}
    return {"fields": fields, "required": sorted(schema.get("required", ()))}


def _resolved(schema: Schema, defs: Schema) -> Schema:
    while "$ref" in schema:
        schema = defs[schema["$ref"].removeprefix("#/$defs/")]
    return schema
