"""What clients send, and what becomes of it; the published Python types are the oracle."""

from __future__ import annotations

from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from agents import requests
from agents.dialects.ag_ui import dialect as ag_ui
from agents.requests import AskedCall, ClientTool, ContextItem, InputMessage, InterruptAnswer, Upload
from config.errors import InvalidRequest
from tests.support.properties.strategies import OBJECTS

THREAD = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
RUN = "0192f0c18a3b7c449d551a2b3c4d5e6f"
USER = {"id": "u1", "role": "user", "content": "hello"}


def body(*messages: Any, **more: Any) -> dict[str, Any]:
    return {"threadId": THREAD, "runId": "run-1", "messages": list(messages)} | more


def parsed(*messages: Any, **more: Any) -> requests.RunRequest:
    return ag_ui.parse(body(*messages, **more), request_id="request-1")


def image(**source: Any) -> dict[str, Any]:
    return {"type": "image", "source": source}


def test_a_minimal_body_is_a_run() -> None:
    asked = parsed()
    assert asked == requests.RunRequest(
        dialect="ag-ui",
        model="",
        messages=(),
        request_id="request-1",
        known="tail",
        thread_id=THREAD,
        client_run_id="run-1",
        wire={"threadId": THREAD, "protocolVersion": None},
    )


def test_everything_a_client_may_say_is_understood() -> None:
    given = body(
        {"id": "s", "role": "system", "content": "be brief"},
        {"id": "d", "role": "developer", "content": "no jokes", "name": "ops"},
        USER,
        {
            "id": "a1",
            "role": "assistant",
            "content": "I call",
            "toolCalls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}
            ],
        },
        {"id": "t1", "role": "tool", "toolCallId": "c1", "content": "2", "error": "late"},
        {"id": "r1", "role": "reasoning", "content": "hm", "encryptedValue": "xx"},
        {"id": "p1", "role": "activity", "activityType": "plan", "content": {"steps": 1}},
        protocolVersion="1.0",
        parentRunId="run-0",
        state={"n": 1},
        tools=[{"name": "f", "description": "F", "parameters": {"type": "object"}}],
        context=[{"description": "time", "value": "noon"}],
        forwardedProps={"model": "demo", "onDisconnect": "cancel"},
        resume=[{"interruptId": "i1", "status": "resolved", "payload": {"ok": True}}],
    )
    RunAgentInput.model_validate(given)
    asked = ag_ui.parse(given, request_id="request-1")
    assert asked.messages == (
        InputMessage("system", "be brief", "s"),
        InputMessage("developer", "no jokes", "d", name="ops"),
        InputMessage("user", "hello", "u1"),
        InputMessage("assistant", "I call", "a1", tool_calls=(AskedCall("c1", "f", '{"a":1}'),)),
        InputMessage("tool", "2", "t1", name="f", tool_call_id="c1", error="late"),
        InputMessage("reasoning", "hm", "r1", encrypted_value="xx"),
        InputMessage("activity", "", "p1", activity_type="plan", metadata={"activity": {"steps": 1}}),
    )
    assert (asked.model, asked.on_disconnect, asked.parent_run_id) == ("demo", "cancel", "run-0")
    assert asked.state == {"n": 1}
    assert asked.tools == (ClientTool("f", "F", {"type": "object"}),)
    assert asked.context == (ContextItem("time", "noon"),)
    assert asked.answers == (InterruptAnswer("i1", "resolved", {"ok": True}),)
    assert asked.wire == {"threadId": THREAD, "protocolVersion": "1.0"}


def test_snake_case_and_nulls_are_taken() -> None:
    message = {
        "id": "t1",
        "role": "tool",
        "tool_call_id": "c1",
        "content": "2",
        "name": None,
        "error": None,
    }
    given = {
        "thread_id": THREAD,
        "run_id": "run-1",
        "messages": [USER, message],
        "tools": None,
        "context": None,
        "state": None,
        "resume": None,
        "forwarded_props": {"model": "demo"},
    }
    asked = ag_ui.parse(given, request_id="")
    assert asked.messages[1] == InputMessage("tool", "2", "t1", tool_call_id="c1")
    assert asked.model == "demo"


@pytest.mark.parametrize(
    ("part", "upload"),
    [
        (
            {"type": "binary", "mimeType": "image/png", "url": "https://x/y"},
            Upload("image/png", "https://x/y"),
        ),
        (
            {"type": "document", "source": {"type": "data", "value": "YQ==", "mimeType": "text/csv"}},
            Upload("text/csv", data="YQ==", takes="any"),
        ),
        (
            {
                "type": "document",
                "source": {"type": "url", "value": "https://x/y"},
                "metadata": {"filename": "../a.md"},
            },
            Upload("", "https://x/y", name="a.md", takes="any"),
        ),
        (
            {"type": "binary", "mimeType": "text/plain", "data": "YQ==", "filename": "a.txt"},
            Upload("text/plain", data="YQ==", name="a.txt", takes="any"),
        ),
        (
            {"type": "binary", "mimeType": "text/plain", "id": "file-1"},
            Upload("text/plain", file_id="file-1", takes="any"),
        ),
        ({"type": "binary", "mimeType": "image/png", "data": "QUJD"}, Upload("image/png", data="QUJD")),
        (image(type="url", value="https://x/y"), Upload("", "https://x/y")),
        (
            image(type="url", value="https://x/y", mimeType="image/gif"),
            Upload("image/gif", "https://x/y"),
        ),
        (image(type="data", value="QUJD", mimeType="image/png"), Upload("image/png", data="QUJD")),
        (
            image(type="data", value="data:image/png;base64,QUJD", mimeType="image/png"),
            Upload("image/png", data="QUJD"),
        ),
        (image(type="url", value="data:image/png;base64,QUJD"), Upload("image/png", data="QUJD")),
    ],
)
def test_images_and_texts_of_both_generations_are_files(part: dict[str, Any], upload: Upload) -> None:
    placed = replace(upload, place="messages[0].content[1]")
    said = parsed(USER | {"content": [{"type": "text", "text": "look"}, part]}).messages[0]
    assert (said.content, said.uploads, said.layout) == ("look", (placed,), ())
    tool = {
        "id": "t",
        "role": "tool",
        "toolCallId": "c",
        "content": [part, {"type": "text", "text": "x"}],
    }
    answer = parsed(USER, tool).messages[1]
    placed = replace(upload, place="messages[1].content[0]")
    assert (answer.content, answer.uploads, answer.layout) == ("x", (placed,), (None, 1))


FILES: Any = pytest.mark.parametrize(
    ("part", "what"),
    [
        (
            {"type": "audio", "source": {"type": "data", "value": "QUJD", "mimeType": "audio/mp3"}},
            "audio",
        ),
        (
            {
                "type": "video",
                "source": {"type": "url", "value": "https://x/y", "mimeType": "video/mp4"},
            },
            "a video",
        ),
        (
            {
                "type": "document",
                "source": {"type": "url", "value": "https://x/y", "mimeType": "application/pdf"},
            },
            "a document of the type application/pdf",
        ),
        ({"type": "binary", "mimeType": "application/pdf", "data": "QUJD"}, "a file of the type"),
        (image(type="file", value="file-1"), "an image"),
    ],
)


@FILES
def test_a_file_that_no_model_is_shown_is_refused_by_its_place(part: Any, what: str) -> None:
    with pytest.raises(InvalidRequest, match=what) as caught:
        parsed(USER, USER | {"id": "u2", "content": [{"type": "text", "text": "look"}, part]})
    assert caught.value.error_code == "unsupported_file"
    assert caught.value.facts["param"] == "messages[1].content[1]"


@FILES
def test_what_was_refused_once_is_left_out_later_and_the_client_is_told(part: Any, what: str) -> None:
    asked = parsed(USER | {"content": [{"type": "text", "text": "look"}, part]}, USER | {"id": "u2"})
    assert asked.messages[0] == InputMessage("user", "look", "u1")
    assert asked.wire["leftOut"] == [f"a part of type {part['type']}"]


def test_a_part_that_we_do_not_know_is_left_out_and_the_client_is_told() -> None:
    asked = parsed(USER | {"content": [{"type": "text", "text": "look"}, {"type": "hologram"}]})
    assert asked.messages == (InputMessage("user", "look", "u1"),)
    assert asked.wire["leftOut"] == ["a part of type unknown"]


def test_what_the_assistant_shows_is_told_to_be_left_out() -> None:
    shown = [{"type": "text", "text": "see"}, image(type="data", value="QUJD", mimeType="image/png")]
    asked = parsed({"id": "a1", "role": "assistant", "content": shown}, USER)
    assert asked.messages[0] == InputMessage("assistant", "see", "a1")
    assert asked.wire["leftOut"] == ["a part of type image"]


def test_unknown_roles_are_left_out_and_tools_of_any_name_are_kept() -> None:
    tools = [
        {"name": "two words", "description": ""},
        {"name": "ok", "description": "x", "parameters": 1},
    ]
    asked = parsed({"id": "x", "role": "oracle", "content": "?"}, USER, tools=tools)
    assert [said.client_id for said in asked.messages] == ["u1"]
    assert asked.tools == (ClientTool("two words", "", {}), ClientTool("ok", "x", {}))
    assert asked.wire["leftOut"] == ["a message of an unknown role"]


def test_what_we_have_said_ourselves_does_not_come_in_again() -> None:
    ours = [
        {"id": f"execution-{RUN}", "role": "assistant", "content": "hi"},
        {"id": f"reasoning-execution-{RUN}", "role": "reasoning", "content": "hm"},
        {
            "id": "call-c9",
            "role": "assistant",
            "toolCalls": [
                {"id": "c9", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"id": f"tool-{RUN}-1", "role": "tool", "toolCallId": f"1-{RUN}", "content": "{}"},
    ]
    answer = {"id": "t1", "role": "tool", "toolCallId": "c9", "content": "ok"}
    asked = parsed(USER, *ours, answer)
    assert [said.client_id for said in asked.messages] == ["u1", "t1"]
    assert asked.messages[1].name == "f"
    assert requests.identity(parsed(USER, *ours)) == requests.identity(parsed(USER, state={"x": 1}))
    assert requests.identity(parsed(USER)) != requests.identity(parsed(USER | {"content": "other"}))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"threadId": ""}, "threadId"),
        ({"threadId": 7}, "threadId"),
        ({"runId": "r" * 129}, "runId"),
        ({"messages": "secret-words"}, "messages"),
        ({"messages": [{"role": "user", "content": "secret-words"}]}, "id"),
        ({"messages": [USER | {"content": 5}]}, "content"),
        ({"messages": [USER | {"content": [{"type": "text", "text": {"secret-words": 1}}]}]}, "text"),
        ({"messages": [{"id": "t", "role": "tool", "content": "secret-words"}]}, "toolCallId"),
        ({"messages": [USER | {"content": "secret-words" * 90_000}]}, "too long"),
        ({"resume": [{"interruptId": "i", "status": "secret-words"}]}, "status"),
        ({"tools": [{"name": "x"}] * 1_001}, "tools"),
    ],
)
def test_a_wrong_body_is_refused_in_words_and_without_an_echo(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        ag_ui.parse(body(USER) | wrong, request_id="")
    assert said in caught.value.detail
    assert "secret-words" not in f"{caught.value.detail} {caught.value.facts}"


def test_only_the_newest_question_is_measured() -> None:
    old = USER | {"id": "u0", "content": "x" * 50_000}
    assert len(parsed(old, USER).messages) == 2


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=4),
    max_leaves=20,
)
_KEYS = st.sampled_from(
    ["threadId", "runId", "messages", "tools", "context", "state", "resume", "forwardedProps"]
)
_MESSAGE = st.fixed_dictionaries(
    {"id": st.text(max_size=5) | ANY_JSON, "role": st.sampled_from(["user", "tool", "assistant", "x"])},
    optional={"content": ANY_JSON, "toolCalls": ANY_JSON, "toolCallId": ANY_JSON, "name": ANY_JSON},
)


@given(given_body=st.dictionaries(_KEYS, ANY_JSON), messages=st.none() | st.lists(_MESSAGE, max_size=4))
def test_any_body_is_a_run_or_a_refusal(given_body: dict[str, Any], messages: Any) -> None:
    told = body(USER) | given_body | ({"messages": messages} if messages is not None else {})
    try:
        asked = ag_ui.parse(told, request_id="request-1")
    except InvalidRequest:
        return
    assert requests.load(requests.dump(asked)) == asked


@given(state=OBJECTS)
def test_state_is_taken_as_it_is(state: dict[str, Any]) -> None:
    assert parsed(state=state).state == (state or None)
