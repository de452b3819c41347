"""The Agent API (seed 004; specs/agent-api.md): a body with `input`, a stream of objects.

Authors of runners and servers of this protocol find all the names of the seed here: constants, objects
and builders. It needs no Django and no settings.
"""

from __future__ import annotations

from typing import Any, Final

from pydantic import TypeAdapter

from agents.dialects.agentapi.builders import ContentBuilder as ContentBuilder
from agents.dialects.agentapi.builders import MessageBuilder as MessageBuilder
from agents.dialects.agentapi.builders import ResponseBuilder as ResponseBuilder
from agents.dialects.agentapi.builders import StreamingResponseBuilder as StreamingResponseBuilder
from agents.dialects.agentapi.encoder import AgentApiEncoder
from agents.dialects.agentapi.entities import AgentRequest as AgentRequest
from agents.dialects.agentapi.entities import AgentResponse as AgentResponse
from agents.dialects.agentapi.entities import AudioContent as AudioContent
from agents.dialects.agentapi.entities import BaseRequest as BaseRequest
from agents.dialects.agentapi.entities import BaseResponse as BaseResponse
from agents.dialects.agentapi.entities import Content as Content
from agents.dialects.agentapi.entities import ContentType as ContentType
from agents.dialects.agentapi.entities import DataContent as DataContent
from agents.dialects.agentapi.entities import Error as Error
from agents.dialects.agentapi.entities import Event as Event
from agents.dialects.agentapi.entities import FileContent as FileContent
from agents.dialects.agentapi.entities import FunctionCall as FunctionCall
from agents.dialects.agentapi.entities import FunctionCallOutput as FunctionCallOutput
from agents.dialects.agentapi.entities import FunctionParameters as FunctionParameters
from agents.dialects.agentapi.entities import FunctionTool as FunctionTool
from agents.dialects.agentapi.entities import ImageContent as ImageContent
from agents.dialects.agentapi.entities import McpCall as McpCall
from agents.dialects.agentapi.entities import McpCallOutput as McpCallOutput
from agents.dialects.agentapi.entities import Message as Message
from agents.dialects.agentapi.entities import MessageType as MessageType
from agents.dialects.agentapi.entities import RefusalContent as RefusalContent
from agents.dialects.agentapi.entities import Role as Role
from agents.dialects.agentapi.entities import RunStatus as RunStatus
from agents.dialects.agentapi.entities import TextContent as TextContent
from agents.dialects.agentapi.entities import Tool as Tool
from agents.dialects.agentapi.entities import VideoContent as VideoContent
from agents.dialects.agentapi.request import NAME as NAME
from agents.dialects.agentapi.request import parse as parse
from agents.dialects.base import RunHead

OPENING: Final = b""
encoder: Final = AgentApiEncoder
QUEUE: Final = "runs"
_flag: Final = TypeAdapter(bool)


def streams(body: dict[str, Any], *, accept: str) -> bool:
    """Return true unless `stream` is false, whatever the client accepts, as the original does."""
    return _flag.validate_python(body.get("stream", True))


def waits(body: dict[str, Any]) -> bool:
    """Return true: a client that does not want to wait starts a task."""
    return True


def accepted(head: RunHead) -> dict[str, Any]:
    """Return the answer to a background task."""
    return {
        "task_id": head.run_id.hex,
        "status": "submitted",
        "queue": QUEUE,
        "message": "The run is accepted; ask for it by its task_id.",
    }
