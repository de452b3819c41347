"""Platform actions: what a hosted runner may ask the platform to do for its run's user (seed §7.8).

They are tools that no model is offered. Each is done only where the runner's manifest, its binding and
the tool's policy allow it, and by default waits for somebody's approval. Installed packages add more
by the entry point group `parley.actions`; each is a `Tool` whose name begins with `platform.`.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any, Final

import structlog

from agents.tools.base import Tool, ToolFailure, tool_context
from config import database

log = structlog.get_logger(__name__)

GROUP: Final = "parley.actions"
PREFIX: Final = "platform."
_RENAME: Final = """
UPDATE conversations_thread SET title = %s, updated_at = clock_timestamp()
WHERE id = %s AND owner_id = %s
"""
_ARCHIVE: Final = """
UPDATE conversations_thread
SET archived_at = CASE WHEN %s THEN coalesce(archived_at, clock_timestamp()) END
WHERE id = %s AND owner_id = %s
"""


async def _rename(arguments: dict[str, Any]) -> dict[str, Any]:
    return await _changed(_RENAME, " ".join(arguments["title"].split())[:200])


async def _archive(arguments: dict[str, Any]) -> dict[str, Any]:
    return await _changed(_ARCHIVE, arguments.get("archived", True))


async def _changed(statement: str, value: object) -> dict[str, Any]:
    """Change the run's own conversation, and no other."""
    caller = tool_context()
    async with database.connection() as connection:
        changed = await connection.execute(statement, (value, caller.thread_id, caller.user_id))
    if not changed.rowcount:
        raise ToolFailure("thread_not_found", "The conversation is gone.")
    return {"changed": True}


def _action(name: str, description: str, properties: dict[str, Any], call: Any, *needed: str) -> Tool:
    return Tool(
        name=PREFIX + name,
        description=description,
        parameters={
            "type": "object",
            "properties": properties,
            "required": list(needed),
            "additionalProperties": False,
        },
        call=call,
        idempotent=True,
        timeout_s=5,
        requires_approval=True,
    )


_OURS: Final = (
    _action(
        "thread.rename",
        "Gives the conversation a title.",
        {"title": {"type": "string", "minLength": 1, "maxLength": 200}},
        _rename,
        "title",
    ),
    _action(
        "thread.archive",
        "Puts the conversation away, or back.",
        {"archived": {"type": "boolean"}},
        _archive,
    ),
)


def find(name: str) -> Tool | None:
    """The action of that name, with its prefix; None if there is none."""
    return _by_name().get(name)


def all_actions() -> tuple[Tool, ...]:
    """Every action, ours first."""
    return tuple(_by_name().values())


@cache
def _by_name() -> dict[str, Tool]:
    found = {tool.name: tool for tool in _OURS}
    for entry in entry_points(group=GROUP):
        try:
            tool = entry.load()
        except Exception:  # somebody else's package
            log.exception("platform action not loaded", entry=entry.name)
            continue
        if isinstance(tool, Tool) and tool.name.startswith(PREFIX) and tool.name not in found:
            found[tool.name] = tool
        else:
            log.error("platform action left out: no Tool, or its name is taken", entry=entry.name)
    return found
