"""A run as the Agent API's stream: sequence (a) of specs/agent-api.md, numbered from 0.

Every object is on the wire what `model_dump_json()` of the reference's models gives. What has been
sent as done is kept as bytes and stands so, with its own number, in the objects that hold it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from agents.dialects import steps
from agents.dialects.base import Frame, RunHead
from agents.dialects.orderly import Orderly
from agents.dialects.steps import Item, Status
from conversations import events
from conversations.events import MessageDelta, RunEvent, Usage
from conversations.usage import usd

Wire = dict[str, Any]
_json: Final = msgspec.json.Encoder().encode
_WORDS: Final[dict[Status, str]] = {"cancelled": "canceled"}
_CALLS: Final[dict[events.ToolKind, str]] = {
    "function": "plugin_call",
    "plugin": "plugin_call",
    "mcp": "mcp_call",
    "frontend": "component_call",
    "component": "component_call",
}


class AgentApiEncoder:
    """One reader's view of one run; every frame has its number as its id."""

    def __init__(self, head: RunHead) -> None:
        self._head = head
        self._order = Orderly(head.run_id.hex)
        self._number = 0
        self._frames: list[Frame] = []
        self._output: list[bytes] = []
        self._status = "queued"
        self._problem: events.Problem | None = None
        self._usage: Wire | None = None
        self._at = 0
        self._response = b""

    def feed(self, event: RunEvent) -> Sequence[Frame]:
        """The frames of the next event; none after the last."""
        fact = event.fact
        if type(fact) is MessageDelta:
            item = self._order.speaking(fact.message_id)
            if item is not None:
                return (self._delta(item, fact.text),) if fact.text else ()
        self._at = event.at
        for step in self._order.take(fact):
            self._render(step)
        frames, self._frames = self._frames, []
        return frames

    def heartbeat(self, at_ms: int) -> Frame | None:
        """Nothing: silence on this wire is filled with comments."""
        return None

    def answer(self) -> bytes:
        """The response as it stands."""
        return self._response or self._whole(self._output, max(self._number - 1, 0))

    def _delta(self, item: Item, text: str) -> Frame:
        """The hot path: put together by hand, since most of what is sent are deltas."""
        item.add(text)
        number = self._number
        self._number = number + 1
        return Frame("", b'{"sequence_number":%d%b%b}' % (number, item.prefix, _json(text)), number)

    def _render(self, step: steps.Step) -> None:
        match step:
            case steps.Created():
                self._say_response("created")
            case steps.Started():
                self._say_response("in_progress")
            case steps.Opened(item):
                self._open(item)
            case steps.Said(item, text):
                value = _json(text)
                self._send(b'{"sequence_number":%d%b%b}' % (self._number, item.prefix, value))
            case steps.Closed(item, status, problem):
                self._close(item, _WORDS.get(status, status), problem)
            case steps.Called() as call:
                self._call(call)
            case steps.Answered(call, output):
                told = {"call_id": call.call_id, "name": call.name, "output": output}
                kind = f"{_CALLS[call.kind]}_output"
                self._tell(f"output_{call.id}", kind, "tool", told)
            case steps.ApprovalAsked(asked_id, name, arguments, server_label):
                asked = {
                    "id": asked_id,
                    "arguments": arguments,
                    "name": name,
                    "server_label": server_label,
                }
                self._tell(f"approval_{asked_id}", "mcp_approval_request", "assistant", asked)
            case steps.ToolsListed(listed_id, server_label, tools):
                listed = {
                    "id": listed_id,
                    "server_label": server_label,
                    "tools": tools,
                    "error": None,
                }
                self._tell(listed_id, "mcp_list_tools", "assistant", listed)
            case steps.Ended(status, usage, problem):
                self._end(_WORDS.get(status, status), usage, problem)

    # messages

    def _open(self, item: Item) -> None:
        """Announce a message; the beginning that all its deltas share is made once."""
        content = self._content("in_progress", "text", _wire_id(item), {"text": ""}, delta=True)
        item.prefix = content[content.index(b',"object"') : -len(b'""}')]
        item.place = len(self._output)
        self._output.append(b"")
        self._say_message(item, "in_progress", None)

    def _close(self, item: Item, status: str, problem: events.Problem | None) -> None:
        told = {"text": item.text or None}
        content = self._send(self._content(status, "text", _wire_id(item), told, problem=problem))
        self._output[item.place] = self._say_message(item, status, [Raw(content)], problem)

    def _call(self, call: steps.Called) -> None:
        told: Wire = {"call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        if call.kind == "mcp":
            told = {
                "call_id": call.call_id,
                "arguments": call.arguments,
                "name": call.name,
                "server_label": call.server_label or call.name.rpartition(".")[0] or None,
            }
        self._tell(f"call_{call.id}", _CALLS[call.kind], "assistant", told)

    def _tell(self, message_id: str, kind: str, role: str, data: Wire) -> None:
        """A message of one data content, from its beginning to its end."""
        self._send(self._message("in_progress", message_id, kind, role, None))
        self._send(self._content("in_progress", "data", message_id, {"data": data}))
        content = self._send(self._content("completed", "data", message_id, {"data": data}))
        done = self._send(self._message("completed", message_id, kind, role, [Raw(content)]))
        self._output.append(done)

    def _say_message(
        self,
        item: Item,
        status: str,
        content: list[Raw] | None,
        problem: events.Problem | None = None,
    ) -> bytes:
        kind = "reasoning" if item.is_reasoning else "message"
        return self._send(self._message(status, _wire_id(item), kind, item.role, content, problem))

    # the response

    def _say_response(self, status: str) -> None:
        self._status = status
        self._send(self._whole([], self._number))

    def _end(self, status: str, usage: Usage, problem: events.Problem | None) -> None:
        self._status, self._problem = status, problem
        self._usage = _usage(usage)
        self._response = self._send(self._whole(self._output, self._number))

    def _whole(self, output: list[bytes], number: int) -> bytes:
        ended = self._status in ("completed", "incomplete")
        return _json(
            {
                "sequence_number": number,
                "object": "response",
                "status": self._status,
                "error": self._problem,
                "id": self._head.wire.get("id") or f"response_{self._head.run_id}",
                "created_at": self._head.created_at_ms // 1000,
                "completed_at": self._at // 1000 if ended else None,
                "output": [Raw(done) for done in output if done],
                "usage": self._usage,
                "session_id": self._head.wire.get("session_id") or str(self._head.thread_id),
            }
        )

    def _message(
        self,
        status: str,
        message_id: str,
        kind: str,
        role: str,
        content: list[Raw] | None,
        problem: events.Problem | None = None,
    ) -> bytes:
        return _json(
            {
                "sequence_number": self._number,
                "object": "message",
                "status": status,
                "error": problem,
                "id": message_id,
                "type": kind,
                "role": role,
                "content": content,
                "code": None,
                "message": None,
                "usage": None,
                "metadata": None,
            }
        )

    def _content(
        self,
        status: str,
        kind: str,
        message_id: str,
        value: Wire,
        *,
        delta: bool = False,
        problem: events.Problem | None = None,
    ) -> bytes:
        return _json(
            {
                "sequence_number": self._number,
                "object": "content",
                "status": status,
                "error": problem,
                "type": kind,
                "index": 0,
                "delta": delta,
                "msg_id": message_id,
            }
            | value
        )

    def _send(self, data: bytes) -> bytes:
        self._frames.append(Frame("", data, self._number))
        self._number += 1
        return data


def _wire_id(item: Item) -> str:
    """Each kind of message has a beginning of its own, so that no two can have one id."""
    return f"rs_{item.id}" if item.is_reasoning else f"msg_{item.id}"


def _usage(counted: Usage) -> Wire | None:
    """The tokens that the provider counted; None where it did not say."""
    if not (counted.input_tokens or counted.output_tokens):
        return None
    return {
        "input_tokens": counted.input_tokens,
        "output_tokens": counted.output_tokens,
        "total_tokens": counted.input_tokens + counted.output_tokens,
        "cached_tokens": counted.cached_tokens,
        "reasoning_tokens": counted.reasoning_tokens,
    } | ({} if counted.cost_usd is None else {"cost_usd": usd(counted.cost_usd)})
