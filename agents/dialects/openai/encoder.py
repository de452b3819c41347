"""A run as the events of OpenAI's Responses stream; every frame has its number as its id.

This wire has no event for a cancelled run: the stream ends with `response.incomplete`, whose response
is `cancelled`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from agents.dialects import steps
from agents.dialects.base import Frame, RunHead
from agents.dialects.openai import shape
from agents.dialects.openai.client_tools import tool_name
from agents.dialects.step_order import StepOrder
from agents.dialects.steps import Item
from conversations import events
from conversations.events import MessageDelta, RunEvent

Wire = dict[str, Any]
_json: Final = msgspec.json.Encoder().encode
_LAST: Final[dict[str, str]] = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",
    "failed": "response.failed",
    "rejected": "response.failed",
}
_STATUS: Final = {"rejected": "failed"}


class ResponsesEncoder:
    """One reader's view of one run."""

    def __init__(self, head: RunHead) -> None:
        self._head = head
        self._order = StepOrder(head.run_id.hex)
        self._number = 0
        self._frames: list[Frame] = []
        self._output: list[bytes] = []
        self._waiting: dict[str, tuple[int, steps.ToolCalled]] = {}
        self._status = "queued"
        self._at = 0
        self._response = b""

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """Return the frames of the next event; none after the last."""
        fact = event.fact
        if type(fact) is MessageDelta:
            item = self._order.open_message(fact.message_id)
            if item is not None:
                return (self._delta(item, fact.text),) if fact.text else ()
        self._at = event.at
        for step in self._order.take(fact):
            self._render(step)
        frames, self._frames = self._frames, []
        return frames

    def heartbeat(self, at_ms: int) -> Frame | None:
        """Return None: silence on this wire is filled with comments."""
        return None

    def answer(self) -> bytes:
        """Return the response in its present state."""
        return self._response or self._whole(self._status)

    def _delta(self, item: Item, text: str) -> Frame:
        """Return a delta, on the hot path: put together by hand, since most frames are deltas."""
        item.add(text)
        number = self._number
        self._number = number + 1
        return Frame(*_text_delta(item, number, text), number)

    def _render(self, step: steps.Step) -> None:
        match step:
            case steps.Created():
                self._send("response.created", {"response": Raw(self._whole("queued"))})
            case steps.Started():
                self._status = "in_progress"
                self._send("response.in_progress", {"response": Raw(self._whole("in_progress"))})
            case steps.Opened(item):
                self._open(item)
            case steps.TextAdded(item, text):
                self._put(*_text_delta(item, self._number, text))
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
            case steps.ApprovalRequested(asked_id, name, arguments, server_label):
                request = {"id": asked_id, "type": "mcp_approval_request", "arguments": arguments}
                label = server_label or shape.SERVER_LABEL
                self._whole_item(request | {"name": name, "server_label": label})
            case steps.ToolsListed(listed_id, server_label, tools):
                listed = {"id": listed_id, "type": "mcp_list_tools", "server_label": server_label}
                self._whole_item(listed | {"tools": tools, "error": None})
            case steps.Ended(status, usage, problem):
                self._end(status, usage, problem)

    # messages and reasoning

    def _open(self, item: Item) -> None:
        """Announce an item; the beginning that all its deltas share is made once."""
        if item.is_reasoning:
            item_id, part = f"rs_{item.id}", shape.summary_part("")
            item.place = self._add(shape.reasoning(item_id, "in_progress", None))
            where = {"item_id": item_id, "output_index": item.place, "summary_index": 0}
            self._send("response.reasoning_summary_part.added", where | {"part": part})
        else:
            item_id, part = f"msg_{item.id}", shape.text_part("")
            item.place = self._add(shape.message(item_id, "in_progress", None))
            where = {"item_id": item_id, "output_index": item.place, "content_index": 0}
            self._send("response.content_part.added", where | {"part": part})
        item.prefix = b"," + _json(where)[1:-1]

    def _close(self, item: Item, status: str) -> None:
        text, place = item.text, item.place
        if item.is_reasoning:
            item_id, part = f"rs_{item.id}", shape.summary_part(text)
            where: Wire = {"item_id": item_id, "output_index": place, "summary_index": 0}
            self._send("response.reasoning_summary_text.done", where | {"text": text})
            self._send("response.reasoning_summary_part.done", where | {"part": part})
            self._done(place, shape.reasoning(item_id, status, text))
            return
        cited = shape.citations(item, at=len(text))
        item_id, part = f"msg_{item.id}", shape.text_part(text, cited)
        where = {"item_id": item_id, "output_index": place, "content_index": 0}
        for number, annotation in enumerate(cited):
            fields = {"annotation_index": number, "annotation": annotation}
            self._send("response.output_text.annotation.added", where | fields)
        self._send("response.output_text.done", where | {"text": text, "logprobs": []})
        self._send("response.content_part.done", where | {"part": part})
        self._done(place, shape.message(item_id, status, part))

    # tools

    def _call(self, call: steps.ToolCalled) -> None:
        if call.kind == "frontend":
            self._client_call(call)
            return
        item_id = f"mcp_{call.id}"
        place = self._add(shape.server_call(call, "in_progress", arguments=""))
        self._waiting[call.id] = place, call
        where = {"item_id": item_id, "output_index": place}
        self._send("response.mcp_call.in_progress", where)
        self._arguments("response.mcp_call_arguments", item_id, place, call)

    def _client_call(self, call: steps.ToolCalled) -> None:
        tool = tool_name(self._head.wire, call.name)
        identity = (self._unique(call.id), call.call_id, tool)
        done = shape.client_call(*identity, call.arguments, "completed")
        place = self._add(shape.client_call(*identity, "", "in_progress"))
        if tool.is_custom:
            where: Wire = {"item_id": done["id"], "output_index": place}
            name = "response.custom_tool_call_input"
            self._send(f"{name}.delta", where | {"delta": done["input"]})
            self._send(f"{name}.done", where | {"input": done["input"]})
        else:
            self._arguments("response.function_call_arguments", done["id"], place, call)
        self._done(place, done)

    def _arguments(self, name: str, item_id: str, place: int, call: steps.ToolCalled) -> None:
        where: Wire = {"item_id": item_id, "output_index": place}
        self._send(f"{name}.delta", where | {"delta": call.arguments})
        self._send(f"{name}.done", where | {"arguments": call.arguments})

    def _answer(self, call: steps.ToolCalled, output: str, problem: events.Problem | None) -> None:
        place, _ = self._waiting.pop(call.id)
        where = {"item_id": f"mcp_{call.id}", "output_index": place}
        self._send(f"response.mcp_call.{'failed' if problem else 'completed'}", where)
        if problem is not None:
            self._done(place, shape.server_call(call, "failed", problem=problem))
        else:
            self._done(place, shape.server_call(call, "completed", output=output))

    def _whole_item(self, item: Wire) -> None:
        self._done(self._add(item), item)

    # the end

    def _end(self, status: str, usage: events.Usage, problem: events.Problem | None) -> None:
        for place, call in [*self._waiting.values()]:
            self._done(place, shape.server_call(call, "incomplete"))
        self._status = _STATUS.get(status, status)
        completed_at = self._at // 1000 if status == "completed" else None
        self._response = self._whole(
            self._status, completed_at=completed_at, problem=problem, usage=usage
        )
        self._send(_LAST[status], {"response": Raw(self._response)})

    def _whole(self, status: str, **more: Any) -> bytes:
        done = [Raw(item) for item in self._output if item]
        return _json(shape.response(self._head, status, done, **more))

    def _unique(self, call_id: str) -> str:
        """Return an id that contains the run: a client may send it as an `item_reference`."""
        run = self._head.run_id.hex
        return call_id if run in call_id else f"{call_id}-{run}"

    # out

    def _add(self, item: Wire) -> int:
        place = len(self._output)
        self._output.append(b"")
        self._send("response.output_item.added", {"output_index": place, "item": item})
        return place

    def _done(self, place: int, item: Wire) -> None:
        self._output[place] = _json(item)
        whole = Raw(self._output[place])
        self._send("response.output_item.done", {"output_index": place, "item": whole})

    def _send(self, name: str, more: Wire) -> None:
        self._put(name, _json({"type": name, "sequence_number": self._number} | more))

    def _put(self, name: str, data: bytes) -> None:
        self._frames.append(Frame(name, data, self._number))
        self._number += 1


def _text_delta(item: Item, number: int, text: str) -> tuple[str, bytes]:
    if item.is_reasoning:
        return _REASONING_DELTA, _REASONING % (number, item.prefix, _json(text))
    return _TEXT_DELTA, _TEXT % (number, item.prefix, _json(text))


_TEXT_DELTA: Final = "response.output_text.delta"
_TEXT: Final = b'{"type":"response.output_text.delta","sequence_number":%d%b,"delta":%b,"logprobs":[]}'
_REASONING_DELTA: Final = "response.reasoning_summary_text.delta"
_REASONING: Final = b'{"type":"response.reasoning_summary_text.delta","sequence_number":%d%b,"delta":%b}'
