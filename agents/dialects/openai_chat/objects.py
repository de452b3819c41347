"""The completion object of OpenAI's Chat Completions and its chunks, as plain JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from agents.dialects.base import RunHead
from agents.dialects.steps import ToolCalled
from agents.dialects.wire import Wire
from config import errors
from conversations.events import RunFailed, Usage

_FINISHED: Final = {
    "length": "length",
    "max_tokens": "length",
    "max_output_tokens": "length",
    "content_filter": "content_filter",
    "refusal": "content_filter",
}
_ERRORS: Final[dict[str, type[errors.ParleyError]]] = {
    "provider_rate_limited": errors.TooManyRequests,
    "provider_quota_exceeded": errors.TooManyRequests,
    "budget_exceeded": errors.TooManyRequests,
    "provider_bad_request": errors.InvalidRequest,
    "provider_context_exceeded": errors.InvalidRequest,
    "provider_content_filtered": errors.InvalidRequest,
    "model_not_allowed": errors.InvalidRequest,
    "provider_timeout": errors.Unavailable,
    "provider_unavailable": errors.Unavailable,
    "provider_unreachable": errors.Unavailable,
    "deadline_exceeded": errors.Unavailable,
    "queue_timeout": errors.Unavailable,
    "internal_error": errors.ParleyError,
    "cancelled": errors.Conflict,
    "run_not_stored": errors.Gone,
    "thread_deleted": errors.Gone,
}


def completion_id(run_id: UUID) -> str:
    """Return the id of a run on this wire."""
    return f"chatcmpl-{run_id.hex}"


def failure(failed: RunFailed) -> errors.ParleyError:
    """Return the run's failure as an error with a status; the code is the run's."""
    kind = _ERRORS.get(failed.code, errors.Unavailable if failed.retryable else errors.ParleyError)
    later = 1 if issubclass(kind, errors.Unavailable | errors.TooManyRequests) else None
    return kind(failed.message, code=failed.code, retry_after=later)


def finish_reason(reason: str, *, calls: bool) -> str:
    """Return this wire's word for the end of an answer: it has five, and any other end is its `stop`."""
    found = _FINISHED.get(reason, "stop")
    return "tool_calls" if calls and found == "stop" else found


def completion(head: RunHead, message: Wire, finished: str, usage: Usage) -> Wire:
    """Return the whole answer."""
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finished}
    return {**describe(head, "chat.completion"), "choices": [choice], "usage": usage_counts(usage)}


def message(
    text: str | None, thoughts: str, calls: Sequence[ToolCalled], cited: list[Wire], *, refused: bool
) -> Wire:
    """Return the assistant's message; OpenAI has no `reasoning_content`, but clients read it."""
    fields: Wire = {
        "role": "assistant",
        "content": None if refused else text,
        "refusal": text if refused else None,
        "annotations": cited,
    }
    if thoughts:
        fields["reasoning_content"] = thoughts
    if calls:
        fields["tool_calls"] = [call(one) for one in calls]
    return fields


def call(tool_call: ToolCalled) -> Wire:
    """Return a call that the client answers with a message of the role `tool`."""
    function = {"name": tool_call.name, "arguments": tool_call.arguments}
    return {"id": tool_call.call_id, "type": "function", "function": function}


def usage_counts(usage: Usage) -> Wire:
    """Return the tokens that the provider counted; 0 if it counted none, since clients add them up."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def describe(head: RunHead, kind: str) -> Wire:
    """Return the common members of a completion and of all chunks of its stream."""
    return {
        "id": completion_id(head.run_id),
        "object": kind,
        "created": head.created_at_ms // 1000,
        "model": head.wire.get("model") or head.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }
