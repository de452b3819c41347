"""The events of a Responses stream: the structs render them and make their schemas."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Raw

from agents.dialects.openai_responses.items import (
    RawOutputItem,
    ResponseOutputText,
    ResponseSummaryText,
    ResponseUrlCitation,
)
from config.http.documentation.json_types import Count, Shown, component

First = Literal[0]  # the index of the only text of an item


class StreamEvent(Shown, frozen=True, tag_field="type"):
    """The base of the events: the type, then the number in the stream."""

    sequence_number: Count


class _OfResponse(StreamEvent, frozen=True):
    response: Annotated[Raw, component("Response")]


class ResponseCreatedEvent(_OfResponse, frozen=True, tag="response.created"):
    """The run is stored."""


class ResponseInProgressEvent(_OfResponse, frozen=True, tag="response.in_progress"):
    """The run has begun."""


class ResponseCompletedEvent(_OfResponse, frozen=True, tag="response.completed"):
    """The run has ended well."""


class ResponseIncompleteEvent(_OfResponse, frozen=True, tag="response.incomplete"):
    """The run was cancelled, or its answer is too long."""


class ResponseFailedEvent(_OfResponse, frozen=True, tag="response.failed"):
    """The run has failed."""


class _WithItem(StreamEvent, frozen=True):
    output_index: Count
    item: RawOutputItem


class ResponseOutputItemAddedEvent(_WithItem, frozen=True, tag="response.output_item.added"):
    """An item begins."""


class ResponseOutputItemDoneEvent(_WithItem, frozen=True, tag="response.output_item.done"):
    """An item is complete."""


class _OfItem(StreamEvent, frozen=True):
    item_id: str
    output_index: Count


class _OfText(_OfItem, frozen=True):
    content_index: First


class ResponseContentPartAddedEvent(_OfText, frozen=True, tag="response.content_part.added"):
    part: ResponseOutputText


class ResponseContentPartDoneEvent(_OfText, frozen=True, tag="response.content_part.done"):
    part: ResponseOutputText


class ResponseTextDeltaEvent(_OfText, frozen=True, tag="response.output_text.delta"):
    delta: str
    logprobs: tuple[()] = ()


class ResponseTextDoneEvent(_OfText, frozen=True, tag="response.output_text.done"):
    text: str
    logprobs: tuple[()] = ()


class ResponseOutputTextAnnotationAddedEvent(
    _OfText, frozen=True, tag="response.output_text.annotation.added"
):
    annotation_index: Count
    annotation: ResponseUrlCitation


class _OfSummary(_OfItem, frozen=True):
    summary_index: First


class ResponseReasoningSummaryPartAddedEvent(
    _OfSummary, frozen=True, tag="response.reasoning_summary_part.added"
):
    part: ResponseSummaryText


class ResponseReasoningSummaryPartDoneEvent(
    _OfSummary, frozen=True, tag="response.reasoning_summary_part.done"
):
    part: ResponseSummaryText


class ResponseReasoningSummaryTextDeltaEvent(
    _OfSummary, frozen=True, tag="response.reasoning_summary_text.delta"
):
    delta: str


class ResponseReasoningSummaryTextDoneEvent(
    _OfSummary, frozen=True, tag="response.reasoning_summary_text.done"
):
    text: str


class ResponseMcpCallInProgressEvent(_OfItem, frozen=True, tag="response.mcp_call.in_progress"):
    """A call of one of our tools begins."""


class ResponseMcpCallCompletedEvent(_OfItem, frozen=True, tag="response.mcp_call.completed"):
    """A call of one of our tools has its output."""


class ResponseMcpCallFailedEvent(_OfItem, frozen=True, tag="response.mcp_call.failed"):
    """A call of one of our tools has failed."""


class ResponseMcpCallArgumentsDeltaEvent(_OfItem, frozen=True, tag="response.mcp_call_arguments.delta"):
    delta: str


class ResponseMcpCallArgumentsDoneEvent(_OfItem, frozen=True, tag="response.mcp_call_arguments.done"):
    arguments: str


class ResponseFunctionCallArgumentsDeltaEvent(
    _OfItem, frozen=True, tag="response.function_call_arguments.delta"
):
    delta: str


class ResponseFunctionCallArgumentsDoneEvent(
    _OfItem, frozen=True, tag="response.function_call_arguments.done"
):
    arguments: str


class ResponseCustomToolCallInputDeltaEvent(
    _OfItem, frozen=True, tag="response.custom_tool_call_input.delta"
):
    delta: str


class ResponseCustomToolCallInputDoneEvent(
    _OfItem, frozen=True, tag="response.custom_tool_call_input.done"
):
    input: str


EVENTS: Final[tuple[Any, ...]] = tuple(
    kind for name, kind in [*globals().items()] if name.startswith("Response") and name.endswith("Event")
)
NAMES: Final[dict[type[StreamEvent], str]] = {kind: kind.__struct_config__.tag for kind in EVENTS}
"""The type of each event, which is the name of its frame as well."""
