"""What the editor shows of a wording before it is saved: tokens, variables, the whole message."""

from __future__ import annotations

import json
from typing import Any, Final

from config import depth
from config.errors import InvalidRequest
from prompts import given, wording
from prompts.active import effective_system_message
from prompts.models import PromptKind
from prompts.tokens import estimate

EXAMPLE_TOOLS: Final = """[
  {
    "name": "show_card",
    "description": "Show a card to the user",
    "parameters": {"type": "object", "properties": {"title": {"type": "string"}}}
  }
]"""
EXAMPLE_CONTEXT: Final = '[{"description": "Time zone", "value": "Europe/Berlin"}]'
_IN_A_RUN: Final = (PromptKind.AGENT_SYSTEM, PromptKind.AGENT_TOOLS)


def preview(
    content: str, *, kind: str, tools: str = EXAMPLE_TOOLS, context: str = EXAMPLE_CONTEXT
) -> dict[str, Any]:
    """The preview as JSON; `problem` says what is wrong with the example's tools or context."""
    problem, message = "", ""
    try:
        message = given.compose(
            _prompts(content, kind), tools=_json(tools, "tools"), context=_json(context, "context")
        )
    except InvalidRequest as refused:
        problem = refused.detail
        message = given.compose(_prompts(content, kind), tools=None, context=None)
    return {
        "characters": len(content),
        "tokens": estimate(content),
        "whole_tokens": estimate(message),
        "in_a_run": kind in _IN_A_RUN,
        "variables": [
            {"name": found.name, "source": found.source, "default": found.default or ""}
            for found in wording.variables(content)
        ],
        "unknown": list(wording.unknown(content)),
        "message": message,
        "problem": problem,
    }


def _prompts(content: str, kind: str) -> str:
    """Both active prompts with this wording in the place of its kind; alone if runs use no such kind."""
    return effective_system_message(instead={kind: content}) if kind in _IN_A_RUN else content


def _json(text: str, name: str) -> Any:
    if not text.strip():
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"{name} is not valid JSON.", field=name) from None
    depth.check(found)
    return found
