"""What a body of the Agent API means, and by which name what cannot be obeyed is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.dialects.agent_api import dialect as agent_api
from agents.requests import RunRequest
from config.errors import InvalidRequest

USER = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
ASSISTANT = {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}
TOOL_WORDS = {"role": "tool", "type": "message", "content": [{"type": "text", "text": "21 °C"}]}
ERROR = {"role": "assistant", "type": "error", "content": [{"type": "text", "text": "Gone."}]}
EMPTY = {"type": "data", "data": {}}
HEARTBEAT = {"role": "assistant", "type": "heartbeat"}


def call(*ids: str, kind: str = "function_call") -> dict[str, Any]:
    parts = [{"type": "data", "data": {"call_id": one, "name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "type": kind, "content": parts}


def output(*ids: str) -> dict[str, Any]:
    parts = [{"type": "data", "data": {"call_id": one, "output": f"of {one}"}} for one in ids]
    return {"role": "tool", "type": "function_call_output", "id": "msg_out", "content": parts}


def parsed(*messages: dict[str, Any], **more: Any) -> RunRequest:
    return agent_api.parse({"input": list(messages), **more}, request_id="r")


@pytest.mark.parametrize(
    ("messages", "code", "place"),
    [
        ([], "input_required", "input"),
        ([HEARTBEAT, ERROR], "input_required", "input"),
        ([{"role": "user"}], "content_required", "input[0]"),
        ([USER, ASSISTANT, {"role": "user", "content": []}], "content_required", "input[2]"),
        ([USER | {"content": [{"type": "text", "text": ""}]}], "content_required", "input[0]"),
        ([{"role": "system", "content": [EMPTY]}], "content_required", "input[0]"),
        ([USER, ASSISTANT], "nothing_to_answer", "input[1]"),
        ([USER, ASSISTANT, HEARTBEAT, ERROR], "nothing_to_answer", "input[1]"),
        ([USER, call("c1")], "nothing_to_answer", "input[1]"),
        ([USER, ASSISTANT | {"type": "reasoning"}], "nothing_to_answer", "input[1]"),
        ([USER, TOOL_WORDS], "call_id_required", "input[1]"),
        ([USER, call("c1", "c2"), TOOL_WORDS], "call_id_required", "input[2]"),
        ([USER, call("c1"), output("c1"), TOOL_WORDS], "call_id_required", "input[3]"),
        ([USER, call("c1"), output("")], "call_id_required", "input[2]"),
    ],
)
def test_there_must_be_something_to_answer(
    messages: list[dict[str, Any]], code: str, place: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parsed(*messages)
    assert refused.value.error_code == code
    assert place in refused.value.detail


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"n": 2}, "n_not_supported"),
        ({"n": 9}, "invalid_request"),
        ({"n": 0}, "invalid_request"),
        ({"id": "a", "response_id": "b"}, "response_id_ambiguous"),
        ({"response_id": "x" * 129}, "id_too_long"),
        ({"tools": [{"type": "web_search"}]}, "tool_not_supported"),
        ({"tools": [{"type": "mcp", "function": {"name": "f"}}]}, "tool_not_supported"),
        ({"tools": [{"type": "function"}]}, "tool_not_supported"),
        ({"tools": [{"type": "function", "function": {"description": "x"}}]}, "tool_not_supported"),
        ({"tools": [{}]}, "tool_not_supported"),
    ],
)
def test_what_would_change_the_answer_is_refused_by_its_name(more: dict[str, Any], code: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parsed(USER, **more)
    assert refused.value.error_code == code


def test_one_answer_is_what_a_run_has() -> None:
    assert parsed(USER, n=1) == parsed(USER, n=None) == parsed(USER)


def test_the_response_is_named_by_its_id_or_its_response_id() -> None:
    assert parsed(USER, id="a") == parsed(USER, response_id="a") == parsed(USER, id="a", response_id="a")
    assert (parsed(USER, response_id="a").client_run_id, parsed(USER).client_run_id) == ("a", None)


def test_a_tools_words_answer_the_call_that_they_name() -> None:
    words = {"type": "text", "text": "21 °C"}
    named: list[dict[str, Any]] = [
        {"content": [words, {"type": "data", "data": {"call_id": "c2"}}]},
        {"metadata": {"call_id": "c2"}},
        {"metadata": {"tool_call_id": "c2"}},
        {"tool_call_id": "c2"},
        {"call_id": "c2"},
    ]
    for more in named:
        last = parsed(USER, call("c1", "c2"), TOOL_WORDS | more).messages[-1]
        assert (last.role, last.tool_call_id, last.content) == ("tool", "c2", "21 °C")
    waiting = parsed(USER, call("c1", "c2"), output("c1"), TOOL_WORDS).messages[-1]
    assert (waiting.role, waiting.tool_call_id) == ("tool", "c2")


def test_a_message_of_several_calls_or_outputs_is_all_of_them() -> None:
    asked, one, two = parsed(call("c1", "c2"), output("c1", "c2")).messages
    assert [made.id for made in asked.tool_calls] == ["c1", "c2"]
    assert [(said.tool_call_id, said.content) for said in (one, two)] == [
        ("c1", "of c1"),
        ("c2", "of c2"),
    ]
    assert (one.client_id, two.client_id) == ("out", "out-2")


PIXEL = {"type": "image", "image_url": "data:image/png;base64,QUJD"}
BLOCKS = [
    {"type": "text", "text": "see"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}},
    {"type": "audio", "source": {"type": "base64", "media_type": "audio/wav", "data": "QUJD"}},
]


def with_output(value: Any, *contents: dict[str, Any], role: str = "tool") -> dict[str, Any]:
    kind = "message" if role == "tool" else "function_call_output"
    part = {"type": "data", "data": {"call_id": "c1", "output": value}}
    return {"role": "tool", "type": kind, "content": [part, *contents]}


@pytest.mark.parametrize("role", ["tool", "output"])
@pytest.mark.parametrize(
    "value",
    [BLOCKS, json.dumps(BLOCKS), {"content": BLOCKS}, json.dumps({"content": BLOCKS})],
    ids=["blocks", "as text", "result", "result as text"],
)
def test_a_tool_s_images_are_apart_from_its_words_and_no_base64_is_told(role: str, value: Any) -> None:
    answer = parsed(USER, call("c1"), with_output(value, role=role)).messages[-1]
    assert (answer.role, answer.tool_call_id) == ("tool", "c1")
    assert [(one.mime_type, one.data) for one in answer.uploads] == [("image/png", "QUJD")]
    assert answer.content.startswith("see\n")
    assert json.loads(answer.content[4:])["left_out"][0]["type"] == "audio"
    assert "QUJD" not in answer.content


@pytest.mark.parametrize("role", ["tool", "output"])
def test_the_images_beside_a_tool_s_output_are_its_own(role: str) -> None:
    answer = parsed(USER, call("c1"), with_output("21 °C", PIXEL, role=role)).messages[-1]
    (upload,) = answer.uploads
    assert (answer.content, upload.data) == ("21 °C", "QUJD")
    assert upload.place == "input[2].content[1].image_url"


@pytest.mark.parametrize(
    "value", ["plain", "[no json", '["a"]', '[{"a": 1}]', "[" * 5_000, "[1" + ",1" * 60_000 + "]"]
)
def test_a_text_that_is_no_list_of_blocks_is_told_as_it_is(value: str) -> None:
    assert parsed(USER, call("c1"), with_output(value)).messages[-1].content == value


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"type": "audio", "data": "UklGRg==", "format": "wav"}, "input[0].content[0]"),
        ({"type": "video", "video_url": "https://x/y.mp4"}, "input[0].content[0]"),
        ({"type": "file", "file_data": "data:video/mp4;base64,QUJD"}, "input[0].content[0].file_data"),
        ({"type": "file", "filename": "a.pdf"}, "input[0].content[0].file_data"),
        ({"type": "image", "image_url": "file:///etc/passwd"}, "input[0].content[0].image_url"),
    ],
)
def test_what_no_model_is_shown_is_refused_by_its_place(content: dict[str, Any], place: str) -> None:
    for role in ("user", "system"):
        with pytest.raises(InvalidRequest) as caught:
            parsed({"role": role, "content": [content]})
        expected = place if role == "user" else "input[0].content[0]"
        assert caught.value.facts["param"] == expected


def test_what_the_assistant_has_shown_is_not_told_again() -> None:
    shown = {"role": "assistant", "content": [{"type": "text", "text": "see"}, PIXEL]}
    said = parsed(USER, shown, USER).messages[1]
    assert (said.content, said.uploads) == ("see", ())


def test_a_schema_reaches_the_model_as_it_was_given() -> None:
    schema = {
        "type": "object",
        "properties": {"b": {}, "a": {}},
        "required": ["a"],
        "additionalProperties": False,
    }
    function = {"name": "f", "description": "d", "parameters": schema}
    [tool] = parsed(USER, tools=[{"type": "function", "function": function}]).tools
    assert list(tool.parameters["properties"]) == ["b", "a"]
    assert tool.parameters == schema
