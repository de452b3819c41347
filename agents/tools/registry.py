"""The tools of this installation: ours, and those that installed packages bring.

A package adds one by the entry point group `parley.tools`; each entry is a `Tool`. One that cannot be
loaded, or takes a name that is taken, is left out and logged: it must not stop the start.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points

import structlog

from agents.tools import exercises, web_search
from agents.tools.base import Tool

log = structlog.get_logger(__name__)

GROUP = "parley.tools"
RESERVED = ("parley.", "demo.")  # how the names begin of tools that only we make
_OURS = (
    Tool(
        name=exercises.NAME,
        description=exercises.DESCRIPTION,
        parameters=exercises.SCHEMA,
        call=exercises.search_exercises,
        idempotent=True,
        timeout_s=5.0,
    ),
    Tool(
        name=web_search.NAME,
        description=web_search.DESCRIPTION,
        parameters=web_search.SCHEMA,
        call=web_search.search_web,
        idempotent=True,
        timeout_s=web_search.TIMEOUT_S + 2,
    ),
)


def find(name: str) -> Tool | None:
    """The tool of that name, or None."""
    return _by_name().get(name)


def all_tools() -> tuple[Tool, ...]:
    """Every tool, in the order it is offered to a model."""
    return tuple(_by_name().values())


@cache
def _by_name() -> dict[str, Tool]:
    found = {tool.name: tool for tool in _OURS}
    for entry in entry_points(group=GROUP):
        try:
            tool = entry.load()
        except Exception:  # somebody else's package
            log.exception("tool not loaded", entry=entry.name)
            continue
        if isinstance(tool, Tool) and tool.name not in found and not tool.name.startswith(RESERVED):
            found[tool.name] = tool
        else:
            log.error("tool left out: it is no Tool, or its name is taken", entry=entry.name)
    return found


def forget() -> None:
    """Look at the installed packages again."""
    _by_name.cache_clear()
