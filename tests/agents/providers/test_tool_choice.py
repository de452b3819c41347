"""Which tool must be called, and how many at once, as each provider wire says it."""

from __future__ import annotations

from typing import Any

import pytest

from agents.providers.base import ModelRequest, ToolSpec, first_unsupported
from agents.providers.exchange import _forms
from agents.providers.tool_names import ToolNames
from agents.requests import Generation
from tests.support.fakes import fake_anthropic, fake_gemini, fake_responses
from tests.support.fakes.wires import SEARCH, WEATHER, WIRES, asked

STRICT = ToolSpec(
    "strict",
    "Takes one city.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
    strict=True,
)
FAULTS: dict[str, Any] = {
    "openai.responses": fake_responses.faults,
    "anthropic.messages": fake_anthropic.faults,
    "gemini.generate_content": fake_gemini.faults,
}


def forms(wire: str, request: ModelRequest) -> list[dict[str, Any]]:
    """Every form of the request, none of which its provider would refuse as malformed."""
    found = _forms(WIRES[wire].wire, "m", request, ToolNames.of(request))
    assert not [fault for form in found if wire in FAULTS for fault in FAULTS[wire](form)]
    return found


ANY = {
    "openai.chat_completions": ("tool_choice", "required"),
    "openai.responses": ("tool_choice", "required"),
    "anthropic.messages": ("tool_choice", {"type": "any"}),
    "gemini.generate_content": ("toolConfig", {"functionCallingConfig": {"mode": "ANY"}}),
}
NAMED = {
    "openai.chat_completions": (
        "tool_choice",
        {"type": "function", "function": {"name": "gymbro_exercise_search"}},
    ),
    "openai.responses": ("tool_choice", {"type": "function", "name": "gymbro_exercise_search"}),
    "anthropic.messages": ("tool_choice", {"type": "tool", "name": "gymbro_exercise_search"}),
    "gemini.generate_content": (
        "toolConfig",
        {
            "functionCallingConfig": {
                "mode": "ANY",
                "allowedFunctionNames": ["gymbro_exercise_search"],
            }
        },
    ),
}


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(("must_call", "said"), [("", ANY), (SEARCH.name, NAMED)])
def test_a_tool_that_must_be_called_is_asked_for_in_every_form(
    wire: str, must_call: str, said: dict[str, tuple[str, Any]]
) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    for more in ({}, {"reasoning": "high"}, {"json_schema": schema}):
        request = asked(SEARCH, WEATHER, must_call=must_call, **more)
        name, value = said[wire]
        assert [form[name] for form in forms(wire, request)] == [value] * len(forms(wire, request))


@pytest.mark.parametrize("wire", WIRES)
def test_nothing_is_said_where_the_model_may_choose(wire: str) -> None:
    for form in forms(wire, asked(SEARCH)):
        assert not {"tool_choice", "toolConfig", "parallel_tool_calls"} & form.keys()


@pytest.mark.parametrize(
    ("wire", "name", "value"),
    [
        ("openai.chat_completions", "parallel_tool_calls", False),
        ("openai.responses", "parallel_tool_calls", False),
        ("anthropic.messages", "tool_choice", {"type": "auto", "disable_parallel_tool_use": True}),
    ],
)
def test_one_call_at_a_time_is_asked_for_first_and_then_seen_to(
    wire: str, name: str, value: Any
) -> None:
    found = forms(wire, asked(SEARCH, one_by_one=True))
    assert found[0][name] == value
    assert name not in found[-1]
    both = forms(wire, asked(SEARCH, one_by_one=True, must_call=""))
    assert both[-1]["tool_choice"] == ANY[wire][1]


def test_a_strict_tool_is_told_to_openai_and_told_again_without() -> None:
    first, *_, last = forms("openai.chat_completions", asked(STRICT, SEARCH))
    assert [tool["function"].get("strict") for tool in first["tools"]] == [True, None]
    assert [tool["function"].get("strict") for tool in last["tools"]] == [None, None]
    first = forms("openai.responses", asked(STRICT, SEARCH))[0]
    assert [tool["strict"] for tool in first["tools"]] == [True, False]
    loose = ToolSpec("loose", "", {"type": "object", "properties": {"a": {}}}, strict=True)
    told = forms("openai.responses", asked(loose))[0]["tools"]
    assert [tool["strict"] for tool in told] == [False], "OpenAI refuses such a schema as strict"


def test_verbosity_and_summary_are_said_by_the_wires_that_can() -> None:
    wordy = asked(verbosity="low", reasoning_summary="detailed")
    assert {form["verbosity"] for form in forms("openai.chat_completions", wordy)} == {"low"}
    told = forms("openai.responses", wordy)
    assert all(form["text"] == {"verbosity": "low"} for form in told)
    assert told[0]["reasoning"] == {"summary": "detailed"}
    wanted = Generation(verbosity="high"), Generation(reasoning_summary="concise"), Generation()
    assert [[first_unsupported(wire, one) for one in wanted] for wire in WIRES] == [
        [None, "reasoning_summary", None],
        [None, None, None],
        ["verbosity", "reasoning_summary", None],
        ["verbosity", "reasoning_summary", None],
    ]
