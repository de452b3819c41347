"""The effective system message: the active prompts, the client's instructions, tools, context and state.

What clients send is data inside a prompt of ours, so none of it may close the block it stands in. Only
instructions are no data: who sends them speaks as the developer does (OpenAI, Responses: "A system (or
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
    """The system message of a run, its parts a blank line apart; "" when there is none.

    `form` is what the model is told of the form of its reply; not where it is told no prompts of ours.
    """
    told = (build_tools_prompt(tools), build_context_prompt(context), build_state_prompt(state))
    parts = (prompts, form if prompts else "", instructions, *told)
    return "\n\n".join(part for part in parts if part)


def build_tools_prompt(tools: Sequence[ClientTool]) -> str:
    """The client's tools as seed 000 writes them (specs/run-agent-input.md §2); "" without tools."""
    if not tools:
        return ""
    return "\n".join(
        [
            "<!-- TOOLS_START -->",
            *(line for tool in tools for line in _tool(tool)),
            "Note: tool arguments must strictly match args_schema.",
            "<!-- TOOLS_END -->",
        ]
    )


def build_context_prompt(context: Sequence[ContextItem]) -> str:
    """What the client wants the model to know, in the form of the tools block; "" without any."""
    if not context:
        return ""
    items = (f"- {_line(item.description)}: {_inert(item.value)}" for item in context)
    return "\n".join(["<!-- CONTEXT_START -->", *items, "<!-- CONTEXT_END -->"])


def build_state_prompt(state: Any) -> str:
    """The state that the client shares with the run, as JSON; "" without any, or with too much of it."""
    if not state:
        return ""
    told = _inert_json(state)
    if len(told) > LONGEST_STATE:
        told = f"(too large to be shown here: {len(told):,} characters)"
    return "\n".join(["<!-- STATE_START -->", told, "<!-- STATE_END -->"])


def _tool(tool: ClientTool) -> tuple[str, str]:
    schema = _inert_json(tool.parameters)
    return f"- {_line(tool.name)}: {_line(tool.description)}", f"  - args_schema: {schema}"


def _inert_json(value: Any) -> str:
    """JSON that says the same without comment marks and line ends."""
    told = _encode(value).decode()
    for text, escaped in _INERT_JSON:
        told = told.replace(text, escaped)
    return told


def _line(text: str) -> str:
    return _inert(_LINE_ENDS.sub(" ", text))


def _inert(text: str) -> str:
    """The text without comment marks; what it says stays readable."""
    return text.replace("<!--", "<! --").replace("-->", "-- >")
