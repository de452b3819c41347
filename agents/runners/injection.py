"""Results of the tools, as the user message before the question (specs/text-run.md §3)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import msgspec

from agents.runners.base import ToolOutcome

_ITEMS: Final = 5
_DESCRIPTION: Final = 140
_SNIPPET: Final = 220


def injected_context(findings: Iterable[ToolOutcome], *, source: str) -> str:
    """Return `<gymbro_injected_context>` with a block per tool with results; "" if there are none."""
    blocks = [block for finding in findings if (block := _block(finding))]
    if not blocks:
        return ""
    meta = escape(msgspec.json.encode({"source": source}).decode())
    return "\n".join(
        [
            "<gymbro_injected_context>",
            *blocks,
            f"<meta><json>{meta}</json></meta>",
            "</gymbro_injected_context>",
        ]
    )


def _block(finding: ToolOutcome) -> str:
    lines = [_line(item) for item in ((finding.result or {}).get("results") or [])[:_ITEMS]]
    if not lines:
        return ""
    return f"<tool name={quoteattr(finding.use.name)}><text>{escape(chr(10).join(lines))}</text></tool>"


def _line(item: dict[str, Any]) -> str:
    """Return one found item as a line: its name or title, then its known facts."""
    if "title" in item:
        return f"- {item['title']} {item.get('url', '')}: {shorten(item.get('snippet'), _SNIPPET)}"
    facts = [item.get("muscleGroup"), item.get("difficulty"), "/".join(item.get("equipment") or ())]
    known = ", ".join(str(fact) for fact in facts if fact)
    return f"- {item.get('name', '')} ({known}): {shorten(item.get('description'), _DESCRIPTION)}"


def shorten(text: object, length: int) -> str:
    """Return the text as one line of at most so many characters."""
    whole = " ".join(str(text or "").split())
    return whole if len(whole) <= length else whole[: length - 1] + "…"
