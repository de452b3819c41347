"""The connections of this process: one a server, made and ended as staff change its row."""

from __future__ import annotations

from typing import Final

from agents.tools.base import Tool
from agents.tools.mcp.connection import ServerLink
from agents.tools.mcp.servers import Server, active_servers
from config.process.reconnecting import Pool

_pool: Final[Pool[Server, ServerLink]] = Pool(ServerLink, rows="mcp servers", goodbye_s=5)


def offered() -> tuple[Tool, ...]:
    """The tools of the servers that this loop is connected to now; never waits."""
    links = sorted(_pool.links(), key=lambda link: link.server.label)
    return tuple(tool for link in links for tool in link.tools)


async def connect_for_ever() -> None:
    """Keep a connection to each active server, for ever; while the database is away, to those known."""
    await _pool.keep(active_servers)
