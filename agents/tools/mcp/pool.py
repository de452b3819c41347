"""The connections of this process: one a server, made and ended as staff change its row."""

from __future__ import annotations

import asyncio
from contextvars import Context
from typing import Final
from weakref import WeakKeyDictionary

import structlog

from agents.tools.base import Tool
from agents.tools.mcp.link import Link
from agents.tools.mcp.servers import Server, active_servers

log = structlog.get_logger(__name__)

_LOOK_S: Final = 1.0
_GOODBYE_S: Final = 5.0
_Kept = dict[int, tuple[Link, asyncio.Task[None]]]
_of_loop: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, _Kept]] = WeakKeyDictionary()


def offered() -> tuple[Tool, ...]:
    """The tools of the servers that this loop is connected to now; never waits."""
    kept = _of_loop.get(asyncio.get_running_loop(), {})
    links = sorted((link for link, _ in kept.values()), key=lambda link: link.server.label)
    return tuple(tool for link in links for tool in link.tools)


async def connect_for_ever() -> None:
    """Keep a connection to each active server, for ever; while the database is away, to those known."""
    kept = _of_loop.setdefault(asyncio.get_running_loop(), {})
    ending: set[asyncio.Task[None]] = set()
    try:
        while True:
            try:
                _adjust(kept, {server.id: server for server in await active_servers()}, ending)
            except Exception as error:
                log.warning("reading mcp servers failed", error=type(error).__name__)
            await asyncio.sleep(_LOOK_S)
    finally:
        _adjust(kept, {}, ending)
        if ending:
            await asyncio.wait(ending, timeout=_GOODBYE_S)


def _adjust(kept: _Kept, wanted: dict[int, Server], ending: set[asyncio.Task[None]]) -> None:
    """End what changed or went, and begin what is new, without waiting for either."""
    for known in [known for known, (link, _) in kept.items() if wanted.get(known) != link.server]:
        link, task = kept.pop(known)
        link.tools = ()
        task.cancel()
        ending.add(task)
        task.add_done_callback(ending.discard)
    for known, server in wanted.items():
        if known not in kept:
            link = Link(server)
            kept[known] = (link, asyncio.create_task(link.keep(), context=Context()))
