"""The effective system message: the active prompts, the client's instructions, tools, context and state.

Clients' data is inside a prompt of ours, so none of it may close the block that it is in. Only
instructions are no data: their sender has the role of the developer (OpenAI, Responses: "A system (or
developer) message inserted into the model's context").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from agents.requests import ClientTool, ContextItem

LONGEST_STATE: Final = 16_000
_LINE_ENDS: Final = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]+")
_INERT_JSON: Final = (
    ("<!--", "<\\u0021--"),
    ("-->", "--\\u003e"),
    ("\x85", "\\u0085"),
    ("\u2028", "\\u2028"),
    ("\u2029", "\\u2029"),
)
_encode: Final = msgspec.json.Encoder().encode


def system_message(
    prompts: str,
    tools: Sequence[ClientTool] = (),
    context: Sequence[ContextItem] = (),
    state: Any = None,
    *,
    form: str = "",
    instructions: str = "",
) -> str:
    """Return the system message of a run, its parts a blank line apart; "" if there is none.

    `form` describes the form of the reply to the model; it is left out if there are no prompts of ours.
    """
    blocks = (build_tools_prompt(tools), build_context_prompt(context), build_state_prompt(state))
    parts = (prompts, form if prompts else "", instructions, *blocks)
    return "\n\n".join(part for part in parts if part)


def build_tools_prompt(tools: Sequence[ClientTool]) -> str:
    """Return the client's tools in seed 000's form (specs/run-agent-input.md §2); "" without tools."""
    if not tools:
        return ""
    lines = [line for tool in tools for line in _tool(tool)]
    return _block("TOOLS", *lines, "Note: tool arguments must strictly match args_schema.")


def build_context_prompt(context: Sequence[ContextItem]) -> str:
    """Return the client's context for the model, in the form of the tools block; "" without any."""
    if not context:
        return ""
    items = (f"- {_line(item.description)}: {_inert(item.value)}" for item in context)
    return _block("CONTEXT", *items)


def build_state_prompt(state: Any) -> str:
    """Return the state that the client shares with the run, as JSON; "" without any."""
    if not state:
        return ""
    shown = _inert_json(state)
    if len(shown) > LONGEST_STATE:
        shown = f"(too large to be shown here: {len(shown):,} characters)"
    return _block("STATE", shown)


def _block(name: str, *lines: str) -> str:
    return "\n".join([f"<!-- {name}_START -->", *lines, f"<!-- {name}_END -->"])


def _tool(tool: ClientTool) -> tuple[str, str]:
    schema = _inert_json(tool.parameters)
    return f"- {_line(tool.name)}: {_line(tool.description)}", f"  - args_schema: {schema}"


def _inert_json(value: Any) -> str:
    """Return equivalent JSON without comment marks and line ends."""
    encoded = _encode(value).decode()
    for text, escaped in _INERT_JSON:
        encoded = encoded.replace(text, escaped)
    return encoded


def _line(text: str) -> str:
    return _inert(_LINE_ENDS.sub(" ", text))


def _inert(text: str) -> str:
    """Return the text without comment marks; it stays readable."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")
