"""Bodies that are almost right: whatever stands in the wrong place is refused in our words, or taken."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents import requests
from agents.dialects.recognition import DIALECTS
from config.errors import InvalidRequest
from tests.support.properties.effort import examples
from tests.support.properties.strategies import OBJECTS

IMAGE = "data:image/png;base64,iVBORw0KGgo="
FUNCTION = {"name": "f", "description": "F", "parameters": {"type": "object"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BODIES: dict[str, dict[str, Any]] = {
    "text": {
        "model": "demo",
        "text": "hi",
        "conversation_id": "x",
        "metadata": {},
        "result_mode": "auto",
        "enable_exercise_search": True,
        "exercise_top_k": 3,
        "enable_web_search": None,
        "web_search_top_k": 1,
    },
    "ag-ui": {
        "threadId": "t",
        "runId": "r",
        "messages": [
            {"id": "1", "role": "system", "content": "s"},
            {"id": "2", "role": "user", "content": [{"type": "text", "text": "a"}]},
            {"id": "3", "role": "assistant", "content": "b", "toolCalls": [CALL]},
            {"id": "4", "role": "tool", "toolCallId": "c1", "content": [{"type": "text", "text": "a"}]},
            {"id": "5", "role": "reasoning", "content": "r", "encryptedValue": "e"},
            {"id": "6", "role": "activity", "activityType": "plan", "content": {"a": 1}},
            {
                "id": "7",
                "role": "user",
                "content": [
                    {
                        "type": "image",
                        "source": {"type": "url", "value": IMAGE, "mimeType": "image/png"},
                    },
                    {"type": "binary", "mimeType": "image/png", "data": "iVBORw0KGgo="},
                    {"type": "document", "source": {"type": "data", "value": "YQ=="}},
                ],
            },
        ],
        "protocolVersion": "1.0",
        "state": {"a": 1},
        "tools": [FUNCTION],
        "context": [{"description": "d", "value": "v"}],
        "forwardedProps": {"model": "demo"},
        "resume": [{"interruptId": "i", "status": "resolved", "payload": True}],
    },
    "agent-api": {
        "input": [
            {"role": "user", "type": "message", "content": [{"type": "text", "text": "a"}]},
            {"role": "user", "content": [{"type": "image", "image_url": IMAGE}]},
            {
                "type": "plugin_call",
                "content": [{"type": "data", "data": {"call_id": "c", "name": "f", "arguments": "{}"}}],
            },
            {
                "type": "plugin_call_output",
                "role": "tool",
                "content": [{"type": "data", "data": {"call_id": "c", "output": "o"}}],
            },
            {
                "type": "mcp_approval_response",
                "role": "user",
                "content": [{"type": "data", "data": {"approval_request_id": "i", "approve": True}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "file", "filename": "a", "file_data": "YQ=="},
                    {"type": "refusal"},
                ],
            },
        ],
        "model": "demo",
        "stream": True,
        "session_id": "s",
        "id": "i",
        "tools": [{"type": "function", "function": FUNCTION}],
        "temperature": 0.5,
        "stop": ["a"],
        "n": 1,
        "seed": 3,
        "max_tokens": 9,
    },
    "responses": {
        "model": "demo",
        "input": [
            {"role": "user", "content": "a"},
            {"role": "user", "content": [{"type": "input_image", "image_url": IMAGE}]},
            {"role": "user", "content": [{"type": "input_file", "file_url": "https://x/a.txt"}]},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "b"}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "x", "text": "y"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "t"}]},
            {"type": "mcp_approval_response", "approval_request_id": "i", "approve": True},
            {"type": "item_reference", "id": "x"},
        ],
        "tools": [{"type": "function", "name": "f", "parameters": {}}],
        "conversation": {"id": "c"},
        "text": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        "metadata": {"a": "b"},
        "temperature": 1,
        "stream": False,
        "background": True,
        "instructions": "be brief",
    },
    "chat-completions": {
        "model": "demo",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "developer", "content": [{"type": "text", "text": "d"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "a"},
                    {"type": "image_url", "image_url": {"url": IMAGE, "detail": "low"}},
                    {"type": "file", "file": {"file_data": "YQ==", "filename": "a.txt"}},
                ],
            },
            {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "r"},
            {"role": "tool", "tool_call_id": "c1", "content": "o"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
            {"role": "user", "content": "b", "name": "n"},
        ],
        "tools": [{"type": "function", "function": FUNCTION}],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
        "response_format": {"type": "json_object"},
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "top_p": 1,
        "max_completion_tokens": 9,
        "stop": ["a"],
        "seed": 3,
        "presence_penalty": 0,
        "frequency_penalty": 0.5,
        "reasoning_effort": "low",
        "n": 1,
        "logprobs": False,
        "metadata": {"a": "b"},
        "user": "u",
        "store": True,
    },
}
BODIES["runner"] = {
    "input": {"text": "hi", "contents": None},
    "event": {"event_id": "e", "event_type": "message.received"},
    "conversation": {"conversation_id": "c", "thread_id": None},
    "run_id": "r",
    "model": "demo",
    "metadata": {"params": {"a": 1}},
}
BODIES["run-agent-input"] = BODIES["ag-ui"] | {
    "threadId": "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "resume": [],
    "messages": [{"id": "1", "role": "user", "content": [{"type": "text", "text": "a"}]}],
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=5),
    st.lists(st.text(max_size=3) | st.integers() | OBJECTS, max_size=2),
    OBJECTS,
)


@st.composite
def almost(draw: st.DrawFn, whole: dict[str, Any]) -> dict[str, Any]:
    """The body with something else in up to three places, or without what stood there."""
    body = copy.deepcopy(whole)
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = body
        while True:
            places = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
            if not places:
                break
            place = draw(st.sampled_from(places))
            if isinstance(holder[place], dict | list) and holder[place] and draw(st.booleans()):
                holder = holder[place]
                continue
            if isinstance(holder, dict) and draw(st.integers(0, 4)) == 0:
                del holder[place]
            else:
                holder[place] = draw(ODD)
            break
    return body


@pytest.mark.parametrize("name", DIALECTS)
def test_the_whole_body_is_taken(name: str) -> None:
    DIALECTS[name].parse(BODIES[name], request_id="request-1")


@pytest.mark.parametrize("name", DIALECTS)
@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_a_body_that_is_almost_right_is_refused_or_taken(name: str, data: st.DataObject) -> None:
    dialect = DIALECTS[name]
    body = data.draw(almost(BODIES[name]))
    try:
        asked = dialect.parse(body, request_id="request-1")
    except InvalidRequest:
        return
    dialect.streams(body, accept="text/event-stream")
    assert requests.load(requests.dump(asked)) == asked
    assert requests.identity(asked)
