"""The whole system message as a run would receive it, for the preview beside the prompt editor."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from agents.context.template_values import context_values, current_moment
from agents.requests import ClientTool, ContextItem
from agents.runners.system_message import system_message
from config.errors import InvalidRequest
from prompts.wordings import template

EXAMPLE: Final[dict[str, str]] = {
    "model": "global:demo",
    "user.name": "Ada",
    "user.email": "ada@example.com",
    "user.tier": "pro",
}
_MOST: Final = 64


def compose_preview(prompts: str, *, tools: Any, context: Any) -> str:
    """Return the prompts with an example's values, then the blocks of these tools and context items.

    Raise InvalidRequest for tools or context that a client could not send.
    """
    given_tools = _read(tools, list[ClientTool], "tools")
    given_context = _read(context, list[ContextItem], "context")
    values = EXAMPLE | current_moment() | context_values(given_context)
    return system_message(template.fill(prompts, values), given_tools, given_context)


def _read(raw: Any, kind: Any, name: str) -> Any:
    try:
        found = msgspec.convert([] if raw is None else raw, kind)
    except (msgspec.ValidationError, RecursionError) as problem:
        raise InvalidRequest(f"{name}: {problem}.", field=name) from None
    if len(found) > _MOST:
        raise InvalidRequest(f"{name}: at most {_MOST}.", field=name)
    return found
