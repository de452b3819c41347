"""The possible steps on a wire of items; `step_order` puts them in a valid order."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Struct

from config.http.documentation.json_types import noted
from conversations import events
from conversations.events import Usage

Status = Literal["completed", "incomplete", "failed", "cancelled", "rejected"]


class Item:
    """A message, or a stretch of reasoning; `prefix`, `template` and `place` are for the wire's own use.

    `files` are those that were made for the message, `contents` its contents beside the text; they are
    known when it closes.
    """

    __slots__ = (
        "_chunks", "_whole", "contents", "files", "id", "is_reasoning", "open", "place", "prefix",
        "role", "template",
    )  # fmt: skip

    def __init__(self, wire_id: str, role: str, *, is_reasoning: bool = False) -> None:
        self.id = wire_id
        self.role = role
        self.is_reasoning = is_reasoning
        self.open = True
        self.files: tuple[events.ArtifactCreated, ...] = ()
        self.contents: list[events.MessageContent] = []
        self.place = 0
        self.prefix = b""
        self.template = b""
        self._chunks: list[str] = []
        self._whole: str | None = None

    @property
    def wire_id(self) -> str:
        """The id that is unique on a wire: its prefix tells reasoning from a message."""
        return f"rs_{self.id}" if self.is_reasoning else f"msg_{self.id}"

    def add(self, text: str) -> None:
        self._chunks.append(text)

    def settle(self, whole: str) -> None:
        """Close the item with this text, whatever its pieces were."""
        self.open = False
        self._whole = whole

    @property
    def text(self) -> str:
        return "".join(self._chunks) if self._whole is None else self._whole


class Created(Struct, frozen=True):
    pass


class Started(Struct, frozen=True):
    pass


class Opened(Struct, frozen=True):
    item: Item


class TextAdded(Struct, frozen=True):
    item: Item
    text: str


class Closed(Struct, frozen=True):
    """`problem` if the message failed with the run; `refused` if its words are a refusal."""

    item: Item
    status: Status
    problem: events.Problem | None = None
    refused: bool = False


class FileMade(Struct, frozen=True):
    """The run made a file that belongs to none of its messages."""

    artifact: events.ArtifactCreated


class ToolCalled(Struct, frozen=True):
    """A call of a tool; `arguments` is JSON. `id` is the call's on this wire, unique among all runs.

    A call that an earlier run made and somebody approved (`approval_id`) keeps its `call_id` of then.
    """

    id: str
    call_id: str
    name: str
    arguments: str
    kind: events.ToolKind
    server_label: str = ""
    approval_id: str | None = None


class ToolAnswered(Struct, frozen=True):
    """The answer of one of our tools; `output` is JSON, of the problem if there was one."""

    call: ToolCalled
    output: str
    problem: events.Problem | None


class ApprovalRequested(Struct, frozen=True):
    """A request for somebody's approval of a call before it is made."""

    id: str
    name: str
    arguments: str
    server_label: str


class McpListToolsTool(TypedDict):
    """A tool of an MCP server, as the server describes it."""

    input_schema: Annotated[dict[str, Any], noted("The JSON Schema of its arguments.")]
    name: str
    annotations: Annotated[Any, noted("MCP's annotations of the tool, if it has any.")]
    description: str | None


class ToolsListed(Struct, frozen=True):
    """The tools that an MCP server offers."""

    id: str
    server_label: str
    tools: list[McpListToolsTool]


class Ended(Struct, frozen=True):
    """The last step. `problem` if the run failed or was refused."""

    status: Status
    usage: Usage
    problem: events.Problem | None


Step = (
    Created
    | Started
    | Opened
    | TextAdded
    | Closed
    | FileMade
    | ToolCalled
    | ToolAnswered
    | ApprovalRequested
    | ToolsListed
    | Ended
)
