"""A run as the events of OpenAI's Responses stream; every frame has its number as its id.

This wire has no event for a cancelled run: the stream ends with `response.incomplete`, whose response
is `cancelled`.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw

from agents.dialects import steps
from agents.dialects.base import Frame, RunHead, id_in_run
from agents.dialects.item_encoder import ItemEncoder
from agents.dialects.openai_responses import objects
from agents.dialects.openai_responses.client_tools import tool_name
from agents.dialects.steps import Item
from agents.dialects.wire import Wire, encode_json
from conversations import events

_LAST: Final[dict[str, str]] = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
    "cancelled": "response.incomplete",
    "failed": "response.failed",
    "rejected": "response.failed",
}


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
        name, form = (_REASONING_DELTA, _REASONING) if item.is_reasoning else (_TEXT_DELTA, _TEXT)
        return Frame(name, form % (number, item.prefix, encode_json(text)), number)

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
            case steps.ApprovalRequested(asked_id, name, arguments, server_label):
                request = {"id": asked_id, "type": "mcp_approval_request", "arguments": arguments}
                label = server_label or objects.SERVER_LABEL
                self._whole_item(request | {"name": name, "server_label": label})
            case steps.ToolsListed(listed_id, server_label, tools):
                listed = {"id": listed_id, "type": "mcp_list_tools", "server_label": server_label}
                self._whole_item(listed | {"tools": tools, "error": None})
            case steps.Ended(status, usage, problem):
                self._end(status, usage, problem)

    # messages and reasoning

    def _open(self, item: Item) -> None:
        """Announce an item; the beginning that all its deltas share is made once."""
        item.place = self._add(objects.output_item(item, "in_progress"))
        where = _where(item)
        if item.is_reasoning:
            part = {"part": objects.summary_part("")}
            self._send("response.reasoning_summary_part.added", where | part)
        else:
            self._send("response.content_part.added", where | {"part": objects.text_part("")})
        item.prefix = b"," + encode_json(where)[1:-1]

    def _close(self, item: Item, status: str) -> None:
        text, where = item.text, _where(item)
        if item.is_reasoning:
            part = objects.summary_part(text)
            self._send("response.reasoning_summary_text.done", where | {"text": text})
            self._send("response.reasoning_summary_part.done", where | {"part": part})
        else:
            cited = objects.citations(item, at=len(text))
            part = objects.text_part(text, cited)
            for number, annotation in enumerate(cited):
                fields = {"annotation_index": number, "annotation": annotation}
                self._send("response.output_text.annotation.added", where | fields)
            self._send("response.output_text.done", where | {"text": text, "logprobs": []})
            self._send("response.content_part.done", where | {"part": part})
        self._done(item.place, objects.output_item(item, status, part))

    # tools

    def _call(self, call: steps.ToolCalled) -> None:
        if call.kind == "frontend":
            self._client_call(call)
            return
        place = self._add(objects.server_call(call, "in_progress", arguments=""))
        self._waiting[call.id] = place, call
        where = {"item_id": f"mcp_{call.id}", "output_index": place}
        self._send("response.mcp_call.in_progress", where)
        self._stream("response.mcp_call_arguments", where, "arguments", call.arguments)

    def _client_call(self, call: steps.ToolCalled) -> None:
        tool = tool_name(self._head.wire, call.name)
        identity = (id_in_run(call.id, self._head.run_id.hex), call.call_id, tool)
        done = objects.client_call(*identity, call.arguments, "completed")
        place = self._add(objects.client_call(*identity, "", "in_progress"))
        where = {"item_id": done["id"], "output_index": place}
        if tool.is_custom:
            self._stream("response.custom_tool_call_input", where, "input", done["input"])
        else:
            self._stream("response.function_call_arguments", where, "arguments", call.arguments)
        self._done(place, done)

    def _stream(self, name: str, where: Wire, key: str, text: str) -> None:
        """Send a call's arguments, which are known as a whole: as one delta, then under their key."""
        self._send(f"{name}.delta", where | {"delta": text})
        self._send(f"{name}.done", where | {key: text})

    def _answer(self, call: steps.ToolCalled, output: str, problem: events.Problem | None) -> None:
        place, _ = self._waiting.pop(call.id)
        status, text = ("failed", None) if problem else ("completed", output)
        self._send(f"response.mcp_call.{status}", {"item_id": f"mcp_{call.id}", "output_index": place})
        self._done(place, objects.server_call(call, status, output=text, problem=problem))

    def _whole_item(self, item: Wire) -> None:
        self._done(self._add(item), item)

    # the end

    def _end(self, status: str, usage: events.Usage, problem: events.Problem | None) -> None:
        for place, call in [*self._waiting.values()]:
            self._done(place, objects.server_call(call, "incomplete"))
        self._status = "failed" if status == "rejected" else status
        completed_at = self._at // 1000 if status == "completed" else None
        self._response = self._whole(
            self._status, completed_at=completed_at, problem=problem, usage=usage
        )
        self._send(_LAST[status], {"response": Raw(self._response)})

    def _whole(self, status: str, **more: Any) -> bytes:
        done = [Raw(item) for item in self._output if item]
        return encode_json(objects.response(self._head, status, done, **more))

    # out

    def _add(self, item: Wire) -> int:
        place = len(self._output)
        self._output.append(b"")
        self._send("response.output_item.added", {"output_index": place, "item": item})
        return place

    def _done(self, place: int, item: Wire) -> None:
        self._output[place] = encode_json(item)
        whole = Raw(self._output[place])
        self._send("response.output_item.done", {"output_index": place, "item": whole})

    def _send(self, name: str, more: Wire) -> None:
        self._put(encode_json({"type": name, "sequence_number": self._number} | more), name)


def _where(item: Item) -> Wire:
    """Return the place of an item's text: its one part."""
    index = "summary_index" if item.is_reasoning else "content_index"
    return {"item_id": item.wire_id, "output_index": item.place, index: 0}


_TEXT_DELTA: Final = "response.output_text.delta"
_TEXT: Final = b'{"type":"response.output_text.delta","sequence_number":%d%b,"delta":%b,"logprobs":[]}'
_REASONING_DELTA: Final = "response.reasoning_summary_text.delta"
_REASONING: Final = b'{"type":"response.reasoning_summary_text.delta","sequence_number":%d%b,"delta":%b}'
