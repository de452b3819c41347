"""A body of OpenAI's Chat Completions as a RunRequest.

A field that changes the answer is obeyed or refused by its name, also an unknown one. Fields that only
concern OpenAI itself (its caches, its tiers, its dashboards) are accepted and ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

from msgspec.structs import replace
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from agents.dialects.field_errors import validate_body
from agents.dialects.generation import Whole, answer_schema, make_generation, nearest_effort
from agents.dialects.openai_chat.messages import MOST_MESSAGES, parse_messages
from agents.dialects.openai_responses.tools import MOST_TOOLS, Tools, apply_choice
from agents.requests import ClientTool, Generation, RunRequest
from config.errors import InvalidRequest

NAME: Final = "chat-completions"

_Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
_Stop = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_Penalty = Annotated[float, Field(ge=-2, le=2)]
_Tokens = Annotated[Whole, Field(ge=1, le=10_000_000)]
_Asked = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
_LONGEST_KEY: Final = 64


class _Part(BaseModel):
    """A shape with open ends; its known members must have the declared types."""

    model_config = ConfigDict(extra="ignore", strict=True, hide_input_in_errors=True)


class Function(_Part):
    name: _Name
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(_Part):
    type: Literal["function"]
    function: Function


class StreamOptions(_Part):
    include_usage: bool | None = None


class CompletionBody(_Part):
    """The fields that mean something to us."""

    messages: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MOST_MESSAGES)]
    model: str | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    max_tokens: _Tokens | None = None
    max_completion_tokens: _Tokens | None = None
    stop: _Stop | Annotated[list[_Stop], Field(max_length=16)] | None = None
    seed: Annotated[Whole, Field(ge=-(2**31), lt=2**31)] | None = None
    response_format: dict[str, Any] | None = None
    reasoning_effort: _Asked | None = None
    verbosity: Literal["low", "medium", "high"] | None = None
    tools: Annotated[list[Tool], Field(max_length=MOST_TOOLS)] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    store: bool | None = None
    metadata: Annotated[dict[str, str], Field(max_length=16)] | None = None


REFUSED: Final[dict[str, tuple[tuple[Any, ...], str]]] = {
    "n": ((1,), "one answer is made, so it must be 1"),
    "logprobs": ((False,), "probabilities of tokens are not known here"),
    "top_logprobs": ((0,), "probabilities of tokens are not known here"),
    "logit_bias": (({},), "not every provider has it"),
    "modalities": ((["text"],), "answers are text"),
    "audio": ((), "answers are text"),
    "functions": (([],), "it is superseded: send tools"),
    "function_call": ((), "it is superseded: send tool_choice"),
    "web_search_options": ((), "whether the web is searched is the server's to say"),
    "moderation": ((), "nothing is moderated here"),
}
"""Unsupported fields: the values that request nothing, and the reason why others are refused."""

IGNORED: Final = frozenset(
    {
        "prediction",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "safety_identifier",
        "service_tier",
        "user",
    }
)
_KNOWN: Final = CompletionBody.model_fields.keys() | REFUSED.keys() | IGNORED


def parse(body: dict[str, Any], *, request_id: str) -> RunRequest:
    """Return the canonical request; raise InvalidRequest, with field errors or the `param` at fault."""
    _check_known(body)
    parsed = validate_body(CompletionBody, body, "chat completion request")
    generation, offered = _generation(parsed), _offered(parsed)
    options = parsed.stream_options
    return RunRequest(
        dialect=NAME,
        model=(parsed.model or "").strip(),
        messages=tuple(parse_messages(parsed.messages)),
        request_id=request_id,
        metadata=dict(parsed.metadata or {}),
        tools=offered.tools,
        server_tools=offered.server_tools,
        tool_choice=offered.tool_choice,
        generation=generation,
        stored=parsed.store is not False,
        on_disconnect="cancel",
        wire={
            "model": parsed.model or "",
            "usage": options is not None and options.include_usage is True,
            "form": generation.json_schema is not None,
        },
    )


def _check_known(body: dict[str, Any]) -> None:
    for name in body:
        if name not in _KNOWN:
            shown = name[:_LONGEST_KEY]
            raise InvalidRequest(f"{shown} is not known here.", code="unknown_parameter", param=shown)
    for name, (taken, why) in REFUSED.items():
        value = body.get(name)
        if value is not None and value not in taken:
            raise InvalidRequest(
                f"{name} is not supported: {why}.", code="unsupported_parameter", param=name
            )


def _offered(parsed: CompletionBody) -> Tools:
    """Return the client's tools and the choice between them, as for Responses."""
    found = apply_choice(Tools(tuple(_tools(parsed.tools or []))), _choice(parsed.tool_choice))
    one_by_one = parsed.parallel_tool_calls is False
    return replace(found, tool_choice=replace(found.tool_choice, one_by_one=one_by_one))


def _choice(choice: Any) -> Any:
    """Return a `tool_choice` in the form of Responses, in which a function's name has no wrapper."""
    match choice:
        case {"type": "function", "function": {"name": str(name)}}:
            return {"type": "function", "name": name}
        case {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(listed)}}:
            return {"type": "allowed_tools", "mode": mode, "tools": [_choice(one) for one in listed]}
    return choice


def _tools(tools: list[Tool]) -> Iterator[ClientTool]:
    seen: set[str] = set()
    for place, tool in enumerate(tools):
        function = tool.function
        if function.name in seen:
            where = f"tools[{place}].function.name"
            raise InvalidRequest(
                f"{where} is that of another tool too.", code="duplicate_tool", param=where
            )
        seen.add(function.name)
        yield ClientTool(
            function.name,
            function.description or "",
            function.parameters or {},
            strict=function.strict is True,
        )


def _generation(parsed: CompletionBody) -> Generation:
    return make_generation(
        parsed,
        max_tokens=_most(parsed),
        json_schema=answer_schema(parsed.response_format),
        reasoning=nearest_effort(parsed.reasoning_effort),
        verbosity=None if parsed.verbosity == "medium" else parsed.verbosity,
    )


def _most(parsed: CompletionBody) -> int | None:
    """Return the limit of the answer, under its new name or its old one."""
    limits = {parsed.max_tokens, parsed.max_completion_tokens} - {None}
    if len(limits) > 1:
        raise InvalidRequest(
            "Send max_completion_tokens or max_tokens, not both.",
            code="unsupported_parameter",
            param="max_tokens",
        )
    return limits.pop() if limits else None
