"""Bodies of Chat Completions as real clients send them, and what is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace
from openai.types.chat import completion_create_params

from agents.dialects.openai_chat import dialect as chat_completions
from agents.dialects.openai_chat.request import CompletionBody
from agents.json_schemas.answer_format import ANY_OBJECT
from agents.requests import AskedCall, Generation, InputMessage, RunRequest, Upload
from config import errors
from config.errors import InvalidRequest

CREATE = completion_create_params.CompletionCreateParamsBase.__annotations__
USER = {"role": "user", "content": "hi"}
IMAGE = "data:image/png;base64,iVBORw0KGgo="
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FUNCTION = {"name": "get_weather", "description": "The weather.", "parameters": SCHEMA}
TOOL = {"type": "function", "function": FUNCTION}
CALL = {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL]}
ANSWER = {"role": "tool", "tool_call_id": "call_1", "content": "21 °C"}


def parsed(**body: Any) -> RunRequest:
    return chat_completions.parse({"model": "demo", "messages": [USER]} | body, request_id="r")


def said(*messages: dict[str, Any]) -> tuple[InputMessage, ...]:
    return parsed(messages=list(messages)).messages


def refused(**body: Any) -> dict[str, Any]:
    with pytest.raises(InvalidRequest) as caught:
        parsed(**body)
    told: dict[str, Any] = errors.body(caught.value, "/v1/chat/completions")["error"]
    return told


def test_the_least_that_a_client_sends() -> None:
    assert parsed() == RunRequest(
        "chat-completions",
        "demo",
        (InputMessage("user", "hi"),),
        "r",
        on_disconnect="cancel",
        wire={"model": "demo", "usage": False, "form": False},
    )


def test_every_role_and_part() -> None:
    parts = [
        {"type": "text", "text": "what is"},
        {"type": "text", "text": "it?"},
        {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
    ]
    refusal = {"role": "assistant", "content": [{"type": "refusal", "refusal": "I can't."}]}
    place = "messages[2].content[2]"
    assert said(
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "Be kind."}]},
        {"role": "user", "content": parts, "name": "Ada"},
        ASKED,
        ANSWER,
        {"role": "assistant", "content": "21 °C.", "refusal": None, "annotations": []},
        refusal,
        {"role": "assistant", "content": None, "refusal": "Nor that."},
    ) == (
        InputMessage("system", "Be brief."),
        InputMessage("developer", "Be kind."),
        InputMessage(
            "user",
            "what is\nit?",
            name="Ada",
            uploads=(Upload("image/png", data="iVBORw0KGgo=", place=f"{place}.image_url.url"),),
            layout=(7, 3, None),
        ),
        InputMessage("assistant", "", tool_calls=(AskedCall("call_1", "get_weather", "{}"),)),
        InputMessage("tool", "21 °C", tool_call_id="call_1"),
        InputMessage("assistant", "21 °C."),
        InputMessage("assistant", "I can't."),
        InputMessage("assistant", "Nor that."),
    )


def test_an_assistant_s_message_as_clients_bring_it_back() -> None:
    """As litellm's `model_dump()`, and with what DeepSeek's clients keep of the reasoning."""
    message = ASKED | {
        "tool_calls": [CALL | {"index": 0}],
        "function_call": None,
        "audio": None,
        "provider_specific_fields": {"refusal": None},
        "reasoning_content": "Hm.",
    }
    assert said(USER, message, ANSWER)[1:3] == (
        InputMessage("reasoning", "Hm."),
        InputMessage("assistant", "", tool_calls=(AskedCall("call_1", "get_weather", "{}"),)),
    )


def test_everything_that_says_how_to_answer() -> None:
    asked = parsed(
        temperature=0.5,
        top_p=0.9,
        frequency_penalty=0.1,
        presence_penalty=-1,
        max_completion_tokens=100,
        stop="END",
        seed=7,
        reasoning_effort="xhigh",
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "n", "schema": SCHEMA, "strict": True},
        },
        stream=True,
        stream_options={"include_usage": True, "include_obfuscation": False},
        metadata={"order": "7"},
    )
    assert asked.generation == Generation(0.5, 0.9, 0.1, -1, 100, ("END",), 7, SCHEMA, "high")
    assert asked.wire == {"model": "demo", "usage": True, "form": True}
    assert asked.metadata == {"order": "7"}
    assert parsed(max_tokens=100).generation == Generation(max_tokens=100)
    assert parsed(max_tokens=100, max_completion_tokens=100).generation.max_tokens == 100
    assert parsed(stop=["a", "b"]).generation.stop == ("a", "b")
    assert parsed(response_format={"type": "json_object"}).generation.json_schema == ANY_OBJECT
    assert parsed(response_format={"type": "text"}).generation == Generation()


def test_tools() -> None:
    asked = parsed(tools=[TOOL, {"type": "function", "function": {"name": "now"}}])
    assert [tool.name for tool in asked.tools] == ["get_weather", "now"]
    assert asked.tools[0].parameters == SCHEMA


def test_what_asks_for_nothing_is_taken() -> None:
    """Nulls for every optional field, defaults spelt out, and what concerns OpenAI's own house."""
    names = CompletionBody.model_fields.keys() | CREATE.keys()
    nulls = dict.fromkeys(names - {"messages", "model"})
    neutral = {
        "n": 1,
        "logprobs": False,
        "logit_bias": {},
        "modalities": ["text"],
        "service_tier": "auto",
        "user": "u",
        "safety_identifier": "s",
        "prompt_cache_key": "k",
        "prediction": {"type": "content", "content": "x"},
    }
    assert parsed(**nulls) == parsed(**neutral) == parsed()


@pytest.mark.parametrize(
    ("param", "value", "code"),
    [
        ("n", 2, "unsupported_parameter"),
        ("logprobs", True, "unsupported_parameter"),
        ("top_logprobs", 3, "unsupported_parameter"),
        ("logit_bias", {"50256": -100}, "unsupported_parameter"),
        ("modalities", ["text", "audio"], "unsupported_parameter"),
        ("audio", {"voice": "alloy", "format": "wav"}, "unsupported_parameter"),
        ("functions", [FUNCTION], "unsupported_parameter"),
        ("function_call", "auto", "unsupported_parameter"),
        ("web_search_options", {}, "unsupported_parameter"),
        ("moderation", {"model": "m"}, "unsupported_parameter"),
        ("top_k", 5, "unknown_parameter"),
        ("x" * 500, 1, "unknown_parameter"),
        ("temperature", 9, "invalid_request"),
        ("temperature", "0.5", "invalid_request"),
        ("max_tokens", 0, "invalid_request"),
        ("seed", 2**40, "invalid_request"),
        ("messages", [], "invalid_request"),
        ("messages", [USER] * 1_001, "invalid_request"),
        ("tools[0].type", [TOOL | {"type": "custom"}], "invalid_request"),
        ("tools[0].function", [{"type": "function"}], "invalid_request"),
        ("tools[0].function.name", [{"type": "function", "function": {}}], "invalid_request"),
        ("tools[1].function.name", [TOOL, TOOL], "duplicate_tool"),
    ],
)
def test_what_changes_the_answer_is_refused_by_its_name(param: str, value: Any, code: str) -> None:
    error = refused(**{param.partition("[")[0]: value})
    assert (error["param"], error["code"]) == (param[:64], code)
    assert error["param"] in error["message"]
    assert error["type"] == "invalid_request_error"


def test_two_limits_are_one_too_many() -> None:
    assert refused(max_tokens=1, max_completion_tokens=2)["param"] == "max_tokens"


SECRET = "what-was-sent"


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([{"content": SECRET}], "messages[0].role"),
        ([{"role": SECRET, "content": "x"}], "messages[0].role"),
        ([{"role": "function", "name": "f", "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": None}], "messages[0].content"),
        ([{"role": "user", "content": 7}], "messages[0].content"),
        ([{"role": "user", "content": [SECRET]}], "messages[0].content"),
        ([{"role": "user", "content": [{"type": SECRET}]}], "messages[0].content[0].type"),
        ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
        ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].image_url"),
        ([{"role": "user", "content": [{"type": "file"}]}], "messages[0].content[0].file"),
        ([{"role": "system", "content": [{"type": "image_url"}]}], "messages[0].content[0].type"),
        ([USER, {"role": "assistant"}], "messages[1].content"),
        ([USER, {"role": "assistant", "audio": {"id": SECRET}}], "messages[1].audio"),
        ([USER, {"role": "assistant", "function_call": {"name": "f"}}], "messages[1].function_call"),
        ([USER, ASKED | {"tool_calls": SECRET}], "messages[1].tool_calls"),
        ([USER, ASKED | {"tool_calls": [CALL | {"type": "custom"}]}], "messages[1].tool_calls[0].type"),
        ([USER, ASKED | {"tool_calls": [{"id": "x"}]}], "messages[1].tool_calls[0].function"),
        ([USER, ASKED | {"tool_calls": [CALL, CALL]}], "messages[1].tool_calls[1].id"),
        ([USER, ASKED], "messages[1].tool_calls"),
        ([USER, ASKED, USER, ANSWER], "messages[1].tool_calls"),
        ([USER, ANSWER], "messages[1].tool_call_id"),
        ([USER, ASKED, ANSWER, ANSWER], "messages[3].tool_call_id"),
        ([USER, ASKED, ANSWER | {"tool_call_id": SECRET}], "messages[2].tool_call_id"),
        ([USER, ASKED, ANSWER | {"content": None}], "messages[2].content"),
    ],
)
def test_a_wrong_message_is_refused_with_its_place(messages: list[Any], param: str) -> None:
    error = refused(messages=messages)
    assert (error["param"], error["code"]) == (param, "invalid_messages")
    assert error["message"].startswith(param)
    assert SECRET not in str(error)


def test_audio_is_refused_by_its_place() -> None:
    part = {"type": "input_audio", "input_audio": {"data": SECRET, "format": "wav"}}
    error = refused(messages=[{"role": "user", "content": [part]}])
    assert (error["param"], error["code"]) == ("messages[0].content[0]", "unsupported_file")
    assert SECRET not in str(error)


@pytest.mark.parametrize(
    ("part", "upload"),
    [
        ({"file_data": "YQ==", "filename": "a.txt"}, Upload("", data="YQ==", name="a.txt")),
        (
            {"file_data": "data:text/csv;charset=latin1;base64,YQ==", "filename": "C:\\docs\\a.csv"},
            Upload("text/csv", data="YQ==", name="a.csv", charset="latin1"),
        ),
        ({"file_data": "data:text/plain,a%20b"}, Upload("text/plain", data="YSBi")),
        ({"file_id": "file-1"}, Upload("", file_id="file-1")),
    ],
)
def test_files_are_taken_inline_and_by_their_ids(part: dict[str, Any], upload: Upload) -> None:
    (message,) = said({"role": "user", "content": [{"type": "file", "file": part}]})
    name = "file_id" if upload.file_id else "file_data"
    place = f"messages[0].content[0].file.{name}"
    assert message.uploads == (replace(upload, takes="any", place=place),)


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ({"filename": "a.txt"}, "file_required"),
        ({"file_data": "YQ==", "file_id": "file-1"}, "file_required"),
        ({"file_data": "data:application/pdf;base64,JVBERi0="}, "unsupported_file"),
        ({"file_data": "data:audio/wav;base64,UklGRg=="}, "unsupported_file"),
    ],
)
def test_a_file_that_cannot_be_taken_is_refused_by_its_place(part: Any, code: str) -> None:
    error = refused(messages=[{"role": "user", "content": [{"type": "file", "file": part}]}])
    assert error["code"] == code
    assert error["param"].startswith("messages[0].content[0].file.file_")


def test_the_same_name_of_a_call_may_come_again_in_a_later_turn() -> None:
    """As servers name them that count anew in each answer."""
    turn = (USER, ASKED, ANSWER, {"role": "assistant", "content": "21."})
    assert len(said(*turn, *turn)) == 8
