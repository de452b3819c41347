"""Convert events of the Agent API's builders, which a runner yields, into facts (seed 004, builders).

The builders of Parley (`agents.dialects.agent_api`) and those of the published package make the same
objects. A message becomes one of the run's, with an id of the run; its texts become one text, each on
lines of its own. A call of a function of the client waits for the client; the runner itself makes any
other call. An event is read at once, because builders go on changing the objects that they have yielded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from agents.host import message_contents
from agents.host.runner_failures import convert, protocol_error, reported_failure
from agents.host.session import Scene
from agents.providers.base import ToolCall
from agents.providers.decoding import parse_object
from conversations import events
from conversations.events import Fact, MessageContent, Usage
from conversations.log.growing_text import GrowingText

T = TypeVar("T", bound=Struct)
_OBJECTS: Final = ("response", "message", "content")
_CALLS: Final[dict[str, events.ToolKind]] = {
    "function_call": "plugin",
    "plugin_call": "plugin",
    "component_call": "component",
    "mcp_call": "mcp",
}
_OUTPUTS: Final = frozenset(f"{kind}_output" for kind in _CALLS)
_CLIENTS: Final = frozenset({"function_call", "component_call"})
_APPROVALS: Final = frozenset({"mcp_approval_request", "mcp_approval_response"})
_INPUT: Final = "told"  # the kind of messages from the user or the system, which a runner only repeats
_SILENT: Final = _CALLS.keys() | _OUTPUTS | _APPROVALS | {"error", "heartbeat", "mcp_list_tools", _INPUT}
_WORDS: Final = frozenset({"text", "refusal"})
_UNFINISHED: Final = frozenset({None, "created", "queued", "in_progress", "unknown"})
_LARGEST_COUNT: Final = 2**31 - 1


class _Error(Struct, frozen=True):
    code: str = ""
    message: str = ""


class _Content(Struct, frozen=True):
    """A content of any type; each type has its own fields."""

    type: str
    index: int | None = None
    delta: bool | None = None
    status: str | None = None
    msg_id: str | None = None
    text: str | None = None
    refusal: str | None = None
    data: Any = None
    format: str | None = None
    image_url: str | None = None
    video_url: str | None = None
    file_url: str | None = None
    filename: str | None = None
    file_data: str | None = None

    @property
    def words(self) -> str:
        return (self.text if self.type == "text" else self.refusal) or ""


class _Message(Struct, frozen=True):
    id: str
    type: str = "message"
    status: str | None = None
    role: str | None = None
    content: list[_Content] | None = None
    code: str | None = None
    message: str | None = None
    error: _Error | None = None
    usage: Any = None


class _Response(Struct, frozen=True):
    status: str | None = None
    error: _Error | None = None
    output: list[_Message] | None = None
    usage: Any = None


class _CallData(Struct, frozen=True):
    """The data of a call or of its output."""

    call_id: str
    name: str | None = None
    arguments: Any = None
    output: Any = None
    server_label: str | None = None


class _ToolsData(Struct, frozen=True):
    server_label: str
    tools: list[dict[str, Any]]


class _Draft:
    """An unfinished message; each of its texts begins on a new line."""

    def __init__(self, own_id: str, kind: str) -> None:
        self.id = own_id
        self.kind = kind
        self.done = False
        self.text = GrowingText()
        self.whole: dict[int, _Content] = {}
        self._texts: dict[int, GrowingText] = {}

    def add(self, place: int, piece: str) -> str:
        """Add a piece to the text at a place; return the addition to the message."""
        text = self._texts.setdefault(place, GrowingText())
        begins = bool(piece and self.text and not text)
        text.add(piece)
        piece = f"\n{piece}" if begins else piece
        self.text.add(piece)
        return piece

    def grow(self, place: int, text: str) -> str:
        """Add the rest of the text at a place; return "" if its beginning differs."""
        so_far = str(self._texts.get(place, ""))
        return self.add(place, text[len(so_far) :]) if text.startswith(so_far) else ""


def is_event(result: object) -> bool:
    """Return whether a runner has yielded an object of the Agent API."""
    named = getattr(result, "object", None)
    return named in _OBJECTS and callable(getattr(result, "model_dump", None))


class BuilderEvents:
    """One run's builder events on their way to the log; the end of a response sets `ending`.

    `client_tools` are the functions that the client executes; `new_id` returns the id of the run's next
    message. With `whole` only whole messages are delivered. The methods raise RunFailure for a response
    or an error message that fails the run, and `runner.protocol_error` for unreadable objects.
    """

    def __init__(
        self, scene: Scene, client_tools: Collection[str], new_id: Callable[[], str], *, whole: bool
    ) -> None:
        self.ending: events.RunCompleted | None = None
        self._scene = scene
        self._client_tools = client_tools
        self._new_id = new_id
        self._whole = whole
        self._drafts: dict[str, _Draft] = {}
        self._thoughts = 0
        self._refused = self._waits = False
        self._usage = Usage()

    async def convert(self, event: Any) -> list[Fact]:
        """Return the facts of the next event."""
        dumped = _dump(event)
        match dumped.get("object"):
            case "content":
                return self._content(_convert(dumped, _Content))
            case "message":
                return await self._message(_convert(dumped, _Message))
        return await self._response(_convert(dumped, _Response))

    async def end(self, status: str = "completed", output: Sequence[_Message] = ()) -> list[Fact]:
        """Return the facts of incomplete messages at the good end of the run."""
        facts = [fact for message in output for fact in await self._complete(message)]
        for message_id, draft in [*self._drafts.items()]:
            facts += await self._complete(_Message(message_id, draft.kind))
        reason = "refusal" if self._refused else "tool_calls" if self._waits else "stop"
        self.ending = events.RunCompleted("length" if status == "incomplete" else reason, self._usage)
        return facts

    # contents

    def _content(self, content: _Content) -> list[Fact]:
        draft, place = self._draft(_Message(content.msg_id or "")), content.index or 0
        if draft.done:
            return []
        if content.status == "completed":
            draft.whole[place] = content
        if content.type not in _WORDS or draft.kind in _SILENT:
            return []
        new = draft.add(place, content.words) if content.delta else draft.grow(place, content.words)
        return self._delta(draft, new)

    def _delta(self, draft: _Draft, text: str) -> list[Fact]:
        if not text or self._whole:
            return []
        if draft.kind == "reasoning":
            return [events.ReasoningDelta(draft.id, text)]
        return [events.MessageDelta(draft.id, text)]

    # messages

    def _draft(self, message: _Message) -> _Draft:
        """Return the draft of a message; begin one for a new message."""
        if message.id not in self._drafts:
            kind = _INPUT if message.role in ("user", "system") else message.type
            self._drafts[message.id] = _Draft(self._own_id(kind), kind)
        return self._drafts[message.id]

    def _own_id(self, kind: str) -> str:
        if kind in _SILENT:
            return ""
        if kind != "reasoning":
            return self._new_id()
        self._thoughts += 1
        return f"reasoning-{self._thoughts}-{self._scene.run_id.hex}"

    async def _message(self, message: _Message) -> list[Fact]:
        if message.status in _UNFINISHED:
            self._draft(message)
            return []
        return await self._complete(message)

    async def _complete(self, message: _Message) -> list[Fact]:
        draft = self._draft(message)
        if draft.done:
            return []
        draft.done = True
        if message.usage:
            self._usage = _usage(message.usage)
        parts = message.content or [draft.whole[place] for place in sorted(draft.whole)]
        match draft.kind:
            case kind if kind in _CALLS:
                return [self._call(kind, part) for part in parts if part.type == "data"]
            case kind if kind in _OUTPUTS:
                return [_output(part) for part in parts if part.type == "data"]
            case kind if kind in _APPROVALS:
                raise protocol_error("A runner asks for approval with api.platform.request_action.")
            case "mcp_list_tools":
                return [_tool_list(part) for part in parts if part.type == "data"]
            case "error":
                error = _error_of(message, parts)
                raise reported_failure(error.code, error.message)
            case "reasoning":
                return [
                    fact
                    for place, part in enumerate(parts)
                    for fact in self._delta(draft, draft.grow(place, part.words))
                ]
            case "heartbeat" | "told":
                return []
        return await self._complete_message(draft, parts)

    async def _complete_message(self, draft: _Draft, parts: Sequence[_Content]) -> list[Fact]:
        """Return the facts of the whole message; its text replaces a different text of its deltas."""
        streamed = str(draft.text)
        words = [part.words for part in parts if part.type in _WORDS and part.words]
        text = "\n".join(words) or streamed
        self._refused = any(part.type == "refusal" for part in parts)
        contents, made = await message_contents.store_inline_contents(
            self._scene, [_message_content(part) for part in parts if part.type not in _WORDS]
        )
        if not text and not contents:
            return []
        body = events.MessageBody(draft.id, "assistant", text, contents=contents)
        return [*made, events.MessageCompleted(body, replaces=not text.startswith(streamed))]

    # calls

    def _call(self, kind: str, part: _Content) -> Fact:
        data = _convert(part.data, _CallData)
        name = data.name or ""
        call = ToolCall(data.call_id, name, _as_text(data.arguments) or "{}")
        is_clients = kind in _CLIENTS and name in self._client_tools
        self._waits = self._waits or is_clients
        return events.ToolCallStarted(
            data.call_id,
            name,
            parse_object(call.arguments),
            "frontend" if is_clients else _CALLS[kind],
            data.server_label or "",
        )

    # the response

    async def _response(self, response: _Response) -> list[Fact]:
        if response.status in _UNFINISHED:
            return []
        if response.usage:
            self._usage = _usage(response.usage)
        if response.status in ("completed", "incomplete"):
            return await self.end(response.status, response.output or ())
        ended = _Error(f"runner.{response.status}", "The runner's response has not been completed.")
        error = response.error or ended
        raise reported_failure(error.code, error.message)


def _dump(event: Any) -> dict[str, Any]:
    try:
        dumped = event.model_dump(mode="json")
    except (TypeError, ValueError):
        dumped = None
    if not isinstance(dumped, dict):
        raise protocol_error("An event of the Agent API cannot be read.")
    return dumped


def _convert(value: Any, kind: type[T]) -> T:
    return convert(value, kind, "An event of the Agent API is wrong")


def _output(part: _Content) -> Fact:
    data = _convert(part.data, _CallData)
    return events.ToolCallCompleted(data.call_id, data.name or "", True, 0, _result(data.output))


def _result(output: Any) -> dict[str, Any]:
    """Return an output as an object; another value is put under `output`."""
    try:
        found = msgspec.json.decode(output) if isinstance(output, str) else output
    except (msgspec.DecodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"output": output}


def _tool_list(part: _Content) -> Fact:
    data = _convert(part.data, _ToolsData)
    return events.StateUpdated("mcp", data.server_label, data.tools)


def _message_content(part: _Content) -> MessageContent:
    match part.type:
        case "image":
            return MessageContent("image", part.image_url or "")
        case "video":
            return MessageContent("video", part.video_url or "")
        case "audio":
            return MessageContent("audio", data=_as_text(part.data), format=part.format or "")
        case "file":
            name, data = part.filename or "", part.file_data or ""
            return MessageContent("file", "" if data else part.file_url or "", data, name=name)
        case "data" if isinstance(part.data, dict):
            return MessageContent("data", value=part.data)
    raise protocol_error("A content of a message has an unknown type, or no value.")


def _as_text(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.encode(value).decode()


def _error_of(message: _Message, parts: Sequence[_Content]) -> _Error:
    if message.error is not None:
        return message.error
    words = message.message or "\n".join(part.words for part in parts if part.type in _WORDS)
    return _Error(message.code or "", words)


def _usage(usage: Any) -> Usage:
    """Return the tokens, with the names of the package or of OpenAI; 0 for values that are no counts."""
    counts = usage if isinstance(usage, dict) else {}

    def count(*names: str) -> int:
        found = (counts[name] for name in names if name in counts)
        return next((min(max(n, 0), _LARGEST_COUNT) for n in found if type(n) is int), 0)

    return Usage(count("input_tokens", "prompt_tokens"), count("output_tokens", "completion_tokens"))
