"""The tools of this installation: Parley's own, and those of installed packages.

A package adds one by the entry point group `parley.tools`.
"""

from __future__ import annotations

from functools import cache

from agents.tools import web_search
from agents.tools.base import Tool
from agents.tools.entry_points import add_installed
from agents.tools.exercises import search_tool

GROUP = "parley.tools"
RESERVED = ("parley.", "demo.")  # prefixes of names that only Parley's own tools may have
_OURS = (search_tool.TOOL, web_search.TOOL)


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
