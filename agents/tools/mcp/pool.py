"""The connections of this process: one per server, opened and closed when staff change its row."""

from __future__ import annotations

from typing import Final

from agents.tools.base import Tool
from agents.tools.mcp.connection import ServerLink
from agents.tools.mcp.servers import Server, active_servers
from config.process.reconnecting import Pool

_pool: Final[Pool[Server, ServerLink]] = Pool(ServerLink, rows="mcp servers", goodbye_s=5)


def connected_tools() -> tuple[Tool, ...]:
    """Return the tools of the servers that this loop is connected to; never wait."""
    links = sorted(_pool.links(), key=lambda link: link.server.label)
    return tuple(tool for link in links for tool in link.tools)


async def connect_for_ever() -> None:
    """Keep a connection to each active server, until cancelled; without the database, to known ones."""
    await _pool.keep(active_servers)
