"""Builders of schemas; those of operations are in `operations`."""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
TIME: Final[Schema] = {"type": "string", "format": "date-time"}
FLAG: Final[Schema] = {"type": "boolean"}


def ref(name: str) -> Schema:
    """Return a reference to the component schema of this name."""
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Schema) -> Schema:
    """Return the schema extended by null."""
    if "$ref" in schema or "anyOf" in schema:
        return any_of(schema, {"type": "null"})
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return schema | {"type": [*kinds, "null"]}


def record(*, optional: dict[str, Schema] | None = None, **required: Schema) -> Schema:
    """Return the schema of an object with these members and no others."""
    return {
        "type": "object",
        "required": list(required),
        "additionalProperties": False,
        "properties": required | (optional or {}),
    }


def part(kind: str, /, *, optional: dict[str, Schema] | None = None, **members: Schema) -> Schema:
    """Return the schema of an object that its `type` distinguishes from others."""
    return record(type={"const": kind}, **members, optional=optional)


def envelope(data: Schema, **more: Schema) -> Schema:
    """Return the schema of the envelope in which some endpoints send their data."""
    return record(code={"const": 200}, msg=TEXT, data=data, **more)


def page(**items: Schema) -> Schema:
    """Return the schema of a page of items; `operations.PAGING` has the parameters of the next one."""
    return record(**items, nextCursor=nullable(TEXT))


def array(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def any_of(*schemas: Schema) -> Schema:
    return {"anyOf": list(schemas)}


def open_object(description: str) -> Schema:
    """Return the schema of an object with any members; the description says whose they are."""
    return {"type": "object", "additionalProperties": True, "description": description}


_FIELD_ERROR: Final = record(
    loc={
        "type": "array",
        "items": {"type": ["string", "integer"]},
        "description": "The path in the body, which begins with `body`.",
    },
    msg=TEXT,
    type=TEXT,
)
_FORM_ERRORS: Final[Schema] = {
    "type": "object",
    "additionalProperties": array(record(message=TEXT, code=TEXT)),
    "description": "The errors of each field of a form.",
}
_ERROR: Final[dict[str, Schema]] = {
    "detail": TEXT | {"description": "The error as a sentence, for people."},
    "code": TEXT | {"description": "The error code, for programs."},
    "request_id": TEXT | {"description": "The request's id in the logs."},
}
_FACTS: Final[dict[str, Schema]] = {
    "errors": any_of(array(_FIELD_ERROR), _FORM_ERRORS)
    | {"description": "The validation errors of the body, or those of a form by field."},
    "param": nullable(TEXT) | {"description": "The invalid field."},
}


def _error(**more: Schema) -> Schema:
    """Return the schema of an error with these members beside the common ones; it may have others."""
    required = _ERROR | more
    return {"type": "object", "required": list(required), "properties": required | _FACTS}


ERROR: Final = ref("Error")
OPENAI_ERROR: Final = ref("OpenAIError")
AGENT_API_ERROR: Final = ref("AgentApiError")
ERRORS: Final[dict[str, Schema]] = {
    "Error": _error(),
    "OpenAIError": _error(error=record(message=TEXT, type=TEXT, param=_FACTS["param"], code=TEXT)),
    "AgentApiError": _error(error=record(code=TEXT, message=TEXT)),
}
"""The component schemas that error responses refer to."""
