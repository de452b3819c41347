"""A run as the events of OpenAI's Responses stream; every frame has its number as its id.

This wire has no event for a cancelled run: the stream ends with `response.incomplete`, whose response
is `cancelled`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec

from msgspec import Raw

from agents.dialects import steps
from agents.dialects.base import Frame, RunHead, id_in_run
from agents.dialects.item_encoder import ItemEncoder
from agents.dialects.openai_responses import items, objects
from agents.dialects.openai_responses import stream_events as sent
from agents.dialects.openai_responses.client_tools import tool_name
from agents.dialects.openai_responses.items import OutputItem
from agents.dialects.steps import Item
from agents.dialects.wire import encode_json, template
from conversations import events

_P = ParamSpec("_P")
_LAST: Final = {
    "completed": sent.ResponseCompletedEvent,
    "incomplete": sent.ResponseIncompleteEvent,
    "cancelled": sent.ResponseIncompleteEvent,
    "failed": sent.ResponseFailedEvent,
    "rejected": sent.ResponseFailedEvent,
}
_TEXT_DELTA: Final = sent.NAMES[sent.ResponseTextDeltaEvent]
_REASONING_DELTA: Final = sent.NAMES[sent.ResponseReasoningSummaryTextDeltaEvent]


class ResponsesEncoder(ItemEncoder):
    """One reader's view of one run."""

    def __init__(self, head: RunHead) -> None:
        super().__init__(head)
        self._waiting: dict[str, tuple[int, steps.ToolCalled]] = {}

    def answer(self) -> bytes:
        """Return the response in its present state."""
        return self._response or self._whole(self._status)

    def _delta(self, item: Item, text: str) -> Frame:
        number = self._number
        self._number = number + 1
        name = _REASONING_DELTA if item.is_reasoning else _TEXT_DELTA
        return Frame(name, item.template % (number, encode_json(text)), number)

    def _render(self, step: steps.Step) -> None:
        match step:
            case steps.Created():
                self._send(sent.ResponseCreatedEvent, Raw(self._whole("queued")))
            case steps.Started():
                self._status = "in_progress"
                self._send(sent.ResponseInProgressEvent, Raw(self._whole("in_progress")))
            case steps.Opened(item):
                self._open(item)
            case steps.TextAdded(item, text):
                self._frames.append(self._delta(item, text))
            case steps.Closed(item, status):
                self._close(item, "completed" if status == "completed" else "incomplete")
            case steps.FileMade(artifact):
                item = Item(f"file-{artifact.artifact_id}-{self._head.run_id.hex}", "assistant")
                item.files = (artifact,)
                self._open(item)
                self._close(item, "completed")
            case steps.ToolCalled() as call:
                self._call(call)
            case steps.ToolAnswered(call, output, problem):
                self._answer(call, output, problem)
            case steps.ApprovalRequested(asked_id, name, arguments, label):
                label = label or items.SERVER_LABEL
                self._whole_item(
                    items.McpApprovalRequest(
                        id=asked_id, arguments=arguments, name=name, server_label=label
                    )
                )
            case steps.ToolsListed(listed_id, label, tools):
                self._whole_item(items.McpListTools(id=listed_id, server_label=label, tools=tools))
            case steps.Ended(status, usage, problem):
                self._end(status, usage, problem)

    # messages and reasoning

    def _open(self, item: Item) -> None:
        """Announce an item; the template of all its deltas is made once."""
        delta: sent.StreamEvent
        if item.is_reasoning:
            item.place = self._add(items.reasoning(item, "in_progress"))
            where, summary = _where(item), items.ResponseSummaryText("")
            self._send(sent.ResponseReasoningSummaryPartAddedEvent, *where, summary)
            delta = sent.ResponseReasoningSummaryTextDeltaEvent(0, *where, "")
        else:
            item.place = self._add(items.message(item, "in_progress"))
            where, part = _where(item), items.ResponseOutputText("")
            self._send(sent.ResponseContentPartAddedEvent, *where, part)
            delta = sent.ResponseTextDeltaEvent(0, *where, "")
        item.template = template(delta, b'"sequence_number":0', b'"delta":""')

    def _close(self, item: Item, status: items.ItemStatus) -> None:
        text, where = item.text, _where(item)
        if item.is_reasoning:
            summary = items.ResponseSummaryText(text)
            self._send(sent.ResponseReasoningSummaryTextDoneEvent, *where, text)
            self._send(sent.ResponseReasoningSummaryPartDoneEvent, *where, summary)
            self._done(item.place, items.reasoning(item, status, summary))
            return
        part = items.ResponseOutputText(text, items.citations(item, at=len(text)))
        for number, one in enumerate(part.annotations):
            self._send(sent.ResponseOutputTextAnnotationAddedEvent, *where, number, one)
        self._send(sent.ResponseTextDoneEvent, *where, text)
        self._send(sent.ResponseContentPartDoneEvent, *where, part)
        self._done(item.place, items.message(item, status, part))

    # tools

    def _call(self, call: steps.ToolCalled) -> None:
        if call.kind == "frontend":
            self._client_call(call)
            return
        begun = items.server_call(call, "in_progress", arguments="")
        place = self._add(begun)
        self._waiting[call.id] = place, call
        self._send(sent.ResponseMcpCallInProgressEvent, begun.id, place)
        self._send(sent.ResponseMcpCallArgumentsDeltaEvent, begun.id, place, call.arguments)
        self._send(sent.ResponseMcpCallArgumentsDoneEvent, begun.id, place, call.arguments)

    def _client_call(self, call: steps.ToolCalled) -> None:
        """Send a call, whose arguments are known as a whole: as one delta, then under their key."""
        tool = tool_name(self._head.wire, call.name)
        identity = (id_in_run(call.id, self._head.run_id.hex), call.call_id, tool)
        done = items.client_call(*identity, call.arguments, "completed")
        place = self._add(items.client_call(*identity, "", "in_progress"))
        match done:
            case items.ResponseCustomToolCall(id=key, input=text):
                self._send(sent.ResponseCustomToolCallInputDeltaEvent, key, place, text)
                self._send(sent.ResponseCustomToolCallInputDoneEvent, key, place, text)
            case items.ResponseFunctionToolCall(id=key, arguments=text):
                self._send(sent.ResponseFunctionCallArgumentsDeltaEvent, key, place, text)
                self._send(sent.ResponseFunctionCallArgumentsDoneEvent, key, place, text)
        self._done(place, done)

    def _answer(self, call: steps.ToolCalled, output: str, problem: events.Problem | None) -> None:
        place, _ = self._waiting.pop(call.id)
        if problem:
            done = items.server_call(call, "failed", problem=problem)
            self._send(sent.ResponseMcpCallFailedEvent, done.id, place)
        else:
            done = items.server_call(call, "completed", output=output)
            self._send(sent.ResponseMcpCallCompletedEvent, done.id, place)
        self._done(place, done)

    def _whole_item(self, item: OutputItem) -> None:
        self._done(self._add(item), item)

    # the end

    def _end(self, status: str, usage: events.Usage, problem: events.Problem | None) -> None:
        for place, call in [*self._waiting.values()]:
            self._done(place, items.server_call(call, "incomplete"))
        self._status = "failed" if status == "rejected" else status
        completed_at = self._at // 1000 if status == "completed" else None
        self._response = self._whole(
            self._status, completed_at=completed_at, problem=problem, usage=usage
        )
        self._send(_LAST[status], Raw(self._response))

    def _whole(self, status: str, **more: Any) -> bytes:
        done = [Raw(item) for item in self._output if item]
        return encode_json(objects.response(self._head, status, done, **more))

    # out

    def _add(self, item: OutputItem) -> int:
        place = len(self._output)
        self._output.append(b"")
        self._send(sent.ResponseOutputItemAddedEvent, place, Raw(encode_json(item)))
        return place

    def _done(self, place: int, item: OutputItem) -> None:
        whole = self._output[place] = encode_json(item)
        self._send(sent.ResponseOutputItemDoneEvent, place, Raw(whole))

    def _send(
        self,
        kind: Callable[Concatenate[int, _P], sent.StreamEvent],
        *members: _P.args,
        **named: _P.kwargs,
    ) -> None:
        """Send an event of this kind under the next number."""
        event = kind(self._number, *members, **named)
        self._put(encode_json(event), sent.NAMES[type(event)])


def _where(item: Item) -> tuple[str, int, sent.First]:
    """Return the place of an item's text: its one part."""
    return item.wire_id, item.place, 0
