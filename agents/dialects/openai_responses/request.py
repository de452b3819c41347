"""A body of OpenAI's Responses API as a RunRequest.

Members that change the answer are obeyed or refused by name; members for OpenAI's account or bill only
are accepted and repeated in the response.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agents.dialects import client_inputs
from agents.dialects.field_errors import validate_body
from agents.dialects.generation import answer_schema, make_generation, nearest_effort
from agents.dialects.openai_responses import input_items, objects
from agents.dialects.openai_responses.tools import (
    MOST_TOOLS,
    Tool,
    apply_choice,
    plain_choice,
    read_tools,
)
from agents.requests import (
    Generation,
    InputMessage,
    InterruptAnswer,
    RunRequest,
    ToolChoice,
)
from config.errors import InvalidRequest

NAME: Final = "responses"
LONGEST_NAME: Final = 512

_Name = Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_NAME)]


class _Part(BaseModel):
    """A part of the body; unknown members are refused, because they might change the answer."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Conversation(_Part):
    id: _Name


class Text(_Part):
    format: dict[str, Any] | None = None
    verbosity: Literal["low", "medium", "high"] | None = None


_Summary = Literal["auto", "concise", "detailed"]


class Reasoning(_Part):
    effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = None
    summary: _Summary | None = None
    generate_summary: _Summary | None = None
    context: Literal["auto"] | None = None
    mode: Literal["standard"] | None = None


class ResponsesBody(_Part):
    """The body; `SETTLED` names members whose only value here is OpenAI's own default."""

    input: Any = None
    model: str | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    instructions: str | None = None
    previous_response_id: _Name | None = None
    conversation: _Name | Conversation | None = None
    max_output_tokens: Annotated[int, Field(gt=0)] | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    text: Text | None = None
    reasoning: Reasoning | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Annotated[int, Field(ge=0)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    include: list[str] | None = None
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None
    # members that change no answer
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_retention: str | None = None
    prompt_cache_options: Any = None
    stream_options: Any = None
    client_metadata: Any = None
    service_tier: Any = None
    top_logprobs: Any = None
    prompt: Any = None
    context_management: Any = None
    moderation: Any = None
    image: Any = None
    access_programs: Any = None
    background_options: Any = None


SETTLED: Final[dict[str, tuple[Any, ...]]] = {
    "service_tier": ("auto", "default"),
    "top_logprobs": (0,),
    "prompt": (),
    "context_management": ([],),
    "moderation": (),
    "image": ({}, {"context_compression": "auto"}),
    "access_programs": ({},),
    "background_options": ({}, {"completion_window": "soonest"}),
}
_LOGPROBS: Final = "message.output_text.logprobs"


def parse(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """Return the canonical request; raise InvalidRequest with field errors for a wrong body.

    `parent_run_id` is the run of `previous_response_id`, whose thread the caller must look up.
    """
    parsed = validate_body(ResponsesBody, body, "Responses request")
    _check(parsed)
    conversation = parsed.conversation
    named = conversation.id if isinstance(conversation, Conversation) else conversation
    stored = parsed.store is not False
    answers = tuple(input_items.parse_answers(parsed.input))
    previous = parsed.previous_response_id
    continues = bool(named or previous)
    messages = _messages(parsed, answers, continues=continues, stored=stored)
    choice = plain_choice(parsed.tool_choice)
    offered = apply_choice(read_tools(parsed.tools or []), choice)
    wire = {"echo": objects.echo_request(body | {"tool_choice": choice}), "conversation": named}
    if offered.named:
        wire["named"] = msgspec.to_builtins(offered.named)
    return RunRequest(
        dialect=NAME,
        model=(parsed.model or "").strip(),
        messages=messages,
        request_id=request_id,
        known="id" if continues and len(messages) > 1 else "none",
        parent_run_id=previous and objects.parse_run_id(previous),
        tools=offered.tools,
        server_tools=offered.server_tools,
        servers=offered.servers,
        needs=offered.needs,
        search=offered.search,
        tool_choice=_limited(offered.tool_choice, parsed),
        instructions=parsed.instructions or "",
        answers=answers,
        generation=_generation(parsed),
        truncation=parsed.truncation or "auto",
        stored=stored,
        wire=wire,
        **client_inputs.session_thread(named),
    )


def _check(parsed: ResponsesBody) -> None:
    """Refuse members that we could only ignore."""
    if parsed.previous_response_id and parsed.conversation:
        raise InvalidRequest(
            "Send previous_response_id or conversation, not both.", code="conversation_ambiguous"
        )
    if parsed.background and parsed.store is False:
        raise _unsupported("background", "needs store: true, else there is nothing to come back to")
    if _LOGPROBS in (parsed.include or ()):
        raise _unsupported("include", "may not ask for logprobs, which are not told here")
    for name, taken in SETTLED.items():
        value = getattr(parsed, name)
        if value is not None and value not in taken:
            raise _unsupported(name, "is not supported here")


def _unsupported(field: str, why: str) -> InvalidRequest:
    return InvalidRequest(f"{field} {why}.", code="unsupported_parameter", param=field)


def _messages(
    parsed: ResponsesBody, answers: Sequence[InterruptAnswer], *, continues: bool, stored: bool
) -> tuple[InputMessage, ...]:
    """Return the messages; raise InvalidRequest `invalid_input` if there is nothing to go on from.

    A client that answers a request for approval without a conversation sends all messages that led to
    it: those stored here are known, and the run goes on at the request.
    """
    repeats = bool(answers) and stored and not continues
    messages = tuple(input_items.parse_messages(parsed.input, after_requests=repeats))
    if not (messages or answers or continues):
        raise InvalidRequest("input must say something.", code="invalid_input", param="input")
    return messages


def _limited(choice: ToolChoice, parsed: ResponsesBody) -> ToolChoice:
    one_by_one = parsed.parallel_tool_calls is False
    return replace(choice, one_by_one=one_by_one, most_calls=parsed.max_tool_calls)


def _generation(parsed: ResponsesBody) -> Generation:
    thinking, text = parsed.reasoning or Reasoning(), parsed.text or Text()
    summary = thinking.summary or thinking.generate_summary
    return make_generation(
        parsed,
        max_tokens=parsed.max_output_tokens,
        json_schema=_schema(text.format),
        reasoning=nearest_effort(thinking.effort),
        verbosity=None if text.verbosity == "medium" else text.verbosity,
        reasoning_summary=None if summary == "auto" else summary,
    )


def _schema(form: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return the schema of the answer, with the client's description of it."""
    schema, description = answer_schema(form), form.get("description") if form else None
    if schema is None or not isinstance(description, str) or "description" in schema:
        return schema
    return schema | {"description": description}
