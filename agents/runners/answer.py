"""The check of an answer against the requested form, reported by the run's last event."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from agents import json_schemas
from conversations import events
from conversations.events import RunCompleted, Terminal

INVALID: Final = "structured_output_invalid"
_OTHERWISE: Final = frozenset(("tool_calls", "interrupt", "refusal", "content_filter"))


async def judge_answer(
    terminal: Terminal, answer: str, schema: dict[str, Any] | None, *, fails: bool
) -> Terminal:
    """Return the ending of a run whose answer must fit the schema.

    `metadata.structured_output` is "ok" or the fault. If `fails`, an answer with a fault, or one that
    cannot be checked, fails the run. A run that ended with anything but an answer is left unchanged.
    """
    if schema is None or not isinstance(terminal, RunCompleted) or terminal.finish_reason in _OTHERWISE:
        return terminal
    problem = "does not fit the JSON Schema that was asked for"
    try:
        fault = "; ".join(await json_schemas.find_faults(answer.encode(errors="replace"), schema))
    except (json_schemas.Undecided, json_schemas.UnusableSchema) as undecided:
        fault = str(undecided)
        problem = "could not be checked against the JSON Schema that was asked for"
    if fault and terminal.finish_reason == "length":
        fault = f"it was cut off at the limit of tokens, so {fault}"
    if fault and fails:
        return events.RunFailed(INVALID, f"The answer {problem}: {fault}.", retryable=True)
    return replace(terminal, metadata=terminal.metadata | {"structured_output": fault or "ok"})
