"""The preview of an unsaved wording in the editor: tokens, variables and the system message."""

from __future__ import annotations

import json
from typing import Any, Final

from config.errors import InvalidRequest
from config.http import json_limits
from prompts.admin import hooks
from prompts.models import PromptKind
from prompts.wordings import template
from prompts.wordings.active import read_system_message
from prompts.wordings.token_estimate import estimate

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
    """Return the preview as JSON; `problem` is an error in the example's tools or context."""
    problem, message = "", ""
    try:
        message = hooks.compose(
            _prompts(content, kind), tools=_json(tools, "tools"), context=_json(context, "context")
        )
    except InvalidRequest as refused:
        problem = refused.detail
        message = hooks.compose(_prompts(content, kind), tools=None, context=None)
    return {
        "characters": len(content),
        "tokens": estimate(content),
        "whole_tokens": estimate(message),
        "in_a_run": kind in _IN_A_RUN,
        "variables": [
            {"name": found.name, "source": found.source, "default": found.default or ""}
            for found in template.find_variables(content)
        ],
        "unknown": list(template.find_unknown(content)),
        "message": message,
        "problem": problem,
    }


def _prompts(content: str, kind: str) -> str:
    """Return the active prompts with this wording for its kind, or only it if runs use no such kind."""
    return read_system_message(overrides={kind: content}) if kind in _IN_A_RUN else content


def _json(text: str, name: str) -> Any:
    if not text.strip():
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"{name} is not valid JSON.", field=name) from None
    json_limits.check_depth(found)
    return found
