"""What a run's MCP servers offer it, as the facts that some wires show (`mcp_list_tools`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from agents.tools.base import Tool
from conversations.events import StateUpdated

SCOPE: Final = "mcp"
LARGEST: Final = 128 * 1024


def listings(tools: Iterable[Tool]) -> Iterator[StateUpdated]:
    """One fact a server: its tools that the run may call, as `tools/list` of MCP has them.

    A list that is too large to stand in every run's log is told without its schemas.
    """
    offered: dict[str, list[Tool]] = {}
    for tool in tools:
        if tool.kind == "mcp":
            offered.setdefault(tool.server_label, []).append(tool)
    for label, some in offered.items():
        whole = [_told(tool, tool.parameters) for tool in some]
        if len(msgspec.json.encode(whole)) > LARGEST:
            whole = [_told(tool, {"type": "object"}) for tool in some]
        yield StateUpdated(SCOPE, label, whole)


def _told(tool: Tool, schema: dict[str, Any]) -> dict[str, Any]:
    told = {"name": tool.name, "description": tool.description, "input_schema": schema}
    return told | ({"annotations": tool.annotations} if tool.annotations else {})
