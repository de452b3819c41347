"""Check the JSON Schema that a client requires of an answer.

`require_object_schema` makes the checks that a dialect can make by itself. `check_usable` compiles the
schema, once for all dialects when a run is accepted: a few hundred bytes of `unevaluatedProperties` can
take minutes and gigabytes.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from agents import json_schemas
from config.errors import InvalidRequest, Unavailable

ANY_OBJECT: Final[dict[str, Any]] = {"type": "object"}
_LARGEST: Final = 64 * 1024
_PATIENCE_S: Final = 10.0


def require_object_schema(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema; raise InvalidRequest `invalid_response_format`.

    It must be a schema of an object, and not too large.
    """
    if len(msgspec.json.encode(schema)) > _LARGEST:
        raise invalid_form(f"The answer's JSON Schema is larger than {_LARGEST // 1024} KiB.")
    if schema.get("type") != "object":
        raise invalid_form('The answer\'s JSON Schema must be of an object: {"type": "object", …}.')
    return schema


async def check_usable(schema: dict[str, Any]) -> None:
    """Raise InvalidRequest `invalid_response_format` for a schema that cannot be used for checks.

    Raise Unavailable if the schema cannot be checked now.
    """
    try:
        async with asyncio.timeout(_PATIENCE_S):
            await json_schemas.check(schema)
    except json_schemas.UnusableSchema as fault:
        raise invalid_form(f"The answer's form is no JSON Schema that can be used: {fault}") from None
    except json_schemas.Undecided as problem:
        raise invalid_form(f"The answer's JSON Schema cannot be used: {problem}.") from None
    except TimeoutError:
        raise Unavailable("Too many JSON Schemas are being checked.", retry_after=2) from None


def invalid_form(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_response_format")
