"""The objects of the Agent API as the reference package has them (specs/agent-api.md, "Models").

The order of the fields is the order on the wire: `model_dump_json()` of these is byte for byte that
of `agentscope-runtime`. Inherited fields come first.
"""

from __future__ import annotations

import time
from typing import Annotated, Any, Final, Literal, Self
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, field_validator

Status = Literal[
    "created",
    "in_progress",
    "completed",
    "canceled",
    "failed",
    "rejected",
    "unknown",
    "queued",
    "incomplete",
]
MESSAGE_TYPES: Final = (
    "message",
    "function_call",
    "function_call_output",
    "plugin_call",
    "plugin_call_output",
    "component_call",
    "component_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_call",
    "mcp_approval_response",
    "mcp_call_output",
    "reasoning",
    "heartbeat",
    "error",
    "a2ui_response",
    "a2ui_action",
)


class Error(BaseModel):
    code: str
    message: str


class Event(BaseModel):
    """What every object on the wire has; members that we do not know are kept."""

    model_config = ConfigDict(extra="allow", hide_input_in_errors=True)

    sequence_number: int | None = None
    object: str
    status: str | None = None
    error: Error | None = None

    def created(self) -> Self:
        return self._become("created")

    def in_progress(self) -> Self:
        return self._become("in_progress")

    def completed(self) -> Self:
        return self._become("completed")

    def rejected(self) -> Self:
        return self._become("rejected")

    def canceled(self) -> Self:
        return self._become("canceled")

    def failed(self, error: Error) -> Self:
        self.error = error
        return self._become("failed")

    def _become(self, status: Status) -> Self:
        self.status = status
        return self


class Content(Event):
    """A part of a message; its value stands in the field of its type."""

    object: str = "content"
    type: str
    index: int | None = None
    delta: bool | None = False
    msg_id: str | None = None


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


class AgentResponse(Event):
    """A whole response; `output` holds its messages in the order in which they began."""

    object: str = "response"
    status: str = "created"
    id: str | None = Field(default_factory=lambda: f"response_{uuid4()}")
    created_at: int = Field(default_factory=lambda: int(time.time()))
    completed_at: int | None = None
    output: list[Message] | None = None
    usage: dict[Any, Any] | None = None
    session_id: str | None = None

    @field_validator("id", mode="before")
    @classmethod
    def _name(cls, given: Any) -> Any:
        return f"response_{uuid4()}" if given is None else given

    def completed(self) -> Self:
        self.completed_at = int(time.time())
        self.output = [] if self.output is None else self.output
        return super().completed()


class FunctionTool(BaseModel):
    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)


class Tool(BaseModel):
    type: str | None = "function"
    function: FunctionTool | None = None


class AgentRequest(BaseModel):
    """The body of a request; members that we do not know pass."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    input: list[Message]
    stream: bool = True
    id: str | None = None
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
    user_id: str | None = None
