"""Tools of installed packages, by an entry point group; each entry is a `Tool`.

An entry that cannot be loaded, or whose name is taken, is left out and logged: it must not prevent the
start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.metadata import entry_points

import structlog

from agents.tools.base import Tool

log = structlog.get_logger(__name__)


def add_installed(
    own_tools: Iterable[Tool], group: str, *, is_allowed: Callable[[str], bool]
) -> dict[str, Tool]:
    """Return Parley's tools, and those of the group whose names are allowed, by name."""
    found = {tool.name: tool for tool in own_tools}
    for entry in entry_points(group=group):
        try:
            tool = entry.load()
        except Exception:  # the code of another package
            log.exception("tool not loaded", group=group, entry=entry.name)
            continue
        if isinstance(tool, Tool) and tool.name not in found and is_allowed(tool.name):
            found[tool.name] = tool
        else:
            log.error(
                "tool left out: no Tool, or its name is taken or reserved", group=group, entry=entry.name
            )
    return found
