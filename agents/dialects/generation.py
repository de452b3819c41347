"""The parameters of an answer in a request: `generation` and `response_format`.

The text run has them as members, RunAgentInput in `forwardedProps` (also in camelCase). They override
the mapping, except that a request never gets more tokens than the mapping allows.
"""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

from agents.dialects.field_errors import validate_body
from agents.dialects.wire import optional_text
from agents.json_schemas.answer_format import ANY_OBJECT, invalid_form, require_object_schema
from agents.requests import Effort, Generation


def to_integer(value: object) -> object:
    """Return an integer by JSON Schema's rule: 5.0 is one, from apps whose only numbers are doubles."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(to_integer)]
_Stop = Annotated[str, StringConstraints(min_length=1, max_length=256)]
_Penalty = Annotated[float, Field(ge=-2, le=2)]


class GenerationBody(BaseModel):
    """The member `generation`; the mapping supplies what it leaves out."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        alias_generator=to_camel,
        populate_by_name=True,
    )

    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    frequency_penalty: _Penalty | None = None
    presence_penalty: _Penalty | None = None
    max_tokens: Annotated[Whole, Field(ge=1, le=10_000_000)] | None = None
    stop: _Stop | Annotated[list[_Stop], Field(max_length=16)] | None = None
    seed: Annotated[Whole, Field(ge=-(2**31), lt=2**31)] | None = None
    reasoning_effort: Effort | None = None
    reasoning_budget: Annotated[Whole, Field(ge=1, le=1_000_000)] | None = None


def nearest_effort(effort: str | None) -> Effort | None:
    """Return the nearest of our efforts; `none` is the model's default."""
    match effort:
        case "minimal" | "low" | "medium" | "high":
            return effort
        case "xhigh" | "max":
            return "high"
    return None


_SHARED: Final = {
    "temperature",
    "top_p",
    "frequency_penalty",
    "presence_penalty",
    "max_tokens",
    "stop",
    "seed",
    "reasoning_budget",
}
"""The parameters that several bodies have under the same names."""


def make_generation(body: BaseModel, **more: Any) -> Generation:
    """Return the parameters of a body; `more` are those that it has under names of its own."""
    parameters = body.model_dump(include=_SHARED)
    stop = parameters.get("stop") or ()
    parameters["stop"] = (stop,) if isinstance(stop, str) else tuple(stop)
    return Generation(**parameters | more)


def parse_generation(body: GenerationBody | None, response_format: object = None) -> Generation:
    """Return the requested parameters; raise InvalidRequest `invalid_response_format`."""
    body, schema = body or GenerationBody(), answer_schema(response_format)
    return make_generation(body, json_schema=schema, reasoning=body.reasoning_effort)


def forwarded_options(forwarded_props: Any) -> dict[str, Any]:
    """Return the fields of a RunRequest that `forwardedProps` sets; raise InvalidRequest."""
    props = forwarded_props if isinstance(forwarded_props, dict) else {}
    return {
        "model": optional_text(props, "model").strip(),
        "forwarded_props": forwarded_props,
        "generation": _forwarded_generation(props),
        "on_disconnect": "cancel" if props.get("onDisconnect") == "cancel" else "continue",
    }


def _forwarded_generation(props: dict[str, Any]) -> Generation:
    value, place = props.get("generation"), ("forwardedProps", "generation")
    body = None if value is None else validate_body(GenerationBody, value, "RunAgentInput", at=place)
    return parse_generation(body, props.get("responseFormat", props.get("response_format")))


def answer_schema(response_format: object) -> dict[str, Any] | None:
    """Return the schema of a `response_format`, in either of OpenAI's shapes; None for plain text."""
    match response_format:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return ANY_OBJECT
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return require_object_schema(schema)
        case {"type": "json_schema", "schema": dict(schema)}:
            return require_object_schema(schema)
    raise invalid_form(
        'response_format must be {"type": "json_schema", "json_schema": {"schema": {…}}}, '
        '{"type": "json_object"} or {"type": "text"}.'
    )
