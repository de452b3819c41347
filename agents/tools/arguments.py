"""Check a call's arguments against its tool's JSON Schema; the errors help a model to correct them."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec

from agents import json_schemas
from agents.tools.base import Tool, ToolFailure

_PATIENCE_S: Final = 7.0  # less than the idle limit of the transaction that checks edited ones


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


def _invalid(message: str) -> ToolFailure:
    return ToolFailure("invalid_arguments", message)


async def fits(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Return whether the arguments fit the tool's schema."""
    try:
        await check_arguments(tool, arguments)
    except ToolFailure:
        return False
    return True
