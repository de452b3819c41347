"""The ends of a run and of its tool calls, in AG-UI's words (specs/ag-ui.md §1.1)."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from agents.dialects.ag_ui.event_types import (
    AgUiInterrupt,
    AgUiInterrupted,
    AgUiOutcome,
    AgUiSuccess,
    AgUiTokenUsage,
)
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


def outcome(completed: events.RunCompleted, pending: list[str], *, modern: bool) -> AgUiOutcome:
    """Return the outcome of a run that was not stopped and did not fail."""
    if completed.interrupts:
        return AgUiInterrupted([interrupt(one, at) for at, one in enumerate(completed.interrupts, 1)])
    return AgUiSuccess(pending if pending and modern else UNSET)


def interrupt(stored: Wire, place: int) -> AgUiInterrupt:
    """Return an interrupt with all that a client needs and nothing that it refuses."""
    return AgUiInterrupt(
        id=optional_text(stored, "id") or f"interrupt-{place}",
        reason=optional_text(stored, "reason") or "input_required",
        message=optional_text(stored, "message") or UNSET,
        tool_call_id=optional_text(stored, "toolCallId") or UNSET,
        expires_at=optional_text(stored, "expiresAt") or UNSET,
        response_schema=_optional_object(stored, "responseSchema"),
        metadata=_optional_object(stored, "metadata"),
    )


def _optional_object(member: Wire, key: str) -> dict[str, Any] | UnsetType:
    value = member.get(key)
    return value if isinstance(value, dict) else UNSET


def usage(counted: events.Usage, routed: events.ModelRouted | None) -> list[AgUiTokenUsage] | UnsetType:
    """Return the tokens that the provider counted; UNSET if it counted none (zero is not absent)."""
    if not (counted.input_tokens or counted.output_tokens):
        return UNSET
    found = AgUiTokenUsage(
        provider=routed.provider if routed else UNSET,
        model=routed.model if routed else UNSET,
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        total_tokens=counted.input_tokens + counted.output_tokens,
        cached_input_tokens=counted.cached_tokens or UNSET,
        reasoning_tokens=counted.reasoning_tokens or UNSET,
    )
    return [found]
