"""The Agent API (seed 004; specs/agent-api.md): models, builders, body and encoder; no rows, no I/O.

Authors of runners and servers of this protocol find all the names of the seed here: constants, objects
and builders. They need no Django and no settings.
"""

from agents.dialects.agent_api.builders import ContentBuilder as ContentBuilder
from agents.dialects.agent_api.builders import MessageBuilder as MessageBuilder
from agents.dialects.agent_api.builders import ResponseBuilder as ResponseBuilder
from agents.dialects.agent_api.builders import StreamingResponseBuilder as StreamingResponseBuilder
from agents.dialects.agent_api.entities import AgentRequest as AgentRequest
from agents.dialects.agent_api.entities import AgentResponse as AgentResponse
from agents.dialects.agent_api.entities import AudioContent as AudioContent
from agents.dialects.agent_api.entities import BaseRequest as BaseRequest
from agents.dialects.agent_api.entities import BaseResponse as BaseResponse
from agents.dialects.agent_api.entities import Content as Content
from agents.dialects.agent_api.entities import ContentType as ContentType
from agents.dialects.agent_api.entities import DataContent as DataContent
from agents.dialects.agent_api.entities import Error as Error
from agents.dialects.agent_api.entities import Event as Event
from agents.dialects.agent_api.entities import FileContent as FileContent
from agents.dialects.agent_api.entities import FunctionCall as FunctionCall
from agents.dialects.agent_api.entities import FunctionCallOutput as FunctionCallOutput
from agents.dialects.agent_api.entities import FunctionParameters as FunctionParameters
from agents.dialects.agent_api.entities import FunctionTool as FunctionTool
from agents.dialects.agent_api.entities import ImageContent as ImageContent
from agents.dialects.agent_api.entities import McpCall as McpCall
from agents.dialects.agent_api.entities import McpCallOutput as McpCallOutput
from agents.dialects.agent_api.entities import Message as Message
from agents.dialects.agent_api.entities import MessageType as MessageType
from agents.dialects.agent_api.entities import RefusalContent as RefusalContent
from agents.dialects.agent_api.entities import Role as Role
from agents.dialects.agent_api.entities import RunStatus as RunStatus
from agents.dialects.agent_api.entities import TextContent as TextContent
from agents.dialects.agent_api.entities import Tool as Tool
from agents.dialects.agent_api.entities import VideoContent as VideoContent
