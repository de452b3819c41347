"""The response object of OpenAI's Responses API: the structs render it and make its schema."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from msgspec import Meta, Raw, Struct, field

from agents.dialects.base import RunHead
from agents.dialects.openai_responses.items import RawOutputItem
from agents.dialects.openai_responses.tools import without_secrets
from agents.dialects.wire import Wire
from config.http.documentation.json_types import Count, Shown, component, noted, one_of
from conversations import events
from conversations.events import Usage

_Tool = Annotated[dict[str, Any], noted("A tool of the request, without the credentials of its server.")]
_ToolChoice = Annotated[
    str | dict[str, Any], noted("The `tool_choice` of the request, in OpenAI's form.")
]


class _NoReasoning(Struct, frozen=True):
    effort: None = None
    summary: None = None


class _TextFormat(Struct, frozen=True, tag_field="type", tag="text"):
    pass


class _PlainText(Struct, frozen=True):
    format: _TextFormat = _TextFormat()


class EchoedRequest(Shown, frozen=True, kw_only=True):
    """The members of the request that its response repeats, with OpenAI's defaults."""

    background: bool = False
    instructions: str | None = None
    max_output_tokens: Count | None = None
    max_tool_calls: Count | None = None
    model: str = ""
    parallel_tool_calls: bool = True
    previous_response_id: str | None = None
    reasoning: Annotated[Any, component("ResponsesRequest.Reasoning")] = _NoReasoning()
    service_tier: Literal["default"] = "default"
    store: bool = True
    temperature: float | None = None
    text: Annotated[Any, component("ResponsesRequest.Text")] = _PlainText()
    tool_choice: _ToolChoice = "auto"
    tools: list[_Tool] = field(default_factory=list)
    top_p: float | None = None
    truncation: Literal["auto", "disabled"] = "auto"
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    metadata: dict[str, str] = field(default_factory=dict)


class ResponseError(Shown, frozen=True):
    """The run's failure: this wire has a closed list of codes, so ours is in `type`."""

    code: Literal["rate_limit_exceeded", "invalid_prompt", "server_error"]
    message: str
    type: Annotated[str, noted("The error code of the run.")]


class ResponseIncompleteDetails(Shown, frozen=True):
    reason: Literal["max_output_tokens"] = "max_output_tokens"


class ResponseConversation(Shown, frozen=True):
    id: str


class ResponseInputTokensDetails(Shown, frozen=True):
    cached_tokens: Count
    cache_write_tokens: Count


class ResponseOutputTokensDetails(Shown, frozen=True):
    reasoning_tokens: Count


class ResponseUsage(Shown, frozen=True):
    """The tokens that the provider counted."""

    input_tokens: Count
    input_tokens_details: ResponseInputTokensDetails
    output_tokens: Count
    output_tokens_details: ResponseOutputTokensDetails
    total_tokens: Count


class Response(EchoedRequest, frozen=True):
    """A response in its present state."""

    id: Annotated[str, Meta(pattern="^resp_[0-9a-f]{32}$")]
    object: Literal["response"]
    created_at: Count
    status: Annotated[
        str, one_of("queued", "in_progress", "completed", "incomplete", "failed", "cancelled")
    ]
    completed_at: Count | None
    error: ResponseError | None
    incomplete_details: ResponseIncompleteDetails | None
    conversation: ResponseConversation
    output: list[RawOutputItem]
    usage: ResponseUsage | None


def response_id(run_id: UUID) -> str:
    """Return the id of a run on this wire."""
    return f"resp_{run_id.hex}"


def parse_run_id(text: str) -> str:
    """Return the run's id in a response's id; any other form stays."""
    return text.removeprefix("resp_")


def echo_request(body: Wire) -> Wire:
    """Return the members of the request that its response repeats."""
    kept = {key: body[key] for key in EchoedRequest.__struct_fields__ if body.get(key) is not None}
    kept.pop("service_tier", None)  # the response names the tier that served, and there is one
    return kept | {"tools": [*without_secrets(body["tools"])]} if "tools" in kept else kept


def response(
    head: RunHead,
    status: str,
    output: list[Raw],
    *,
    completed_at: int | None = None,
    problem: events.Problem | None = None,
    usage: Usage | None = None,
) -> Response:
    """Return the whole response object."""
    echo = head.wire.get("echo", {})
    return Response(
        id=response_id(head.run_id),
        object="response",
        created_at=head.created_at_ms // 1000,
        status=status,
        completed_at=completed_at,
        error=None if problem is None else _error(problem),
        incomplete_details=ResponseIncompleteDetails() if status == "incomplete" else None,
        conversation=ResponseConversation(head.wire.get("conversation") or str(head.thread_id)),
        output=output,
        usage=_usage(usage),
        **echo | {"model": echo.get("model") or head.model},
    )


_CODES: Final[dict[str, Literal["rate_limit_exceeded", "invalid_prompt"]]] = {
    "provider_rate_limited": "rate_limit_exceeded",
    "provider_quota_exceeded": "rate_limit_exceeded",
    "provider_bad_request": "invalid_prompt",
}


def _error(problem: events.Problem) -> ResponseError:
    return ResponseError(_CODES.get(problem.code, "server_error"), problem.message, problem.code)


def _usage(counted: Usage | None) -> ResponseUsage | None:
    """Return the tokens that the provider counted; None if it counted none."""
    if counted is None or not (counted.input_tokens or counted.output_tokens):
        return None
    return ResponseUsage(
        counted.input_tokens,
        ResponseInputTokensDetails(counted.cached_tokens, counted.cache_write_tokens),
        counted.output_tokens,
        ResponseOutputTokensDetails(counted.reasoning_tokens),
        counted.input_tokens + counted.output_tokens,
    )
