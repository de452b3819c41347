"""The ends of a run and of its tool calls, in AG-UI's words (specs/ag-ui.md §1.1)."""

from __future__ import annotations

from typing import Any

from agents.dialects.wire import Wire, json_text, optional_text
from conversations import events

_FAILED = events.Problem("failed", "The tool failed.")


def answer_text(result: Any, problem: events.Problem | None, *, ok: bool) -> str:
    """Return a tool's answer as its message's text: JSON of the result or of `{"error": …}`."""
    if problem is None and result is None and not ok:
        problem = _FAILED
    if problem is not None:
        return json_text({"error": problem})
    return json_text({} if result is None else result)


def outcome_fields(
    completed: events.RunCompleted,
    routed: events.ModelRouted | None,
    pending: list[str],
    *,
    modern: bool,
) -> Wire:
    """Return the outcome and the usage of a run that was not stopped and did not fail."""
    found = usage(completed.usage, routed)
    return {"outcome": _outcome(completed, pending, modern=modern)} | (
        {"usage": [found]} if found else {}
    )


def _outcome(completed: events.RunCompleted, pending: list[str], *, modern: bool) -> Wire:
    interrupts = [interrupt(one, place) for place, one in enumerate(completed.interrupts, 1)]
    if interrupts:
        return {"type": "interrupt", "interrupts": interrupts}
    if pending and modern:
        return {"type": "success", "pendingToolCallIds": pending}
    return {"type": "success"}


_TEXTS = ("message", "toolCallId", "expiresAt")
_OBJECTS = ("responseSchema", "metadata")


def interrupt(stored: Wire, place: int) -> Wire:
    """Return an interrupt with all that a client needs and nothing that it refuses."""
    made: Wire = {"id": optional_text(stored, "id") or f"interrupt-{place}"}
    made["reason"] = optional_text(stored, "reason") or "input_required"
    made |= {key: stored[key] for key in _TEXTS if optional_text(stored, key)}
    return made | {key: stored[key] for key in _OBJECTS if isinstance(stored.get(key), dict)}


def usage(counted: events.Usage, routed: events.ModelRouted | None) -> Wire | None:
    """Return the tokens that the provider counted; None if it counted none (zero is not absent)."""
    if not (counted.input_tokens or counted.output_tokens):
        return None
    fields: Wire = {"provider": routed.provider, "model": routed.model} if routed else {}
    fields |= {
        "inputTokens": counted.input_tokens,
        "outputTokens": counted.output_tokens,
        "totalTokens": counted.input_tokens + counted.output_tokens,
    }
    if counted.cached_tokens:
        fields["cachedInputTokens"] = counted.cached_tokens
    if counted.reasoning_tokens:
        fields["reasoningTokens"] = counted.reasoning_tokens
    return fields
