"""The completion of OpenAI's Chat Completions and its chunks: structs that make the schemas as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from agents.dialects.artifact_links import UrlCitation
from agents.dialects.base import RunHead
from agents.dialects.steps import ToolCalled
from agents.dialects.wire import template
from config import errors
from config.http.documentation.json_types import Count, Shown, noted
from conversations.events import RunFailed, Usage

FinishReason = Literal["stop", "length", "content_filter", "tool_calls"]
_SHOWN: Final = noted("The model's reasoning, if it is shown.")


class CompletionFunction(Shown, frozen=True):
    name: str
    arguments: Annotated[str, noted("A JSON text.")]


class CompletionToolCall(Shown, frozen=True, kw_only=True):
    """A call that the client answers with a message of the role `tool`."""

    id: str
    type: Literal["function"] = "function"
    function: CompletionFunction


class CompletionAnnotation(Shown, frozen=True, tag_field="type", tag="url_citation"):
    """A file of the run, as a source of the text."""

    url_citation: UrlCitation


class CompletionMessage(Shown, frozen=True, kw_only=True):
    """The assistant's message; OpenAI has no `reasoning_content`, but clients read it."""

    role: Literal["assistant"] = "assistant"
    content: str | None
    refusal: str | None
    annotations: list[CompletionAnnotation]
    reasoning_content: Annotated[str | UnsetType, _SHOWN] = UNSET
    tool_calls: list[CompletionToolCall] | UnsetType = UNSET


class CompletionChoice(Shown, frozen=True, kw_only=True):
    index: Literal[0] = 0
    message: CompletionMessage
    logprobs: None = None
    finish_reason: FinishReason


class CompletionPromptTokensDetails(Shown, frozen=True):
    cached_tokens: Count
    cache_write_tokens: Count
    audio_tokens: Count = 0


class CompletionTokensDetails(Shown, frozen=True):
    reasoning_tokens: Count
    audio_tokens: Count = 0
    accepted_prediction_tokens: Count = 0
    rejected_prediction_tokens: Count = 0


class CompletionUsage(Shown, frozen=True):
    """The tokens that the provider counted; 0 if it counted none, since clients add them up."""

    prompt_tokens: Count
    completion_tokens: Count
    total_tokens: Count
    prompt_tokens_details: CompletionPromptTokensDetails
    completion_tokens_details: CompletionTokensDetails


class Completion(Shown, frozen=True, kw_only=True):
    """The whole answer."""

    id: Annotated[str, Meta(pattern="^chatcmpl-[0-9a-f]{32}$")]
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    service_tier: Literal["default"] = "default"
    system_fingerprint: None = None
    choices: Annotated[list[CompletionChoice], Meta(min_length=1, max_length=1)]
    usage: CompletionUsage


class CompletionDeltaFunction(Shown, frozen=True, kw_only=True):
    name: str | UnsetType = UNSET
    arguments: str


class CompletionDeltaToolCall(Shown, frozen=True, kw_only=True):
    """A call: its id and its name first, then its arguments."""

    index: Count
    id: str | UnsetType = UNSET
    type: Literal["function"] | UnsetType = UNSET
    function: CompletionDeltaFunction


class CompletionDelta(Shown, frozen=True, kw_only=True):
    """What a chunk adds to the message."""

    role: Literal["assistant"] | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    refusal: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType = UNSET
    tool_calls: list[CompletionDeltaToolCall] | UnsetType = UNSET
    annotations: list[CompletionAnnotation] | UnsetType = UNSET


CONTENT: Final = template(CompletionDelta(content=""), b'"content":""')
REASONING: Final = template(CompletionDelta(reasoning_content=""), b'"reasoning_content":""')
"""Templates of the deltas of texts, which are most."""


class CompletionChunkChoice(Shown, frozen=True, kw_only=True):
    index: Literal[0] = 0
    delta: CompletionDelta
    logprobs: None = None
    finish_reason: FinishReason | None = None


_NOTHING: Final = CompletionChunkChoice(delta=CompletionDelta())
_USAGE: Final = noted("Only if the request asks for it, in a last chunk without choices.")


class ChatCompletionChunk(Shown, frozen=True, kw_only=True):
    """A piece of an answer, or its usage."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: Count
    model: str
    service_tier: Literal["default"] = "default"
    system_fingerprint: None = None
    choices: list[CompletionChunkChoice]
    usage: Annotated[CompletionUsage | UnsetType | None, _USAGE] = UNSET


class CompletionError(Shown, frozen=True):
    message: str
    type: str
    param: str | None
    code: str


class CompletionFailed(Shown, frozen=True):
    """The run failed after the stream had begun."""

    error: CompletionError


_FINISHED: Final[dict[str, FinishReason]] = {
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


def finish_reason(reason: str, *, calls: bool) -> FinishReason:
    """Return this wire's word for the end of an answer: it has five, and any other end is its `stop`."""
    found = _FINISHED.get(reason, "stop")
    return "tool_calls" if calls and found == "stop" else found


def completion(
    head: RunHead, message: CompletionMessage, finished: FinishReason, usage: Usage
) -> Completion:
    """Return the whole answer."""
    choice = CompletionChoice(message=message, finish_reason=finished)
    return Completion(**_describe(head), choices=[choice], usage=usage_counts(usage))


def chunk(head: RunHead, *, counts: bool) -> ChatCompletionChunk:
    """Return an empty chunk; `counts` if the last chunk of its stream has the usage."""
    return ChatCompletionChunk(**_describe(head), choices=[_NOTHING], usage=None if counts else UNSET)


def message(
    text: str | None,
    thoughts: str,
    calls: Sequence[ToolCalled],
    cited: list[CompletionAnnotation],
    *,
    refused: bool,
) -> CompletionMessage:
    """Return the assistant's message."""
    return CompletionMessage(
        content=None if refused else text,
        refusal=text if refused else None,
        annotations=cited,
        reasoning_content=thoughts or UNSET,
        tool_calls=[_call(one) for one in calls] or UNSET,
    )


def _call(called: ToolCalled) -> CompletionToolCall:
    function = CompletionFunction(called.name, called.arguments)
    return CompletionToolCall(id=called.call_id, function=function)


def usage_counts(usage: Usage) -> CompletionUsage:
    """Return the tokens in this wire's form."""
    return CompletionUsage(
        usage.input_tokens,
        usage.output_tokens,
        usage.input_tokens + usage.output_tokens,
        CompletionPromptTokensDetails(usage.cached_tokens, usage.cache_write_tokens),
        CompletionTokensDetails(usage.reasoning_tokens),
    )


def _describe(head: RunHead) -> dict[str, Any]:
    """Return the common members of a completion and of all chunks of its stream."""
    return {
        "id": completion_id(head.run_id),
        "created": head.created_at_ms // 1000,
        "model": head.wire.get("model") or head.model,
    }
