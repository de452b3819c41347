"""The arguments of tools: their check against a JSON Schema, and their reading into a type of ours.

The errors help a model to correct its call.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Any, Final, TypeVar

import msgspec
from msgspec import Meta

from agents import json_schemas
from agents.tools.base import Tool, ToolFailure

T = TypeVar("T")
TopK = Annotated[int, Meta(ge=1, le=10)]
_PATIENCE_S: Final = 7.0  # less than the idle limit of the transaction that checks edited ones


def closed_schema(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    """Return the JSON Schema of arguments with these members and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


SEARCH_SCHEMA: Final = closed_schema(
    {
        "query": {"type": "string", "minLength": 1, "description": "What to look for, in any words."},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
    },
    "query",
)
"""The arguments of our searches."""


async def check_arguments(tool: Tool, arguments: dict[str, Any]) -> None:
    """Raise ToolFailure `invalid_arguments`, naming wrong fields, if they do not fit the schema.

    The arguments of an MCP server's tool are not checked here: the server does that by itself.
    """
    if tool.kind == "mcp":
        return
    try:
        async with asyncio.timeout(_PATIENCE_S):
            faults = await json_schemas.find_faults(msgspec.json.encode(arguments), tool.parameters)
    except (json_schemas.Undecided, json_schemas.UnusableSchema, TimeoutError) as problem:
        why = str(problem) or "that took too long"
        raise _invalid(f"The arguments could not be checked against the tool's schema: {why}.") from None
    if faults:
        raise _invalid(f"The arguments do not fit the tool's schema: {'; '.join(faults)}.")


def read_arguments(arguments: dict[str, Any], kind: type[T]) -> T:
    """Return the arguments as a value of this type; raise ToolFailure `invalid_arguments`."""
    try:
        return msgspec.convert(arguments, kind)
    except msgspec.ValidationError as problem:
        raise _invalid(f"The arguments are not valid: {problem}.") from None


def _invalid(message: str) -> ToolFailure:
    return ToolFailure("invalid_arguments", message)


async def fits(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Return whether the arguments fit the tool's schema."""
    try:
        await check_arguments(tool, arguments)
    except ToolFailure:
        return False
    return True
