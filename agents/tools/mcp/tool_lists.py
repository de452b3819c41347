"""The tools of a run's MCP servers, as the facts that some wires show (`mcp_list_tools`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from agents.tools.base import Tool
from conversations.events import StateUpdated

SCOPE: Final = "mcp"
LARGEST: Final = 128 * 1024


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
        if len(msgspec.json.encode(whole)) > LARGEST:
            whole = [_definition(tool, {"type": "object"}) for tool in some]
        yield StateUpdated(SCOPE, label, whole)


def _definition(tool: Tool, schema: dict[str, Any]) -> dict[str, Any]:
    definition = {"name": tool.name, "description": tool.description, "input_schema": schema}
    return definition | ({"annotations": tool.annotations} if tool.annotations else {})
