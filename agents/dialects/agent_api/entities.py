"""The objects of the Agent API as in the reference package (specs/agent-api.md, "Models").

The order of the fields is the order on the wire: `model_dump_json()` of these is byte for byte that
of `agentscope-runtime`. Inherited fields come first.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Final, Literal, Self, TypeVar, cast
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, field_validator


class MessageType:
    """The types of a message (seed 004 §1, with the three that the package has beyond it)."""

    MESSAGE: Final = "message"
    FUNCTION_CALL: Final = "function_call"
    FUNCTION_CALL_OUTPUT: Final = "function_call_output"
    PLUGIN_CALL: Final = "plugin_call"
    PLUGIN_CALL_OUTPUT: Final = "plugin_call_output"
    COMPONENT_CALL: Final = "component_call"
    COMPONENT_CALL_OUTPUT: Final = "component_call_output"
    MCP_LIST_TOOLS: Final = "mcp_list_tools"
    MCP_APPROVAL_REQUEST: Final = "mcp_approval_request"
    MCP_TOOL_CALL: Final = "mcp_call"
    MCP_APPROVAL_RESPONSE: Final = "mcp_approval_response"
    MCP_TOOL_CALL_OUTPUT: Final = "mcp_call_output"
    REASONING: Final = "reasoning"
    HEARTBEAT: Final = "heartbeat"
    ERROR: Final = "error"
    A2UI_RESPONSE: Final = "a2ui_response"
    A2UI_ACTION: Final = "a2ui_action"

    @classmethod
    def all_values(cls) -> list[str]:
        """Return all types."""
        return [
            value
            for name, value in vars(cls).items()
            if not name.startswith("_") and isinstance(value, str)
        ]


class ContentType:
    """The types of a message's content."""

    TEXT: Final = "text"
    DATA: Final = "data"
    IMAGE: Final = "image"
    AUDIO: Final = "audio"
    FILE: Final = "file"
    REFUSAL: Final = "refusal"
    VIDEO: Final = "video"


class Role:
    """The possible senders of a message."""

    ASSISTANT: Final = "assistant"
    USER: Final = "user"
    SYSTEM: Final = "system"
    TOOL: Final = "tool"


class RunStatus:
    """The states of an object; Parley itself never sends `unknown`."""

    Created: Final = "created"
    InProgress: Final = "in_progress"
    Completed: Final = "completed"
    Canceled: Final = "canceled"
    Failed: Final = "failed"
    Rejected: Final = "rejected"
    Unknown: Final = "unknown"
    Queued: Final = "queued"
    Incomplete: Final = "incomplete"


class Error(BaseModel):
    code: str
    message: str


class Event(BaseModel):
    """The common members of every object on the wire; unknown members are kept."""

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)

    sequence_number: int | None = None
    object: str
    status: str | None = None
    error: Error | None = None

    def created(self) -> Self:
        return self._become(RunStatus.Created)

    def in_progress(self) -> Self:
        return self._become(RunStatus.InProgress)

    def completed(self) -> Self:
        return self._become(RunStatus.Completed)

    def rejected(self) -> Self:
        return self._become(RunStatus.Rejected)

    def canceled(self) -> Self:
        return self._become(RunStatus.Canceled)

    def failed(self, error: Error) -> Self:
        self.error = error
        return self._become(RunStatus.Failed)

    def _become(self, status: str) -> Self:
        self.status = status
        return self


class Content(Event):
    """A part of a message; its value is in the field of its type."""

    object: str = "content"
    type: str
    index: int | None = None
    delta: bool | None = False
    msg_id: str | None = None


C = TypeVar("C", bound=Content)


class TextContent(Content):
    type: Literal["text"] = "text"
    text: str | None = None


class ImageContent(Content):
    type: Literal["image"] = "image"
    image_url: str | None = None


class DataContent(Content):
    type: Literal["data"] = "data"
    data: dict[Any, Any] | None = None


class AudioContent(Content):
    type: Literal["audio"] = "audio"
    data: str | None = None
    format: str | None = None


class FileContent(Content):
    type: Literal["file"] = "file"
    file_url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    file_data: str | None = None


class RefusalContent(Content):
    type: Literal["refusal"] = "refusal"
    refusal: str | None = None


class VideoContent(Content):
    type: Literal["video"] = "video"
    video_url: str | None = None


AnyContent = (
    TextContent | ImageContent | DataContent | AudioContent | FileContent | RefusalContent | VideoContent
)


class Message(Event):
    """One entry of a conversation: words, a call, an answer, as `type` says."""

    object: str = "message"
    status: str = "created"
    id: str = Field(default_factory=lambda: f"msg_{uuid4()}")
    type: str = "message"
    role: Literal["assistant", "system", "user", "tool"] | None = None
    content: list[Annotated[AnyContent, Field(discriminator="type")]] | None = None
    code: str | None = None
    message: str | None = None
    usage: dict[Any, Any] | None = None
    metadata: dict[Any, Any] | None = None

    def add_delta_content(self, new_content: C) -> C | None:
        """Begin a content (one without an index), or add a delta to the one with its index.

        Return its event; None for a content that is neither. Raise IndexError for an index without a
        content. Data grow as in `merged`, every other value as text does.
        """
        contents = self.content = self.content or []
        if new_content.index is None:
            new_content.index = len(contents)
            contents.append(
                cast("AnyContent", new_content.model_copy(deep=True, update={"delta": None}))
            )
            contents[-1].msg_id = self.id
        elif new_content.delta is True:
            _grow(contents[new_content.index], new_content)
        else:
            return None
        new_content.msg_id = self.id
        return new_content.in_progress()

    def content_completed(self, content_index: int) -> AnyContent | None:
        """Return the whole content at an index as the event that completes it; None if there is none."""
        if self.content is None or content_index >= len(self.content):
            return None
        whole = self.content[content_index].model_copy(deep=True)
        whole.delta, whole.index, whole.msg_id = False, content_index, self.id
        return whole.completed()

    def add_content(self, new_content: C) -> C | None:
        """Add a whole content and return its event; None for a content that has an index."""
        contents = self.content = self.content or []
        if new_content.index is not None:
            return None
        contents.append(cast("AnyContent", new_content.model_copy(deep=True)))
        new_content.index, new_content.msg_id = len(contents) - 1, self.id
        return new_content.completed()


_VALUES: Final = {
    ContentType.TEXT: "text",
    ContentType.DATA: "data",
    ContentType.IMAGE: "image_url",
    ContentType.AUDIO: "data",
    ContentType.FILE: "file_data",
    ContentType.REFUSAL: "refusal",
    ContentType.VIDEO: "video_url",
}


def _grow(content: Content, delta: Content) -> None:
    """Add a delta's value to its content; raise TypeError for one of another type."""
    if content.type != delta.type:
        raise TypeError(f"A delta of {delta.type} cannot be added to a content of {content.type}.")
    name = _VALUES[content.type]
    more = getattr(delta, name)
    if more is not None:
        before = getattr(content, name)
        setattr(content, name, more if before is None else grown(before, more))


def merged(base: dict[Any, Any], delta: dict[Any, Any]) -> dict[Any, Any]:
    """Return data with more added: texts and lists grow, numbers are summed, objects merge."""
    result = dict(base)
    for key, more in delta.items():
        result[key] = grown(result[key], more) if key in result else more
    return result


def grown(base: Any, more: Any) -> Any:
    """Return a value with more added, as in `merged`; any other kind is replaced."""
    match base, more:
        case (bool(), _) | (_, bool()):
            return more
        case (str(), str()) | (list(), list()) | (int() | float(), int() | float()):
            return base + more
        case (dict(), dict()):
            return merged(base, more)
    return more


class BaseResponse(Event):
    """A whole response; `output` holds its messages in the order in which they began."""

    object: str = "response"
    status: str = "created"
    id: str | None = Field(default_factory=lambda: f"response_{uuid4()}")
    created_at: int = Field(default_factory=lambda: int(time.time()))
    completed_at: int | None = None
    output: list[Message] | None = None
    usage: dict[Any, Any] | None = None

    @field_validator("id", mode="before")
    @classmethod
    def _name(cls, value: Any) -> Any:
        return f"response_{uuid4()}" if value is None else value

    def completed(self) -> Self:
        self.completed_at = int(time.time())
        self.output = [] if self.output is None else self.output
        return super().completed()


class AgentResponse(BaseResponse):
    session_id: str | None = None


class FunctionParameters(BaseModel):
    """The JSON Schema of a function's arguments, `type` object."""

    type: str
    properties: dict[str, Any]
    required: list[str] | None


class FunctionTool(BaseModel):
    """A function that the client executes itself; a schema given as a dict is kept as it is."""

    name: str
    description: str = ""
    parameters: Annotated[dict[str, Any] | FunctionParameters, Field(union_mode="left_to_right")] = (
        Field(default_factory=dict)
    )


class Tool(BaseModel):
    """A tool of the client's; only functions can be offered."""

    type: str | None = "function"
    function: FunctionTool | None = None


class FunctionCall(BaseModel):
    """The data of a call; `arguments` is a model's JSON text, which may be invalid."""

    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class FunctionCallOutput(BaseModel):
    """The data of a call's output."""

    call_id: str
    name: str | None = None
    output: str


class McpCall(BaseModel):
    call_id: str | None = None
    arguments: str | None = None
    name: str | None = None
    server_label: str | None = None


class McpCallOutput(FunctionCallOutput):
    """The data of an MCP call's output."""


class BaseRequest(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    input: list[Message]
    stream: bool = True
    id: str | None = None


class AgentRequest(BaseRequest):
    """The body of a request; unknown members are ignored."""

    model: str | None = None
    top_p: float | None = None
    temperature: float | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    max_tokens: int | None = None
    stop: str | list[str] | None = None
    n: Annotated[int, Field(ge=1, le=5)] | None = 1
    seed: int | None = None
    tools: list[Tool | dict[str, Any]] | None = None
    session_id: str | None = None
    response_id: str | None = None
    user_id: str | None = None
