"""How the offline model answers in a form that is asked for: an example of it, from the question."""

from __future__ import annotations

from typing import Any, Final

import msgspec

_DEEPEST: Final = 8
Schema = dict[str, Any]


def formed(schema: Schema, question: str) -> str:
    """JSON that fits the schema as far as a simple mind can see; the question is every text in it."""
    return msgspec.json.encode(_value(schema, schema, question, 0)).decode()


def _value(given: object, root: Schema, question: str, depth: int) -> Any:
    schema = _resolved(given, root)
    if "const" in schema:
        return schema["const"]
    if isinstance(options := schema.get("enum"), list) and options:
        return next((one for one in options if str(one) in question), options[0])
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(options := schema.get(word), list) and options and depth < _DEEPEST:
            return _value(options[0], root, question, depth + 1)
    match _kind(schema):
        case "object":
            return _members(schema, root, question, depth)
        case "array":
            count = _number(schema.get("minItems"), 1) if depth < _DEEPEST else 0
            return [_value(schema.get("items"), root, question, depth + 1) for _ in range(count)]
        case "integer" | "number":
            return _number(schema.get("minimum"), 1)
        case "boolean":
            return True
        case "null":
            return None
    return _text(schema, question)


def _members(schema: Schema, root: Schema, question: str, depth: int) -> Schema:
    told = schema.get("properties")
    members = told if isinstance(told, dict) else {}
    required = schema.get("required")
    names = required if isinstance(required, list) else []
    wanted = [*members] if depth == 0 else [name for name in names if isinstance(name, str)]
    return {name: _value(members.get(name), root, question, depth + 1) for name in wanted}


def _text(schema: Schema, question: str) -> str:
    least, most = _number(schema.get("minLength"), 0), _number(schema.get("maxLength"), len(question))
    return (question or "-").ljust(least, ".")[: max(most, 0)]


def _number(given: object, otherwise: int) -> int:
    """A small number: a schema may name any."""
    return min(int(given), 1_000) if isinstance(given, int | float) else otherwise


def _kind(schema: Schema) -> str:
    kind = schema.get("type")
    first = next((one for one in kind if one != "null"), "null") if isinstance(kind, list) else kind
    return str(first or ("object" if "properties" in schema else "string"))


def _resolved(given: object, root: Schema) -> Schema:
    """The schema, or what its reference points to in the whole."""
    schema = given if isinstance(given, dict) else {}
    for _ in range(_DEEPEST):
        if not isinstance(reference := schema.get("$ref"), str):
            break
        found: object = root
        for step in reference.removeprefix("#").split("/")[1:]:
            found = found.get(step) if isinstance(found, dict) else None
        schema = found if isinstance(found, dict) else {}
    return schema
