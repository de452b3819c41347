"""The JSON Schema that an answer must fit: is it one, and does the answer fit it.

Schemas come from clients, so nothing of one may be dear: patterns are matched in linear time (no
look-around, no back-references), and references to elsewhere are never fetched.
"""

from __future__ import annotations

from typing import Any, Final

import jsonschema_rs
import msgspec

from config.errors import InvalidRequest

ANY_OBJECT: Final[dict[str, Any]] = {"type": "object"}
_LARGEST: Final = 64 * 1024
_LONGEST: Final = 300
_MOST: Final = 3
_LINEAR: Final = jsonschema_rs.RegexOptions()


def checked(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema; InvalidRequest `invalid_response_format` for what is none, or is too large."""
    if len(msgspec.json.encode(schema)) > _LARGEST:
        raise invalid_form(f"The answer's JSON Schema is larger than {_LARGEST // 1024} KiB.")
    if schema.get("type") != "object":
        raise invalid_form('The answer\'s JSON Schema must be of an object: {"type": "object", …}.')
    try:
        _validator(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        told = str(error).partition("\n")[0][:_LONGEST]
        raise invalid_form(f"The answer's form is no JSON Schema that can be used: {told}") from None
    return schema


def invalid_form(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_response_format")


def fault_of(answer: str, schema: dict[str, Any]) -> str:
    """What is wrong with an answer that must fit the schema; "" if it does."""
    try:
        found = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return "it is no JSON"
    try:
        faults = list(_validator(schema).iter_errors(found))[:_MOST]
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError):
        return "its schema cannot be used"
    return "; ".join(f"{_place(fault.instance_path)}: {fault.message[:_LONGEST]}" for fault in faults)


def _validator(schema: dict[str, Any]) -> Any:
    return jsonschema_rs.Draft202012Validator(schema, pattern_options=_LINEAR, retriever=_refuse)


def _refuse(address: str) -> Any:
    raise ValueError("references to elsewhere are not followed")


def _place(path: list[str | int]) -> str:
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
