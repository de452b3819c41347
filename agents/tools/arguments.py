"""Check a call's arguments against its tool's JSON Schema, in words that a model can act on."""

from __future__ import annotations

from typing import Any, Final

from jsonschema import Draft202012Validator

from agents.tools.base import Tool, ToolFailure

_LONGEST: Final = 300
_MOST: Final = 5
_ANYTHING: Final = Draft202012Validator({})
_validators: Final[dict[int, tuple[dict[str, Any], Draft202012Validator]]] = {}


def check_arguments(tool: Tool, arguments: dict[str, Any]) -> None:
    """ToolFailure `invalid_arguments`, naming each wrong field, if they do not fit the schema."""
    problems = sorted(_validator(tool).iter_errors(arguments), key=lambda problem: problem.json_path)
    if problems:
        told = "; ".join(f"{found.json_path}: {found.message[:_LONGEST]}" for found in problems[:_MOST])
        raise ToolFailure("invalid_arguments", f"The arguments do not fit the tool's schema: {told}.")


def fits(tool: Tool, arguments: dict[str, Any]) -> bool:
    """Whether the arguments fit the tool's schema."""
    return bool(_validator(tool).is_valid(arguments))


def _validator(tool: Tool) -> Draft202012Validator:
    """The tool's compiled schema; the schema is kept with it so that its id stays its own.

    An MCP server's schema is not run here: its patterns and references could hold the loop or fetch
    from anywhere. The server checks the arguments of its tools by itself.
    """
    if tool.kind == "mcp":
        return _ANYTHING
    schema = tool.parameters
    found = _validators.get(id(schema))
    if found is None:
        found = _validators[id(schema)] = (schema, Draft202012Validator(schema))
    return found[1]
