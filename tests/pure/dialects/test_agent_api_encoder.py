"""The Agent API's stream: the reference's own objects, in an order that its clients take."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.dialects import agent_api
from agents.dialects.base import Frame
from conversations import events
from conversations.events import Fact, MessageBody, RunEvent
from conversations.transcript import fold
from tests import strategies
from tests.agent_api import oracle
from tests.agent_api.golden import golden
from tests.agent_api.runs import HEAD, RUN, RUNS, frames, resumed, told
from tests.effort import examples

GOLDEN = golden()
CONTENTS = {
    "text": oracle.models.TextContent,
    "data": oracle.models.DataContent,
}
SAID = f"execution-{RUN.hex}"


def model_of(line: dict[str, Any]) -> Any:
    match line["object"]:
        case "response":
            return oracle.models.AgentResponse
        case "message":
            return oracle.models.Message
    return CONTENTS[line["type"]]


def lines(run: Sequence[RunEvent]) -> list[Any]:
    return [json.loads(frame.data) for frame in frames(agent_api, run)]


@settings(max_examples=examples(100), deadline=None)
@given(RUNS)
def test_every_frame_is_what_the_references_own_model_writes(run: list[RunEvent]) -> None:
    for frame in frames(agent_api, run):
        again = model_of(json.loads(frame.data)).model_validate_json(frame.data)
        assert again.model_dump_json().encode() == frame.data
        assert not any(part.model_extra for part in (again, *(again.model_extra or ())) if part)


@settings(max_examples=examples(100), deadline=None)
@given(RUNS)
def test_whatever_the_runner_does_the_stream_is_whole(run: list[RunEvent]) -> None:
    sent = frames(agent_api, run)
    said = [json.loads(frame.data) for frame in sent]
    assert (
        [frame.id for frame in sent] == [line["sequence_number"] for line in said] == [*range(len(said))]
    )
    assert {frame.event for frame in sent} == {""}
    responses = [line["status"] for line in said if line["object"] == "response"]
    assert responses[0] == "created"
    assert responses[1:-1] in ([], ["in_progress"])
    assert said[-1]["object"] == "response"
    assert responses[-1] in {"completed", "incomplete", "failed", "canceled", "rejected"}
    done = finished(said)
    assert sorted(done) == sorted(line["id"] for line in said[-1]["output"])
    assert [done[line["id"]] for line in said[-1]["output"]] == said[-1]["output"]


def finished(said: list[Any]) -> dict[str, Any]:
    """The messages as their last events say; each began, had its contents between, and ended once."""
    begun: set[str] = set()
    contents: dict[str, Any] = {}
    done: dict[str, Any] = {}
    for line in said[:-1]:
        if line["object"] == "content":
            assert line["msg_id"] in begun - done.keys()
            assert line["msg_id"] not in contents
            if line["status"] != "in_progress":
                contents[line["msg_id"]] = line
        elif line["object"] == "message":
            assert line["id"] not in done
            if line["status"] == "in_progress":
                assert line["id"] not in begun
                begun.add(line["id"])
            else:
                assert line["content"] == [contents[line["id"]]]
                done[line["id"]] = line
    assert begun == done.keys()
    return done


@settings(max_examples=examples(60), deadline=None)
@given(RUNS, st.data())
def test_a_reader_cut_off_anywhere_gets_the_rest(run: list[RunEvent], data: st.DataObject) -> None:
    whole = frames(agent_api, run)
    cut = data.draw(st.integers(-1, len(whole) - 1))
    assert resumed(agent_api, run, cut) == whole[cut + 1 :]


def test_a_reader_cut_off_at_every_frame_gets_the_rest() -> None:
    run = told([*SPOKEN, events.RunCompleted("stop")])
    whole = frames(agent_api, run)
    for cut in range(-1, len(whole)):
        assert resumed(agent_api, run, cut) == whole[cut + 1 :]


@settings(max_examples=examples(60), deadline=None)
@given(strategies.LOGGED_RUNS)
def test_what_is_streamed_is_what_is_stored(run: list[RunEvent]) -> None:
    kept = [message.content for message in fold(RUN, run).messages() if message.role == "assistant"]
    output = lines(run)[-1]["output"]
    said = [line["content"][0]["text"] for line in output if line["type"] == "message"]
    heard = [text.replace("\0", "") for text in said if text]
    assert sorted(filter(None, heard)) == sorted(filter(None, kept))


@settings(max_examples=examples(50), deadline=None)
@given(st.lists(st.text(min_size=1), max_size=6))
def test_a_plain_answer_is_sequence_a_of_the_contract(tokens: list[str]) -> None:
    run = told([*(events.MessageDelta(SAID, text) for text in tokens), events.RunCompleted("stop")])
    made = oracle.builders.ResponseBuilder(session_id="session_123")
    wanted = []
    for number, event in enumerate(made.generate_streaming_response(tokens)):
        event.sequence_number = number
        wanted.append(anonymous(event.model_dump_json()))
    assert [anonymous(frame.data.decode()) for frame in frames(agent_api, run)] == wanted


def anonymous(line: str) -> str:
    """A line without what two servers cannot share: ids and times."""
    line = re.sub(r'"(id|msg_id)":"[^"]*"', r'"\1":""', line)
    return re.sub(r'"(created|completed)_at":\d+', r'"\1_at":0', line)


OWN_GOLDEN = [
    '{"sequence_number":0,"object":"response","status":"created","error":null,"id":"response_0192f0c1-8a3b-7c44-9d55-1a2b3c4d5e6f","created_at":1700000000,"completed_at":null,"output":[],"usage":null,"session_id":"session_123"}',
    '{"sequence_number":1,"object":"response","status":"in_progress","error":null,"id":"response_0192f0c1-8a3b-7c44-9d55-1a2b3c4d5e6f","created_at":1700000000,"completed_at":null,"output":[],"usage":null,"session_id":"session_123"}',
    '{"sequence_number":2,"object":"message","status":"in_progress","error":null,"id":"msg_m-0192f0c18a3b7c449d551a2b3c4d5e6f","type":"message","role":"assistant","content":null,"code":null,"message":null,"usage":null,"metadata":null}',
    '{"sequence_number":3,"object":"content","status":"in_progress","error":null,"type":"text","index":0,"delta":true,"msg_id":"msg_m-0192f0c18a3b7c449d551a2b3c4d5e6f","text":"你好"}',
    '{"sequence_number":4,"object":"content","status":"failed","error":{"code":"worker_lost","message":"Gone."},"type":"text","index":0,"delta":false,"msg_id":"msg_m-0192f0c18a3b7c449d551a2b3c4d5e6f","text":"你好"}',
]


def test_the_bytes_of_a_run_that_fails() -> None:
    run = told([events.MessageDelta("m", "你好"), events.RunFailed("worker_lost", "Gone.")])
    sent = [frame.data.decode() for frame in frames(agent_api, run)]
    assert sent[:5] == OWN_GOLDEN
    assert [json.loads(line)["status"] for line in sent[5:]] == ["failed", "failed"]
    assert json.loads(sent[-1])["output"] == [json.loads(sent[5])]


@pytest.mark.skipif(not GOLDEN.exists(), reason="the contracts are not here")
def test_the_golden_stream() -> None:
    wanted = (GOLDEN / "agentscope_stream.jsonl").read_text().splitlines()
    words = [events.MessageDelta(SAID, text) for text in ("Hello", " ", "World", "!")]
    sent = frames(agent_api, told([*words, events.RunCompleted("stop")]))
    plain = [re.sub(r'"sequence_number":\d+', '"sequence_number":null', f.data.decode()) for f in sent]
    assert [anonymous(line) for line in plain] == [anonymous(line) for line in wanted]


SPOKEN: list[Fact] = [
    events.ReasoningDelta(SAID, "hm"),
    events.MessageDelta(SAID, "one "),
    events.ToolCallStarted("t1", "search", {"q": 1}),
    events.ToolCallCompleted("t1", "search", True, 3, {"total": 2}),
    events.MessageDelta(SAID, "two"),
]


def kinds(run: Sequence[RunEvent]) -> list[str]:
    return [f"{line['object']} {line.get('type', '')} {line['status']}" for line in lines(run)]


def test_the_closing_of_a_failed_run_closes_as_failed() -> None:
    """An execution says `message.completed` for what it closes just before `run.failed`."""
    closing: list[Fact] = [
        events.MessageCompleted(MessageBody(SAID, "assistant", "half")),
        events.StageCompleted("execution", 5),
    ]
    half = events.MessageDelta(SAID, "half")
    for code, status in (("worker_lost", "failed"), ("cancelled", "canceled")):
        run = told([half, *closing, events.RunFailed(code, "It ended.")])
        assert kinds(run)[4:] == [
            f"content text {status}",
            f"message message {status}",
            f"response  {status}",
        ]
    cut = told([half, *closing, events.RunCompleted("length")])
    assert kinds(cut)[4:] == [
        "content text incomplete",
        "message message incomplete",
        "response  incomplete",
    ]


def test_a_run_refused_before_it_started_is_rejected() -> None:
    run = strategies.numbered([events.RunQueued(0), events.RunFailed("queue_timeout", "Nobody came.")])
    assert kinds(run) == ["response  created", "response  rejected"]
    assert lines(run)[-1]["error"] == {"code": "queue_timeout", "message": "Nobody came."}


@pytest.mark.parametrize(
    ("kind", "call", "answer"),
    [
        ("function", "plugin_call", "plugin_call_output"),
        ("plugin", "plugin_call", "plugin_call_output"),
        ("mcp", "mcp_call", "mcp_call_output"),
        ("component", "component_call", "component_call_output"),
        ("frontend", "component_call", None),
    ],
)
def test_calls_and_their_answers(kind: Any, call: str, answer: str | None) -> None:
    run = told(
        [
            events.ToolCallStarted("t1", "files.search", {"q": "x"}, kind),
            events.ToolCallCompleted("t1", "files.search", True, 3, {"total": 2}),
            events.RunCompleted("stop"),
        ]
    )
    output = {line["type"]: line for line in lines(run)[-1]["output"]}
    assert list(output) == [call, answer] if answer else [call]
    told_of = output[call]["content"][0]["data"]
    assert (told_of["name"], told_of["arguments"]) == ("files.search", '{"q":"x"}')
    assert list(told_of) == (
        ["call_id", "arguments", "name", "server_label"]
        if kind == "mcp"
        else ["call_id", "name", "arguments"]
    )
    if answer:
        assert output[answer]["role"] == "tool"
        assert output[answer]["content"][0]["data"] == {
            "call_id": told_of["call_id"],
            "name": "files.search",
            "output": '{"total":2}',
        }


def test_an_approval_is_asked_for_once() -> None:
    target = {"tool_call_id": "t1", "tool_name": "delete", "server_label": "files"}
    run = told(
        [
            events.ToolCallStarted("t1", "delete", {"path": "/x"}, "mcp"),
            events.ActionRequested("tool.approve", target, {"id": "approval-1"}),
            events.RunCompleted("interrupt", interrupts=[{"id": "approval-1", "toolCallId": "t1"}]),
        ]
    )
    asked = [line for line in lines(run)[-1]["output"] if line["type"] == "mcp_approval_request"]
    assert [line["content"][0]["data"] for line in asked] == [
        {"id": "approval-1", "arguments": '{"path":"/x"}', "name": "delete", "server_label": "files"}
    ]


def test_what_an_mcp_server_offers_is_listed() -> None:
    tools = [{"name": "read", "description": "Read.", "input_schema": {"type": "object"}}]
    run = told([events.StateUpdated("mcp", "files", tools), events.RunCompleted("stop")])
    assert lines(run)[-1]["output"][0]["content"][0]["data"]["tools"] == [
        {"input_schema": {"type": "object"}, "name": "read", "annotations": None, "description": "Read."}
    ]


def test_usage_is_summed_and_absent_where_nobody_counted() -> None:
    counted = lines(told([events.RunCompleted("stop", events.Usage(3, 4))]))[-1]
    assert counted["usage"]["total_tokens"] == 7
    assert lines(told([events.RunCompleted("stop")]))[-1]["usage"] is None


def test_a_run_that_says_nothing_has_a_message_all_the_same() -> None:
    """The official web UI waits for ever for a completed response without one."""
    assert [
        line["content"][0]["text"] for line in lines(told([events.RunCompleted("stop")]))[-1]["output"]
    ] == [None]


def test_the_response_can_be_asked_for_at_any_time() -> None:
    encoder = agent_api.encoder(HEAD)
    assert json.loads(encoder.answer())["status"] == "queued"
    sent: list[Frame] = []
    for event in told([*SPOKEN, events.RunCompleted("stop")]):
        sent += encoder.feed(event)
        so_far = oracle.models.AgentResponse.model_validate_json(encoder.answer())
        assert so_far.model_dump_json().encode() == encoder.answer()
    assert encoder.answer() == sent[-1].data
