"""Platform actions: a hosted runner requests them for its run's user (seed §7.8).

They are tools that are not offered to models. Each is executed only if the runner's manifest, its
binding and the tool's policy allow it, and by default it waits for an approval. Installed packages add
more by the entry point group `parley.actions`; their names begin with `platform.`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from agents.tools.arguments import closed_schema
from agents.tools.base import Tool, ToolFailure, tool_context
from agents.tools.entry_points import add_installed
from config.errors import NotFound
from conversations.threads.listing import TITLE_LENGTH, Changes, change_thread

GROUP: Final = "parley.actions"
PREFIX: Final = "platform."


async def _rename(arguments: dict[str, Any]) -> dict[str, Any]:
    return await _change(Changes(title=" ".join(arguments["title"].split())[:TITLE_LENGTH]))


async def _archive(arguments: dict[str, Any]) -> dict[str, Any]:
    return await _change(Changes(archived=arguments.get("archived", True)))


async def _change(changes: Changes) -> dict[str, Any]:
    """Change the run's own conversation, and no other."""
    caller = tool_context()
    try:
        await change_thread(caller.user_id, str(caller.thread_id), changes)
    except NotFound:
        raise ToolFailure("thread_not_found", "The conversation is gone.") from None
    return {"changed": True}


def _action(name: str, description: str, properties: dict[str, Any], call: Any, *needed: str) -> Tool:
    return Tool(
        name=PREFIX + name,
        description=description,
        parameters=closed_schema(properties, *needed),
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
    """Return the action with that name, which includes the prefix, or None."""
    return _by_name().get(name)


@cache
def _by_name() -> dict[str, Tool]:
    return add_installed(_OURS, GROUP, is_allowed=lambda name: name.startswith(PREFIX))
