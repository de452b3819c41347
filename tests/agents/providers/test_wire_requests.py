"""How one conversation is written on each provider wire, word for word."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agents.providers.base import (
    ChatMessage,
    ImagePart,
    ModelRequest,
    ReasoningBlock,
    ToolCall,
    ToolSpec,
)
from agents.providers.gemini_schema import gemini_schema
from agents.providers.schemas import close_objects, is_strict
from agents.providers.tool_names import ToolNames
from tests.support.fakes import fake_anthropic
from tests.support.fakes.fake_gemini import SCHEMA
from tests.support.fakes.wires import SEARCH, WIRES, replace_request

PIXEL = ImagePart("image/png", "iVBORw0KGgo=")
LINKED = ImagePart("image/jpeg", url="https://images.example/1.jpg")
SEARCHED = ToolCall("call_1", "gymbro.exercise.search", '{"query":"卧推"}')
TIMED = ToolCall("call_2", "clock", "")
ITEM = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "eA=="}
THOUGHTS = (
    ReasoningBlock("openai.chat_completions", {"reasoning_content": "Hm."}),
    ReasoningBlock("openai.responses", {"item": ITEM, "before": "call_2"}),
    ReasoningBlock("openai.responses", {"item": ITEM | {"id": "rs_2"}}),
    ReasoningBlock("anthropic.messages", {"type": "redacted_thinking", "data": "eA=="}),
    ReasoningBlock("gemini.generate_content", {"thoughtSignature": "eA==", "call": "call_1"}),
    ReasoningBlock("gemini.generate_content", {"thoughtSignature": "eQ=="}),
)
CONVERSATION = ModelRequest(
    messages=(
        ChatMessage("system", "Be brief."),
        ChatMessage("user", "Look.", images=(PIXEL, LINKED)),
        ChatMessage("assistant", "I look.", tool_calls=(SEARCHED, TIMED), reasoning=THOUGHTS),
        ChatMessage("tool", '{"items":[]}', images=(PIXEL,), tool_call_id="call_1"),
        ChatMessage("tool", "noon", tool_call_id="call_2"),
    ),
    tools=(SEARCH,),
)


def first_form(wire: str, request: ModelRequest) -> dict[str, Any]:
    return dict(WIRES[wire].wire.forms("m", request, ToolNames.of(request))[0])


def test_a_conversation_as_openai_chat_completions() -> None:
    data = "data:image/png;base64,iVBORw0KGgo="
    function = {"description": "Finds exercises.", "parameters": SEARCH.parameters}
    assert first_form("openai.chat_completions", CONVERSATION) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image_url", "image_url": {"url": data}},
                    {"type": "image_url", "image_url": {"url": "https://images.example/1.jpg"}},
                ],
            },
            {
                "role": "assistant",
                "content": "I look.",
                "reasoning_content": "Hm.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "gymbro_exercise_search", "arguments": '{"query":"卧推"}'},
                    },
                    {
                        "id": "call_2",
                        "type": "function",
                        "function": {"name": "clock", "arguments": "{}"},
                    },
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": '{"items":[]}'},
            {"role": "tool", "tool_call_id": "call_2", "content": "noon"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What the tool showed:"},
                    {"type": "image_url", "image_url": {"url": data}},
                ],
            },
        ],
        "tools": [{"type": "function", "function": {"name": "gymbro_exercise_search"} | function}],
    }


def test_a_conversation_as_openai_responses() -> None:
    pixel = {
        "type": "input_image",
        "image_url": "data:image/png;base64,iVBORw0KGgo=",
        "detail": "auto",
    }
    assert first_form("openai.responses", CONVERSATION) == {
        "model": "m",
        "stream": True,
        "store": False,
        "reasoning": {"summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "input": [
            {
                "type": "message",
                "role": "system",
                "content": [{"type": "input_text", "text": "Be brief."}],
            },
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "Look."},
                    pixel,
                    pixel | {"image_url": "https://images.example/1.jpg"},
                ],
            },
            ITEM | {"id": "rs_2"},
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "I look."}],
            },
            {
                "type": "function_call",
                "call_id": "call_1",
                "name": "gymbro_exercise_search",
                "arguments": '{"query":"卧推"}',
            },
            ITEM,
            {"type": "function_call", "call_id": "call_2", "name": "clock", "arguments": "{}"},
            {
                "type": "function_call_output",
                "call_id": "call_1",
                "output": [{"type": "input_text", "text": '{"items":[]}'}, pixel],
            },
            {"type": "function_call_output", "call_id": "call_2", "output": "noon"},
        ],
        "tools": [
            {
                "type": "function",
                "name": "gymbro_exercise_search",
                "description": "Finds exercises.",
                "parameters": SEARCH.parameters,
                "strict": False,
            }
        ],
    }


def test_a_conversation_as_anthropic_messages() -> None:
    kept = {"cache_control": {"type": "ephemeral"}}
    pixel = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
    linked = {"type": "url", "url": "https://images.example/1.jpg"}
    assert first_form("anthropic.messages", CONVERSATION) == {
        "model": "m",
        "stream": True,
        "max_tokens": 8192,
        "system": [{"type": "text", "text": "Be brief."} | kept],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Look."},
                    {"type": "image", "source": pixel},
                    {"type": "image", "source": linked},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "redacted_thinking", "data": "eA=="},
                    {"type": "text", "text": "I look."},
                    {
                        "type": "tool_use",
                        "id": "call_1",
                        "name": "gymbro_exercise_search",
                        "input": {"query": "卧推"},
                    },
                    {"type": "tool_use", "id": "call_2", "name": "clock", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_1",
                        "content": [
                            {"type": "text", "text": '{"items":[]}'},
                            {"type": "image", "source": pixel},
                        ],
                    },
                    {
                        "type": "tool_result",
                        "tool_use_id": "call_2",
                        "content": [{"type": "text", "text": "noon"}],
                    }
                    | kept,
                ],
            },
        ],
        "tools": [
            {
                "name": "gymbro_exercise_search",
                "description": "Finds exercises.",
                "input_schema": SEARCH.parameters,
            }
        ],
    }


def test_calls_of_before_are_named_to_anthropic_where_no_tools_are_offered() -> None:
    spoken = replace_request(CONVERSATION, tools=())
    forms = WIRES["anthropic.messages"].wire.forms("m", spoken, ToolNames.of(spoken))
    assert [[tool["name"] for tool in form["tools"]] for form in forms] == [
        ["gymbro_exercise_search", "clock"] for _ in forms
    ]
    assert all(form["tool_choice"] == {"type": "none"} for form in forms)
    assert not [fault for form in forms for fault in fake_anthropic.faults(form)]
    formed = replace_request(spoken, json_schema={"type": "object", "additionalProperties": True})
    forced = first_form("anthropic.messages", formed)
    assert ([tool["name"] for tool in forced["tools"]], forced["tool_choice"]) == (
        ["parley_answer"],
        {"type": "any"},
    )


def test_a_conversation_as_gemini_generate_content() -> None:
    pixel = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}
    linked = {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://images.example/1.jpg"}}
    searched = {"id": "call_1", "name": "gymbro_exercise_search"}
    clock = {"id": "call_2", "name": "clock"}
    assert first_form("gemini.generate_content", CONVERSATION) == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Look."}, pixel, linked]},
            {
                "role": "model",
                "parts": [
                    {"text": "I look.", "thoughtSignature": "eQ=="},
                    {"functionCall": searched | {"args": {"query": "卧推"}}, "thoughtSignature": "eA=="},
                    {"functionCall": clock | {"args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": searched | {"response": {"items": []}}},
                    {"functionResponse": clock | {"response": {"result": "noon"}}},
                    pixel,
                ],
            },
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "gymbro_exercise_search",
                        "description": "Finds exercises.",
                        "parameters": SEARCH.parameters,
                    }
                ]
            }
        ],
        "generationConfig": {"thinkingConfig": {"includeThoughts": True}},
    }


PARAMETERS: dict[str, dict[str, Any]] = {
    "openai.chat_completions": {
        "temperature": 1.5,
        "top_p": 0.9,
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "max_tokens": 4000,
        "stop": ["END"],
        "seed": 7,
    },
    "openai.responses": {"temperature": 1.5, "top_p": 0.9, "max_output_tokens": 4000},
    "anthropic.messages": {"temperature": 1.0, "max_tokens": 4000, "stop_sequences": ["END"]},
    "gemini.generate_content": {
        "temperature": 1.5,
        "topP": 0.9,
        "frequencyPenalty": 0.1,
        "presencePenalty": 0.2,
        "maxOutputTokens": 4000,
        "stopSequences": ["END"],
        "seed": 7,
    },
}


@pytest.mark.parametrize("wire", PARAMETERS)
def test_what_was_asked_is_sent_as_far_as_the_wire_has_words_for_it(wire: str) -> None:
    plain = ModelRequest(messages=(ChatMessage("user", "Hi."),))
    given = replace_request(
        plain,
        temperature=1.5,
        top_p=0.9,
        frequency_penalty=0.1,
        presence_penalty=0.2,
        max_tokens=4000,
        stop=("END",),
        seed=7,
    )
    before, after = first_form(wire, plain), first_form(wire, given)
    if wire == "gemini.generate_content":
        before, after = before["generationConfig"], after["generationConfig"]
    assert {word: value for word, value in after.items() if before.get(word) != value} == (
        PARAMETERS[wire]
    )


@pytest.mark.parametrize(
    ("wire", "effort"),
    [
        ("openai.chat_completions", {"reasoning_effort": "low"}),
        ("openai.responses", {"reasoning": {"summary": "auto", "effort": "low"}}),
        (
            "anthropic.messages",
            {
                "thinking": {"type": "adaptive", "display": "summarized"},
                "output_config": {"effort": "low"},
                "max_tokens": 8192 + 2048,
            },
        ),
        (
            "gemini.generate_content",
            {"generationConfig": {"thinkingConfig": {"includeThoughts": True, "thinkingLevel": "LOW"}}},
        ),
    ],
)
def test_effort_is_asked_for_in_the_words_of_the_wire(wire: str, effort: dict[str, Any]) -> None:
    plain = ModelRequest(messages=(ChatMessage("user", "Hi."),))
    before, after = first_form(wire, plain), first_form(wire, replace_request(plain, reasoning="low"))
    assert {word: value for word, value in after.items() if before.get(word) != value} == effort


# --- names ---------------------------------------------------------------------------------------

TAKEN = st.text(st.characters(codec="utf-8"), max_size=80) | st.sampled_from(
    ["a.b", "a_b", "a-b", "a.b.", "a_b_", "9lives", "搜索", "搜.索", "", ".", "_", "x" * 64, "x" * 65]
)


@given(st.sets(TAKEN, max_size=12))
def test_every_name_is_one_that_providers_take_and_comes_back(ours: set[str]) -> None:
    names = ToolNames(ours)
    sent = [names.to_provider(name) for name in ours]
    assert len(set(sent)) == len(ours)
    assert [names.from_provider(name) for name in sent] == list(ours)
    for name in sent:
        assert 1 <= len(name) <= 64
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")
        assert name[0].isalpha() or name[0] == "_"


def test_a_name_that_fits_is_never_changed_by_the_others() -> None:
    names = ToolNames(["a.b", "a_b", "gymbro.exercise.search"])
    assert names.to_provider("a_b") == "a_b"
    assert names.to_provider("a.b").startswith("a_b_")
    assert names.to_provider("gymbro.exercise.search") == "gymbro_exercise_search"
    assert names.from_provider("never_offered") == "never_offered"


# --- schemas -------------------------------------------------------------------------------------

RECURSIVE = {
    "type": "object",
    "$defs": {
        "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {}}},
        "a/b~c": {"enum": ["x"]},
    },
    "properties": {"root": {"$ref": "#/$defs/node"}, "odd": {"$ref": "#/$defs/a~1b~0c"}},
}


def test_a_schema_as_gemini_takes_it() -> None:
    given = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "kind": {"type": ["string", "null"], "description": "What kind."},
            "level": {"enum": [1, 2], "type": "integer", "description": "How high."},
            "unit": {"const": "kg"},
            "when": {"type": "string", "format": "date-time", "examples": ["now"]},
            "mail": {"type": "string", "format": "email", "minLength": 3},
            "sizes": {"type": "array", "items": {"type": "number", "exclusiveMinimum": 0}},
            "pair": {"type": "array", "prefixItems": [{"type": "boolean"}]},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "maybe": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "null"}], "description": "Where."},
            "both": {
                "allOf": [
                    {"properties": {"a": {"type": "string"}}},
                    {"properties": {"b": {"type": "string"}}},
                ]
            },
            "free": {"type": "object", "additionalProperties": True},
        },
        "required": ["kind", "gone"],
        "$defs": {"place": {"type": "object", "properties": {"city": {"type": "string"}}}},
    }
    city = {"type": "object", "properties": {"city": {"type": "string"}}}
    assert gemini_schema(given) == {
        "type": "object",
        "properties": {
            "kind": {"type": "string", "nullable": True, "description": "What kind."},
            "level": {"type": "integer", "description": "How high. One of: 1, 2."},
            "unit": {"type": "string", "enum": ["kg"], "format": "enum"},
            "when": {"type": "string", "format": "date-time"},
            "mail": {"type": "string", "minLength": 3},
            "sizes": {"type": "array", "items": {"type": "number"}},
            "pair": {"type": "array", "items": {"type": "boolean"}},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "maybe": city | {"nullable": True, "description": "Where."},
            "both": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
            },
            "free": {"type": "object"},
        },
        "required": ["kind"],
    }


def test_a_schema_that_holds_itself_ends_somewhere() -> None:
    cut = gemini_schema(RECURSIVE)
    assert cut["properties"]["odd"] == {"type": "string", "enum": ["x"], "format": "enum"}
    node = cut["properties"]["root"]["properties"]
    assert node == {"next": {"type": "object"}, "n": {"type": "string"}}
    assert Draft202012Validator(SCHEMA).is_valid(cut)


def test_a_schema_that_doubles_with_every_reference_stays_small() -> None:
    """Tools come from clients too."""
    two = [{"a": {"$ref": f"#/$defs/{n + 1}"}, "b": {"$ref": f"#/$defs/{n + 1}"}} for n in range(40)]
    doubling = {"$ref": "#/$defs/0", "$defs": {str(n): {"properties": p} for n, p in enumerate(two)}}
    assert len(str(gemini_schema(doubling))) < 1_000_000


JSON = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["a", "#", "#/$defs/a", ""])
TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "object", "null"])
SCHEMAS = st.recursive(
    st.fixed_dictionaries({}, optional={"type": TYPES | st.lists(TYPES, max_size=3)}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, max_size=3),
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
            "items": inner | st.lists(inner, max_size=2),
            "anyOf": st.lists(inner, max_size=3),
            "oneOf": st.lists(inner, max_size=3),
            "allOf": st.lists(inner, max_size=3),
            "enum": st.lists(JSON, max_size=3),
            "const": JSON,
            "required": st.lists(st.sampled_from("abc"), max_size=3),
            "$ref": st.sampled_from(["#", "#/properties/a", "#/nowhere", "https://x.example/"]),
            "format": st.sampled_from(["email", "date-time", "int32"]),
            "additionalProperties": st.booleans() | inner,
            "prefixItems": st.lists(inner, max_size=2),
        },
    ),
    max_leaves=12,
)


@given(SCHEMAS)
def test_whatever_the_schema_gemini_takes_what_is_left_of_it(schema: dict[str, Any]) -> None:
    errors = [error.message for error in Draft202012Validator(SCHEMA).iter_errors(gemini_schema(schema))]
    assert errors == []


def test_a_tool_without_parameters_has_none_on_the_wire() -> None:
    request = ModelRequest(
        messages=(ChatMessage("user", "Hi."),), tools=(ToolSpec("now", "Says it.", {}),)
    )
    (told,) = first_form("gemini.generate_content", request)["tools"]
    assert told == {"functionDeclarations": [{"name": "now", "description": "Says it."}]}


def test_a_schema_is_strict_only_where_openai_would_take_it_so() -> None:
    inner = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    strict = inner | {"properties": {"a": inner}, "required": ["a"]}
    assert is_strict(strict)
    assert not is_strict(strict | {"required": []})
    assert not is_strict(strict | {"properties": {"a": inner | {"additionalProperties": True}}})
    assert not is_strict({"type": "object"})
    assert not is_strict({"$defs": {"a": {"type": "object"}}, "type": "string"})


def test_a_schema_for_anthropic_is_closed_and_without_limits() -> None:
    given = {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer", "minimum": 3},
            "list": {"type": "array", "items": {"properties": {"a": True}}, "maxItems": 2},
        },
        "anyOf": [{"type": "object"}],
    }
    assert close_objects(given) == {
        "type": "object",
        "properties": {
            "minimum": {"type": "integer"},
            "list": {
                "type": "array",
                "items": {"properties": {"a": True}, "additionalProperties": False},
            },
        },
        "anyOf": [{"type": "object", "additionalProperties": False}],
        "additionalProperties": False,
    }
