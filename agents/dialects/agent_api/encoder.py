"""A run as the Agent API's stream: sequence (a) of specs/agent-api.md, numbered from 0.

Every object on the wire equals `model_dump_json()` of the reference's models. Objects sent as completed
are kept as bytes and repeated so, with their own numbers, in the objects that contain them.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Raw

from agents.dialects import steps
from agents.dialects.artifact_links import artifact_url
from agents.dialects.base import Frame, RunHead
from agents.dialects.item_encoder import ItemEncoder
from agents.dialects.steps import Item, Status
from agents.dialects.wire import Wire, encode_json
from conversations import events
from conversations.events import Usage
from conversations.usage import usd

_WORDS: Final[dict[Status, str]] = {"cancelled": "canceled"}
_CALLS: Final[dict[events.ToolKind, str]] = {
    "function": "plugin_call",
    "plugin": "plugin_call",
    "mcp": "mcp_call",
    "frontend": "function_call",
    "component": "component_call",
}


class _MessageHead(NamedTuple):
    """What distinguishes a message."""

    id: str
    kind: str = "message"
    role: str = "assistant"


class _Part(NamedTuple):
    """A content of a message: its place there, its type, and the members of that type."""

    message_id: str
    place: int
    kind: str
    value: Wire


class AgentApiEncoder(ItemEncoder):
    """One reader's view of one run."""

    def __init__(self, head: RunHead) -> None:
        super().__init__(head)
        self._problem: events.Problem | None = None
        self._usage: Wire | None = None

    def heartbeat(self, at_ms: int) -> Frame | None:
        """Return an empty message (seed 004 §1): clients do not see comments."""
        head = _MessageHead(f"msg_heartbeat-{self._head.run_id.hex}", "heartbeat")
        return Frame("", encode_json(_message(None, "in_progress", head)))

    def answer(self) -> bytes:
        """Return the response in its present state."""
        return self._response or self._whole(self._output, max(self._number - 1, 0))

    def _delta(self, item: Item, text: str) -> Frame:
        number = self._number
        self._number = number + 1
        data = b'{"sequence_number":%d%b%b}' % (number, item.prefix, encode_json(text))
        return Frame("", data, number)

    def _render(self, step: steps.Step) -> None:
        match step:
            case steps.Created():
                self._say_response("created")
            case steps.Started():
                self._say_response("in_progress")
            case steps.Opened(item):
                self._open(item)
            case steps.TextAdded(item, text):
                self._frames.append(self._delta(item, text))
            case steps.Closed(item, status, problem, refused):
                self._close(item, _WORDS.get(status, status), problem, refused=refused)
            case steps.FileMade(artifact):
                head = _MessageHead(f"file_{artifact.artifact_id}-{self._head.run_id.hex}")
                self._tell(head, *_value(_file(artifact)))
            case steps.ToolCalled() as call:
                self._tell_data(_MessageHead(f"call_{call.id}", _CALLS[call.kind]), _call_data(call))
            case steps.ToolAnswered(call, output):
                head = _MessageHead(f"output_{call.id}", f"{_CALLS[call.kind]}_output", "tool")
                self._tell_data(head, {"call_id": call.call_id, "name": call.name, "output": output})
            case steps.ApprovalRequested(asked_id, name, arguments, label):
                head = _MessageHead(f"approval_{asked_id}", "mcp_approval_request")
                request = {"id": asked_id, "arguments": arguments, "name": name}
                self._tell_data(head, request | {"server_label": label})
            case steps.ToolsListed(listed_id, label, tools):
                listed = {"id": listed_id, "server_label": label, "tools": tools, "error": None}
                self._tell_data(_MessageHead(listed_id, "mcp_list_tools"), listed)
            case steps.Ended(status, usage, problem):
                self._end(_WORDS.get(status, status), usage, problem)

    # messages

    def _open(self, item: Item) -> None:
        """Announce a message; the beginning that all its deltas share is made once."""
        words = _Part(item.wire_id, 0, "text", {"text": ""})
        content = self._content(words, "in_progress", delta=True)
        item.prefix = content[content.index(b',"object"') : -len(b'""}')]
        item.place = len(self._output)
        self._output.append(b"")
        self._send_message(_head_of(item), "in_progress")

    def _close(self, item: Item, status: str, problem: events.Problem | None, *, refused: bool) -> None:
        """Send the whole contents and their message; a refusal is sent in place of its words."""
        shown = [*item.contents, *map(_file, item.files)]
        values = [*_words(item, refused=refused), *map(_value, shown)]
        contents = [
            self._send_content(_Part(item.wire_id, place, *value), status, problem)
            for place, value in enumerate(values)
        ]
        self._output[item.place] = self._send_message(_head_of(item), status, contents, problem)

    def _tell_data(self, head: _MessageHead, data: Wire) -> None:
        self._tell(head, "data", {"data": data})

    def _tell(
        self, head: _MessageHead, kind: str, value: Wire, problem: events.Problem | None = None
    ) -> None:
        """Send a message of one content, whole; an error message has a `problem`."""
        self._send_message(head, "in_progress")
        content = self._send_content(_Part(head.id, 0, kind, value), "completed")
        self._output.append(self._send_message(head, "completed", [content], problem))

    def _send_content(self, part: _Part, status: str, problem: events.Problem | None = None) -> Raw:
        """Send a content from its beginning to its end; one of words has begun with its first delta."""
        if part.kind != "text":
            self._put(self._content(part, "in_progress"))
        return Raw(self._put(self._content(part, status, problem)))

    def _send_message(
        self,
        head: _MessageHead,
        status: str,
        content: list[Raw] | None = None,
        problem: events.Problem | None = None,
    ) -> bytes:
        return self._put(encode_json(_message(self._number, status, head, content, problem)))

    # the response

    def _say_response(self, status: str) -> None:
        self._status = status
        self._put(self._whole([], self._number))

    def _end(self, status: str, usage: Usage, problem: events.Problem | None) -> None:
        self._status, self._problem = status, problem
        self._usage = _usage(usage)
        if problem is not None and status == "failed":
            head = _MessageHead(f"error_{self._head.run_id.hex}", "error")
            self._tell(head, "text", {"text": problem.message}, problem)
        self._response = self._put(self._whole(self._output, self._number))

    def _whole(self, output: list[bytes], number: int) -> bytes:
        ended = self._status in ("completed", "incomplete")
        return encode_json(
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
        self, part: _Part, status: str, problem: events.Problem | None = None, *, delta: bool = False
    ) -> bytes:
        return encode_json(
            {
                "sequence_number": self._number,
                "object": "content",
                "status": status,
                "error": problem,
                "type": part.kind,
                "index": part.place,
                "delta": delta,
                "msg_id": part.message_id,
            }
            | part.value
        )


def _head_of(item: Item) -> _MessageHead:
    return _MessageHead(item.wire_id, "reasoning" if item.is_reasoning else "message", item.role)


def _call_data(call: steps.ToolCalled) -> Wire:
    call_id, name, arguments = call.call_id, call.name, call.arguments
    if call.kind != "mcp":
        return {"call_id": call_id, "name": name, "arguments": arguments}
    label = call.server_label or name.rpartition(".")[0] or None
    return {"call_id": call_id, "arguments": arguments, "name": name, "server_label": label}


def _message(
    number: int | None,
    status: str,
    head: _MessageHead,
    content: list[Raw] | None = None,
    problem: events.Problem | None = None,
) -> Wire:
    """Return a message; if it failed, its problem is also in `error`, as in the package."""
    return {
        "sequence_number": number,
        "object": "message",
        "status": status,
        "error": problem if status == "failed" else None,
        "id": head.id,
        "type": head.kind,
        "role": head.role,
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
