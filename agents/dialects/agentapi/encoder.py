"""A run as the Agent API's stream: sequence (a) of specs/agent-api.md, numbered from 0.

Every object on the wire equals `model_dump_json()` of the reference's models. Objects sent as completed
are kept as bytes and repeated so, with their own numbers, in the objects that contain them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Raw

from agents.dialects import steps
from agents.dialects.base import Frame, RunHead
from agents.dialects.links import artifact_url
from agents.dialects.step_order import StepOrder
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
    "frontend": "function_call",
    "component": "component_call",
}


class AgentApiEncoder:
    """One reader's view of one run; every frame has its number as its id."""

    def __init__(self, head: RunHead) -> None:
        self._head = head
        self._order = StepOrder(head.run_id.hex)
        self._number = 0
        self._frames: list[Frame] = []
        self._output: list[bytes] = []
        self._status = "queued"
        self._problem: events.Problem | None = None
        self._usage: Wire | None = None
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
        """Return an empty message (seed 004 §1): clients do not see comments."""
        message = _message(None, "in_progress", f"msg_heartbeat-{self._head.run_id.hex}", "heartbeat")
        return Frame("", _json(message))

    def answer(self) -> bytes:
        """Return the response in its present state."""
        return self._response or self._whole(self._output, max(self._number - 1, 0))

    def _delta(self, item: Item, text: str) -> Frame:
        """Return a delta, on the hot path: put together by hand, since most frames are deltas."""
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
            case steps.TextAdded(item, text):
                value = _json(text)
                self._send(b'{"sequence_number":%d%b%b}' % (self._number, item.prefix, value))
            case steps.Closed(item, status, problem, refused):
                self._close(item, _WORDS.get(status, status), problem, refused=refused)
            case steps.FileMade(artifact):
                name = f"file_{artifact.artifact_id}-{self._head.run_id.hex}"
                self._tell(name, "message", "assistant", *_value(_file(artifact)))
            case steps.ToolCalled() as call:
                self._call(call)
            case steps.ToolAnswered(call, output):
                data = {"call_id": call.call_id, "name": call.name, "output": output}
                kind = f"{_CALLS[call.kind]}_output"
                self._tell(f"output_{call.id}", kind, "tool", "data", {"data": data})
            case steps.ApprovalRequested(asked_id, name, arguments, server_label):
                request = {
                    "id": asked_id,
                    "arguments": arguments,
                    "name": name,
                    "server_label": server_label,
                }
                kind = "mcp_approval_request"
                self._tell(f"approval_{asked_id}", kind, "assistant", "data", {"data": request})
            case steps.ToolsListed(listed_id, server_label, tools):
                listed = {
                    "id": listed_id,
                    "server_label": server_label,
                    "tools": tools,
                    "error": None,
                }
                self._tell(listed_id, "mcp_list_tools", "assistant", "data", {"data": listed})
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

    def _close(self, item: Item, status: str, problem: events.Problem | None, *, refused: bool) -> None:
        """Send the whole contents and their message; a refusal is sent in place of its words."""
        shown = [*item.contents, *map(_file, item.files)]
        values = [*_words(item, refused=refused), *map(_value, shown)]
        contents = [
            Raw(self._whole_content(place, status, kind, _wire_id(item), value, problem))
            for place, (kind, value) in enumerate(values)
        ]
        self._output[item.place] = self._say_message(item, status, contents, problem)

    def _whole_content(
        self,
        place: int,
        status: str,
        kind: str,
        message_id: str,
        value: Wire,
        problem: events.Problem | None = None,
    ) -> bytes:
        """Send a content from its beginning to its end; one of words has begun with its first delta."""
        if kind != "text":
            self._send(self._content("in_progress", kind, message_id, value, place=place))
        return self._send(self._content(status, kind, message_id, value, place=place, problem=problem))

    def _call(self, call: steps.ToolCalled) -> None:
        data: Wire = {"call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        if call.kind == "mcp":
            data = {
                "call_id": call.call_id,
                "arguments": call.arguments,
                "name": call.name,
                "server_label": call.server_label or call.name.rpartition(".")[0] or None,
            }
        self._tell(f"call_{call.id}", _CALLS[call.kind], "assistant", "data", {"data": data})

    def _tell(
        self,
        message_id: str,
        kind: str,
        role: str,
        content_type: str,
        value: Wire,
        problem: events.Problem | None = None,
    ) -> None:
        """Send a message of one content, whole; an error message has a `problem`."""
        named = (message_id, kind, role)
        self._send(_json(_message(self._number, "in_progress", *named)))
        content = self._whole_content(0, "completed", content_type, message_id, value)
        done = _message(self._number, "completed", *named, [Raw(content)], problem)
        self._output.append(self._send(_json(done)))

    def _say_message(
        self,
        item: Item,
        status: str,
        content: list[Raw] | None,
        problem: events.Problem | None = None,
    ) -> bytes:
        kind = "reasoning" if item.is_reasoning else "message"
        named = (_wire_id(item), kind, item.role)
        return self._send(_json(_message(self._number, status, *named, content, problem)))

    # the response

    def _say_response(self, status: str) -> None:
        self._status = status
        self._send(self._whole([], self._number))

    def _end(self, status: str, usage: Usage, problem: events.Problem | None) -> None:
        self._status, self._problem = status, problem
        self._usage = _usage(usage)
        if problem is not None and status == "failed":
            name = f"error_{self._head.run_id.hex}"
            self._tell(name, "error", "assistant", "text", {"text": problem.message}, problem)
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

    def _content(
        self,
        status: str,
        kind: str,
        message_id: str,
        value: Wire,
        *,
        delta: bool = False,
        place: int = 0,
        problem: events.Problem | None = None,
    ) -> bytes:
        return _json(
            {
                "sequence_number": self._number,
                "object": "content",
                "status": status,
                "error": problem,
                "type": kind,
                "index": place,
                "delta": delta,
                "msg_id": message_id,
            }
            | value
        )

    def _send(self, data: bytes) -> bytes:
        self._frames.append(Frame("", data, self._number))
        self._number += 1
        return data


def _message(
    number: int | None,
    status: str,
    message_id: str,
    kind: str,
    role: str = "assistant",
    content: list[Raw] | None = None,
    problem: events.Problem | None = None,
) -> Wire:
    """Return a message; if it failed, its problem is also in `error`, as in the package."""
    return {
        "sequence_number": number,
        "object": "message",
        "status": status,
        "error": problem if status == "failed" else None,
        "id": message_id,
        "type": kind,
        "role": role,
        "content": content,
        "code": problem.code if problem else None,
        "message": problem.message if problem else None,
        "usage": None,
        "metadata": None,
    }


def _words(item: Item, *, refused: bool) -> list[tuple[str, Wire]]:
    """Return the type and the value of a message's words; none if it only shows something."""
    if refused:
        return [("refusal", {"refusal": item.text or None})]
    return (
        [("text", {"text": item.text or None})] if item.text or not (item.contents or item.files) else []
    )


def _file(made: events.ArtifactCreated) -> events.MessageContent:
    return events.MessageContent("file", name=made.name, artifact_id=made.artifact_id)


def _value(content: events.MessageContent) -> tuple[str, Wire]:
    """Return the type and the value of a content other than words."""
    match content.type:
        case "image":
            return "image", {"image_url": content.url or None}
        case "audio":
            return "audio", {"data": content.data or None, "format": content.format or None}
        case "video":
            return "video", {"video_url": content.url or None}
        case "data":
            return "data", {"data": content.value}
    place = artifact_url(content.artifact_id) if content.artifact_id else ""
    return "file", {
        "file_url": content.url or place or None,
        "file_id": content.artifact_id or None,
        "filename": content.name or None,
        "file_data": content.data or None,
    }


def _wire_id(item: Item) -> str:
    """Return the wire id; its prefix per kind of message makes it unique."""
    return f"rs_{item.id}" if item.is_reasoning else f"msg_{item.id}"


def _usage(counted: Usage) -> Wire | None:
    """Return the tokens that the provider counted; None if it counted none."""
    if not (counted.input_tokens or counted.output_tokens):
        return None
    return {
        "input_tokens": counted.input_tokens,
        "output_tokens": counted.output_tokens,
        "total_tokens": counted.input_tokens + counted.output_tokens,
        "cached_tokens": counted.cached_tokens,
        "reasoning_tokens": counted.reasoning_tokens,
    } | ({} if counted.cost_usd is None else {"cost_usd": usd(counted.cost_usd)})
