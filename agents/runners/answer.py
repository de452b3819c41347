"""Whether an answer has the form that was asked for, said by the run's last event."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from agents import json_schemas
from conversations import events
from conversations.events import RunCompleted, Terminal

INVALID: Final = "structured_output_invalid"
_OTHERWISE: Final = frozenset(("tool_calls", "interrupt", "refusal", "content_filter"))


async def judged(
    terminal: Terminal, answer: str, schema: dict[str, Any] | None, *, fails: bool
) -> Terminal:
    """The ending of a run whose answer had to fit the schema.

    `metadata.structured_output` says "ok" or what is wrong; where a wrong answer `fails`, the run does,
    and so it does where nobody can tell. A run that ended for something else than an answer is left as
    it is.
    """
    if schema is None or not isinstance(terminal, RunCompleted) or terminal.finish_reason in _OTHERWISE:
        return terminal
    problem = "does not fit the JSON Schema that was asked for"
    try:
        fault = "; ".join(await json_schemas.faults_of(answer.encode(errors="replace"), schema))
    except (json_schemas.Undecided, json_schemas.Unusable) as undecided:
        fault = str(undecided)
        problem = "could not be checked against the JSON Schema that was asked for"
    if fault and terminal.finish_reason == "length":
        fault = f"it was cut off at the limit of tokens, so {fault}"
    if fault and fails:
        return events.RunFailed(INVALID, f"The answer {problem}: {fault}.", retryable=True)
    return replace(terminal, metadata=terminal.metadata | {"structured_output": fault or "ok"})
