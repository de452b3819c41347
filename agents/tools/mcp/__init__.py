"""The tools of MCP servers, through the official SDK.

Each server that staff entered has one connection per worker process, in a task of its own that opens,
watches and closes it. A server that is down offers no tools, and no run waits for one.
"""

from agents.tools.mcp.connection import connect_for_ever, connected_tools
from agents.tools.mcp.servers import find_served_labels, is_served
from agents.tools.mcp.tool_definitions import model_name, tool_list_updates

__all__ = [
    "connect_for_ever",
    "connected_tools",
    "find_served_labels",
    "is_served",
    "model_name",
    "tool_list_updates",
]
