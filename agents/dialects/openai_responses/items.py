"""The items of a response and their parts: the structs render them and make their schemas.

The `type` of a part is its first member; that of an item follows its `id`, so it cannot be a tag, and
`component` names the union of items where the schema needs it.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Raw, UnsetType, field

from agents.dialects.artifact_links import UrlCitation, files_of
from agents.dialects.openai_responses.client_tools import ToolName, arguments_as_text
from agents.dialects.steps import Item, McpListToolsTool, ToolCalled
from agents.requests import OWN_LABEL
from config.http.documentation.json_types import Shown, component, noted, one_of
from conversations import events

SERVER_LABEL: Final = OWN_LABEL  # the label of our own tools, which are shown as those of an MCP server
ItemStatus = Literal["in_progress", "completed", "incomplete", "failed"]
_Json = Annotated[str, noted("A JSON text.")]
_Namespace = Annotated[str | UnsetType, noted("The tool's namespace, if the request defined one.")]


class _Part(Shown, frozen=True, tag_field="type"):
    """The base of the parts."""


class ResponseInputText(_Part, frozen=True, tag="input_text"):
    text: str


class ResponseInputImage(_Part, frozen=True, tag="input_image"):
    image_url: str
    detail: Literal["auto"] = "auto"


class ResponseInputFile(_Part, frozen=True, tag="input_file"):
    file_url: str
    filename: str


class ResponseUrlCitation(UrlCitation, frozen=True, tag_field="type", tag="url_citation"):
    """A file of the run, as a source of the text."""


class ResponseOutputText(_Part, frozen=True, tag="output_text"):
    text: str
    annotations: list[ResponseUrlCitation] = field(default_factory=list)
    logprobs: tuple[()] = ()


class ResponseSummaryText(_Part, frozen=True, tag="summary_text"):
    text: str


class ResponseOutputMessage(Shown, frozen=True, kw_only=True):
    """A message of the model."""

    id: str
    type: Literal["message"] = "message"
    status: ItemStatus
    role: Literal["assistant"] = "assistant"
    content: tuple[ResponseOutputText, ...]


class ResponseReasoningItem(Shown, frozen=True, kw_only=True):
    """A stretch of the model's reasoning."""

    id: str
    type: Literal["reasoning"] = "reasoning"
    status: ItemStatus
    summary: tuple[ResponseSummaryText, ...]


class ResponseFunctionToolCall(Shown, frozen=True, kw_only=True):
    """A call that the client answers with a `function_call_output`."""

    id: str
    type: Literal["function_call"] = "function_call"
    status: ItemStatus
    call_id: str
    name: str
    namespace: _Namespace = UNSET
    arguments: _Json


class ResponseCustomToolCall(Shown, frozen=True, kw_only=True):
    """A call with a text as its input, which the client answers with a `custom_tool_call_output`."""

    id: str
    type: Literal["custom_tool_call"] = "custom_tool_call"
    call_id: str
    name: str
    namespace: _Namespace = UNSET
    input: str


class McpErrorText(_Part, frozen=True, tag="text"):
    text: str


class McpToolExecutionError(_Part, frozen=True, tag="mcp_tool_execution_error"):
    content: list[McpErrorText]


class McpCall(Shown, frozen=True, kw_only=True):
    """A call of a tool of the server or of one of its MCP servers."""

    id: str
    type: Literal["mcp_call"] = "mcp_call"
    status: ItemStatus
    approval_request_id: str | None
    arguments: _Json
    error: McpToolExecutionError | None = None
    name: str
    output: str | None = None
    server_label: str


class McpApprovalRequest(Shown, frozen=True, kw_only=True):
    """A request for an approval of a call, which the client answers with an `mcp_approval_response`."""

    id: str
    type: Literal["mcp_approval_request"] = "mcp_approval_request"
    arguments: _Json
    name: str
    server_label: str


class McpListTools(Shown, frozen=True, kw_only=True):
    """The tools of an MCP server."""

    id: str
    type: Literal["mcp_list_tools"] = "mcp_list_tools"
    server_label: str
    tools: list[McpListToolsTool]
    error: None = None


ClientCall = ResponseFunctionToolCall | ResponseCustomToolCall
OutputItem = (
    ResponseOutputMessage
    | ResponseReasoningItem
    | ClientCall
    | McpCall
    | McpApprovalRequest
    | McpListTools
)
RawOutputItem = Annotated[Raw, component("ResponseOutputItem")]
InputContent = ResponseInputText | ResponseOutputText | ResponseInputImage | ResponseInputFile
_OUTPUT: Final = noted("A text, or a list if there are images or files.")


class ResponseInputMessage(Shown, frozen=True, kw_only=True):
    """A message of the input."""

    id: str
    type: Literal["message"] = "message"
    role: Annotated[str, one_of("user", "assistant", "system", "developer")]
    content: list[InputContent]
    status: ItemStatus = "completed"


class ResponseFunctionToolCallOutput(Shown, frozen=True, kw_only=True):
    """The client's answer to a call."""

    id: str
    type: Literal["function_call_output"] = "function_call_output"
    status: ItemStatus = "completed"
    call_id: str
    output: Annotated[str | list[InputContent], _OUTPUT]


InputItem = ResponseInputMessage | ClientCall | ResponseFunctionToolCallOutput
AnyInputItem = Annotated[Any, component("ResponseItem")]


def citations(item: Item, *, at: int) -> list[ResponseUrlCitation]:
    """Return the annotations that name the files of a message."""
    return [ResponseUrlCitation.of(file, at=at) for file in files_of(item)]


def message(item: Item, status: ItemStatus, *parts: ResponseOutputText) -> ResponseOutputMessage:
    """Return a message of the output; at its beginning it has no parts."""
    return ResponseOutputMessage(id=item.wire_id, status=status, content=parts)


def reasoning(item: Item, status: ItemStatus, *parts: ResponseSummaryText) -> ResponseReasoningItem:
    """Return reasoning of the output; at its beginning it has no parts."""
    return ResponseReasoningItem(id=item.wire_id, status=status, summary=parts)


def client_call(
    key: str, call_id: str, tool: ToolName, arguments: str, status: ItemStatus
) -> ClientCall:
    """Return a call that the client answers, with its `…_call_output`."""
    namespace = tool.namespace or UNSET
    if tool.is_custom:
        text = arguments_as_text(arguments)
        return ResponseCustomToolCall(
            id=f"ctc_{key}", call_id=call_id, name=tool.name, namespace=namespace, input=text
        )
    return ResponseFunctionToolCall(
        id=f"fc_{key}",
        status=status,
        call_id=call_id,
        name=tool.name,
        namespace=namespace,
        arguments=arguments,
    )


def server_call(
    call: ToolCalled,
    status: ItemStatus,
    *,
    arguments: str | None = None,
    output: str | None = None,
    problem: events.Problem | None = None,
) -> McpCall:
    """Return a call that we answer ourselves; this wire has a form for it with MCP tools only."""
    error = None
    if problem is not None:
        error = McpToolExecutionError([McpErrorText(f"{problem.code}: {problem.message}")])
    return McpCall(
        id=f"mcp_{call.id}",
        status=status,
        approval_request_id=call.approval_id,
        arguments=call.arguments if arguments is None else arguments,
        error=error,
        name=call.name,
        output=output,
        server_label=call.server_label or SERVER_LABEL,
    )
