"""Whether an answer has the form that was asked for, said by the run's last event."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from agents.answer_form import fault_of
from conversations import events
from conversations.events import RunCompleted, Terminal

INVALID: Final = "structured_output_invalid"
_OTHERWISE: Final = frozenset(("tool_calls", "interrupt", "refusal", "content_filter"))


def judged(terminal: Terminal, answer: str, schema: dict[str, Any] | None, *, fails: bool) -> Terminal:
    """The ending of a run whose answer had to fit the schema.

    `metadata.structured_output` says "ok" or what is wrong; where a wrong answer `fails`, the run does.
    A run that ended for something else than an answer is left as it is.
    """
    if schema is None or not isinstance(terminal, RunCompleted) or terminal.finish_reason in _OTHERWISE:
        return terminal
    fault = fault_of(answer, schema)
    if fault and terminal.finish_reason == "length":
        fault = f"it was cut off at the limit of tokens, so {fault}"
    if fault and fails:
        message = f"The answer does not fit the JSON Schema that was asked for: {fault}."
        return events.RunFailed(INVALID, message, retryable=True)
    return replace(terminal, metadata=terminal.metadata | {"structured_output": fault or "ok"})
