"""The tools of this installation; a new one is one entry here."""

from __future__ import annotations

from agents.tools import exercises
from agents.tools.base import Tool

_TOOLS = (
    Tool(
        name=exercises.NAME,
        description=exercises.DESCRIPTION,
        parameters=exercises.SCHEMA,
        call=exercises.search_exercises,
        idempotent=True,
        timeout_s=5.0,
    ),
)
_BY_NAME = {tool.name: tool for tool in _TOOLS}


def find(name: str) -> Tool | None:
    """The tool of that name, or None."""
    return _BY_NAME.get(name)


def all_tools() -> tuple[Tool, ...]:
    """Every tool, in the order it is offered to a model."""
    return _TOOLS
