"""A body of OpenAI's Responses API as a RunRequest.

What the SDK sends and we have no use for is taken and repeated in the response; a tool that we
cannot offer is refused, since a model that silently lacks it would answer wrongly.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from agents.dialects import given
from agents.dialects.field_errors import invalid_body
from agents.dialects.generation import schema_of
from agents.dialects.openai import items, shape
from agents.requests import ClientTool, ContextItem, Effort, Generation, RunRequest
from config.errors import InvalidRequest

LONGEST_NAME: Final = 512

_Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]


class _Part(BaseModel):
    """A shape with open ends."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)


class Tool(_Part):
    type: str
    name: Annotated[str, StringConstraints(max_length=128)] = ""
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Conversation(_Part):
    id: _Name


class Text(_Part):
    format: dict[str, Any] | None = None


class Reasoning(_Part):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh"] | None = None


class ResponsesBody(_Part):
    """The fields that mean something to us."""

    input: Any
    model: str | None = None
    stream: bool | None = None
    background: bool | None = None
    instructions: str | None = None
    previous_response_id: _Name | None = None
    conversation: _Name | Conversation | None = None
    max_output_tokens: Annotated[int, Field(gt=0)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    text: Text | None = None
    reasoning: Reasoning | None = None
    tools: Annotated[list[Tool], Field(max_length=128)] | None = None
    tool_choice: Any = None
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None


def parse(body: dict[str, Any], *, dialect: str, request_id: str) -> RunRequest:
    """The canonical request; InvalidRequest with field errors for a wrong body.

    `parent_run_id` is the run of `previous_response_id`, whose thread the caller has to look up.
    """
    try:
        asked = ResponsesBody.model_validate(body)
    except ValidationError as error:
        raise invalid_body("Responses request", error, body) from None
    if asked.previous_response_id and asked.conversation:
        raise InvalidRequest(
            "Send previous_response_id or conversation, not both.", code="conversation_ambiguous"
        )
    conversation = asked.conversation
    named = conversation.id if isinstance(conversation, Conversation) else conversation
    thread: dict[str, Any] = given.thread_of(named)
    said = tuple(items.messages(asked.input))
    tools = tuple(_tools(asked.tools or []))
    calls_none = asked.tool_choice == "none"
    return RunRequest(
        dialect=dialect,
        model=(asked.model or "").strip(),
        messages=said,
        request_id=request_id,
        known="id" if (named or asked.previous_response_id) and len(said) > 1 else "none",
        parent_run_id=_previous(asked.previous_response_id),
        tools=() if calls_none else tools,
        server_tools=() if calls_none else None,
        context=(ContextItem("instructions", asked.instructions),) if asked.instructions else (),
        answers=tuple(items.answers(asked.input)),
        generation=_generation(asked),
        wire={"echo": shape.echoed(body), "conversation": named},
        **thread,
    )


def _previous(response_id: str | None) -> str | None:
    return shape.run_id_of(response_id) if response_id else None


def _tools(tools: list[Tool]) -> Iterator[ClientTool]:
    for tool in tools:
        if tool.type != "function":
            raise InvalidRequest(
                "Only tools of the type function can be offered.", code="tool_not_supported"
            )
        if not tool.name:
            raise InvalidRequest("A function needs a name.", code="tool_not_supported")
        yield ClientTool(tool.name, tool.description or "", tool.parameters or {})


def _generation(asked: ResponsesBody) -> Generation:
    return Generation(
        temperature=asked.temperature,
        top_p=asked.top_p,
        max_tokens=asked.max_output_tokens,
        json_schema=schema_of(asked.text.format) if asked.text else None,
        reasoning=_effort(asked.reasoning),
    )


def _effort(asked: Reasoning | None) -> Effort | None:
    """The nearest of our efforts; `none` is what the model does unasked."""
    match asked.effort if asked else None:
        case None | "none":
            return None
        case "xhigh":
            return "high"
        case effort:
            return effort
