"""The tools of this installation: Parley's own, and those of installed packages.

A package adds one by the entry point group `parley.tools`.
"""

from __future__ import annotations

from functools import cache

from agents.tools import web_search
from agents.tools.base import Tool
from agents.tools.exercises import search_tool
from agents.tools.installed import add_installed

GROUP = "parley.tools"
RESERVED = ("parley.", "demo.")  # prefixes of names that only Parley's own tools may have
_OURS = (
    Tool(
        name=search_tool.NAME,
        description=search_tool.DESCRIPTION,
        parameters=search_tool.SCHEMA,
        call=search_tool.search_exercises,
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
    """Return the tool with that name, or None."""
    return _by_name().get(name)


def all_tools() -> tuple[Tool, ...]:
    """Return all tools, in the order in which they are offered to a model."""
    return tuple(_by_name().values())


@cache
def _by_name() -> dict[str, Tool]:
    return add_installed(_OURS, GROUP, is_allowed=lambda name: not name.startswith(RESERVED))


def clear_cache() -> None:
    """Read the installed packages again."""
    _by_name.cache_clear()
