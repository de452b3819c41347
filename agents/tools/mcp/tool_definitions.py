"""Convert a server's definitions of tools: for models, and for the wires that list them.

Providers accept names of letters, digits, _ and -, up to 64; a server may use any. A changed name
contains a piece of the old one's digest, so that two names never become one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import jsonschema_rs
import msgspec

from agents.tools.base import Tool
from conversations.events import StateUpdated

_UNFIT: Final = re.compile(r"[^A-Za-z0-9_-]")
_LARGEST_LIST: Final = 128 * 1024
_LONGEST_NAME: Final = 64
_LONGEST_DESCRIPTION: Final = 4_000
_LARGEST_SCHEMA: Final = 64 * 1024
_DEEPEST: Final = 32
# It takes some milliseconds for any schema; `jsonschema_rs.meta` would fetch the `$schema` of a schema.
_METASCHEMA: Final = jsonschema_rs.Draft202012Validator(
    {"$ref": "https://json-schema.org/draft/2020-12/schema"}
)


def model_name(label: str, tool: str) -> str:
    """Return `{label}__{tool}` in a form that every provider accepts."""
    name = f"{label}__{tool}"
    fit = _UNFIT.sub("_", name)
    if fit == name and len(name) <= _LONGEST_NAME:
        return name
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return f"{fit[: _LONGEST_NAME - 9]}_{digest}"


def clean_description(text: str | None, tool: str) -> str:
    """Return the description without control characters, cut; or the tool's name if there is none."""
    clean = "".join(c for c in text or "" if c.isprintable() or c in "\n\t").strip()
    return clean[:_LONGEST_DESCRIPTION] or f"The tool {model_name('', tool).strip('_')}."


def usable_schema(schema: Any) -> dict[str, Any] | None:
    """Return the schema if a model can use it (an object's, valid, local, not too large), or None."""
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        return None
    try:
        if len(msgspec.json.encode(schema)) > _LARGEST_SCHEMA or not _plain(schema, _DEEPEST):
            return None
        if not _METASCHEMA.is_valid(schema):
            return None
    except (RecursionError, TypeError, ValueError):
        return None
    return {"properties": {}, **schema, "type": "object"}


def _plain(value: Any, depth: int) -> bool:
    """Return whether a value is not too deep and has no references to other documents."""
    if depth == 0:
        return False
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("$ref", "$dynamicRef") and not (isinstance(inner, str) and inner[:1] == "#"):
                return False
            if not _plain(inner, depth - 1):
                return False
        return True
    return not isinstance(value, list) or all(_plain(inner, depth - 1) for inner in value)


def tool_list_updates(tools: Iterable[Tool]) -> Iterator[StateUpdated]:
    """Yield one fact per server: its tools that the run may call, in the form of MCP's `tools/list`.

    A list that is too large for every run's log is written without its schemas.
    """
    offered: dict[str, list[Tool]] = {}
    for tool in tools:
        if tool.kind == "mcp":
            offered.setdefault(tool.server_label, []).append(tool)
    for label, some in offered.items():
        whole = [_definition(tool, tool.parameters) for tool in some]
        if len(msgspec.json.encode(whole)) > _LARGEST_LIST:
            whole = [_definition(tool, {"type": "object"}) for tool in some]
        yield StateUpdated("mcp", label, whole)


def _definition(tool: Tool, schema: dict[str, Any]) -> dict[str, Any]:
    definition = {"name": tool.name, "description": tool.description, "input_schema": schema}
    return definition | ({"annotations": tool.annotations} if tool.annotations else {})
