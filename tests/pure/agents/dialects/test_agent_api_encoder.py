"""The Agent API's stream: the reference's own objects, in an order that its clients take."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.dialects.agent_api import dialect as agent_api
from agents.dialects.base import Frame
from conversations import events
from conversations.events import Fact, MessageBody, RunEvent
from conversations.log.transcript import fold
from tests.agents.dialects.agent_api import oracle
from tests.agents.dialects.agent_api.runs import HEAD, RUN, RUNS, frames, resumed, told
from tests.support.paths import shared
from tests.support.properties import strategies
from tests.support.properties.effort import examples

GOLDEN = shared("specs", "golden")
CONTENTS = {
    "text": oracle.models.TextContent,
    "data": oracle.models.DataContent,
    "image": oracle.models.ImageContent,
    "audio": oracle.models.AudioContent,
    "video": oracle.models.VideoContent,
    "file": oracle.models.FileContent,
    "refusal": oracle.models.RefusalContent,
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
        told = json.loads(frame.data)
        heard = oracle.clients.parse_event_from_json(told)
        assert heard is not None, "what its client cannot parse it leaves out"
        assert json.loads(heard.model_dump_json()) == told


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
    contents: dict[str, list[Any]] = {}
    done: dict[str, Any] = {}
    for line in said[:-1]:
        if line["object"] == "content":
            assert line["msg_id"] in begun - done.keys()
            so_far = contents.setdefault(line["msg_id"], [])
            assert line["index"] == len(so_far)
            if line["status"] != "in_progress":
                so_far.append(line)
        elif line["object"] == "message":
            assert line["id"] not in done
            if line["status"] == "in_progress":
                assert line["id"] not in begun
                begun.add(line["id"])
            else:
                assert line["content"] == contents[line["id"]]
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
    said = [line["content"][0].get("text") for line in output if line["type"] == "message"]
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


OWN_GOLDEN_FAILED = [
    '{"sequence_number":5,"object":"message","status":"failed","error":{"code":"worker_lost","message":"Gone."},"id":"msg_m-0192f0c18a3b7c449d551a2b3c4d5e6f","type":"message","role":"assistant","content":[{"sequence_number":4,"object":"content","status":"failed","error":{"code":"worker_lost","message":"Gone."},"type":"text","index":0,"delta":false,"msg_id":"msg_m-0192f0c18a3b7c449d551a2b3c4d5e6f","text":"你好"}],"code":"worker_lost","message":"Gone.","usage":null,"metadata":null}',
]
OWN_GOLDEN_ERROR = [
    '{"sequence_number":6,"object":"message","status":"in_progress","error":null,"id":"error_0192f0c18a3b7c449d551a2b3c4d5e6f","type":"error","role":"assistant","content":null,"code":null,"message":null,"usage":null,"metadata":null}',
    '{"sequence_number":7,"object":"content","status":"completed","error":null,"type":"text","index":0,"delta":false,"msg_id":"error_0192f0c18a3b7c449d551a2b3c4d5e6f","text":"Gone."}',
    '{"sequence_number":8,"object":"message","status":"completed","error":null,"id":"error_0192f0c18a3b7c449d551a2b3c4d5e6f","type":"error","role":"assistant","content":[{"sequence_number":7,"object":"content","status":"completed","error":null,"type":"text","index":0,"delta":false,"msg_id":"error_0192f0c18a3b7c449d551a2b3c4d5e6f","text":"Gone."}],"code":"worker_lost","message":"Gone.","usage":null,"metadata":null}',
]


def test_the_bytes_of_a_run_that_fails() -> None:
    run = told([events.MessageDelta("m", "你好"), events.RunFailed("worker_lost", "Gone.")])
    sent = [frame.data.decode() for frame in frames(agent_api, run)]
    assert sent[:5] == OWN_GOLDEN
    assert sent[5:6] == OWN_GOLDEN_FAILED
    assert sent[6:9] == OWN_GOLDEN_ERROR
    assert json.loads(sent[-1])["status"] == "failed"
    assert json.loads(sent[-1])["output"] == [json.loads(sent[5]), json.loads(sent[8])]
    for line in sent:
        heard = oracle.clients.parse_event_from_json(json.loads(line))
        assert heard is not None
        assert heard.model_dump_json() == line


@pytest.mark.skipif(not GOLDEN.exists(), reason="the contracts are not here")
@pytest.mark.parametrize("name", ["agentscope_stream.jsonl", "agentscope_cases.jsonl"])
def test_the_published_client_parses_every_golden_line(name: str) -> None:
    found = [json.loads(line) for line in (GOLDEN / name).read_text().splitlines()]
    objects = [line.get("json", line) for line in found]
    objects = [told for told in objects if isinstance(told, dict) and "object" in told]
    assert len(objects) > 9
    for told_so in objects:
        heard = oracle.clients.parse_event_from_json(told_so)
        assert json.loads(heard.model_dump_json()) == told_so


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


def test_thoughts_are_a_message_of_their_own() -> None:
    """Seed 004 §1: `reasoning`; it ends before the words that came of it begin."""
    run = told([*SPOKEN[:2], events.RunCompleted("stop")])
    thought, answer = lines(run)[-1]["output"]
    assert (thought["type"], thought["role"], thought["content"][0]["text"]) == (
        "reasoning",
        "assistant",
        "hm",
    )
    assert (answer["type"], answer["content"][0]["text"]) == ("message", "one ")
    assert kinds(run).index("message reasoning completed") < kinds(run).index(
        "message message in_progress"
    )


def test_the_closing_of_a_failed_run_closes_as_failed() -> None:
    """An execution says `message.completed` for what it closes just before `run.failed`."""
    closing: list[Fact] = [
        events.MessageCompleted(MessageBody(SAID, "assistant", "half")),
        events.StageCompleted("execution", 5),
    ]
    half = events.MessageDelta(SAID, "half")
    error = ["message error in_progress", "content text completed", "message error completed"]
    for code, status, between in (("worker_lost", "failed", error), ("cancelled", "canceled", [])):
        run = told([half, *closing, events.RunFailed(code, "It ended.")])
        assert kinds(run)[4:] == [
            f"content text {status}",
            f"message message {status}",
            *between,
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
        ("frontend", "function_call", None),
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


PICTURE = events.MessageContent("image", "https://example.com/a.png")
SOUND = events.MessageContent("audio", data="UklGRg==", format="wav", artifact_id="a1")
FILM = events.MessageContent("video", "https://example.com/a.mp4")
REPORT = events.MessageContent("file", data="YQ==", name="a.txt", artifact_id="a2")
DATA = events.MessageContent("data", value={"city": "Ulm"})
SHOWN = [
    ("image", {"image_url": "https://example.com/a.png"}),
    ("audio", {"data": "UklGRg==", "format": "wav"}),
    ("video", {"video_url": "https://example.com/a.mp4"}),
    (
        "file",
        {
            "file_url": "/api/v1/agent/artifacts/a2",
            "file_id": "a2",
            "filename": "a.txt",
            "file_data": "YQ==",
        },
    ),
    ("data", {"data": {"city": "Ulm"}}),
]


def said_with(text: str, **more: Any) -> events.MessageCompleted:
    return events.MessageCompleted(events.MessageBody(SAID, "assistant", text, **more))


def test_a_message_holds_more_than_its_words() -> None:
    held = [PICTURE, SOUND, FILM, REPORT, DATA]
    run = told(
        [
            events.ArtifactCreated("a1", "audio", "audio/wav", "", 4),
            events.ArtifactCreated("a2", "file", "text/plain", "a.txt", 1),
            events.MessageDelta(SAID, "look"),
            said_with("look", contents=held),
            events.RunCompleted("stop"),
        ]
    )
    [message] = lines(run)[-1]["output"]
    text, *others = message["content"]
    assert (text["type"], text["text"], text["index"]) == ("text", "look", 0)
    for place, (content, (kind, value)) in enumerate(zip(others, SHOWN, strict=True), 1):
        assert (content["type"], content["index"], content["status"]) == (kind, place, "completed")
        assert content | value == content
    without_words = told([said_with("", contents=[PICTURE]), events.RunCompleted("stop")])
    [message] = lines(without_words)[-1]["output"]
    assert [content["type"] for content in message["content"]] == ["image"]


def test_a_file_stands_in_the_message_that_is_about_it_or_in_one_of_its_own() -> None:
    made = events.ArtifactCreated("a1", "report", "application/pdf", "plan.pdf", 9)
    about = said_with("done", metadata={"artifact_refs": ["a1", "unknown", 7]})
    file = {"file_url": "/api/v1/agent/artifacts/a1", "file_id": "a1", "filename": "plan.pdf"}
    [message] = lines(told([made, about, events.RunCompleted("stop")]))[-1]["output"]
    assert [content["type"] for content in message["content"]] == ["text", "file"]
    assert message["content"][1] | file == message["content"][1]
    for end in (events.RunCompleted("stop"), events.RunFailed("cancelled", "Stop.")):
        [message] = lines(told([made, end]))[-1]["output"]
        assert (message["type"], message["status"]) == ("message", "completed")
        assert message["content"][0] | file == message["content"][0]
    cut = events.ArtifactCreated("a2", "tool_result", "application/json", "big.json", 9)
    [message] = lines(told([cut, events.RunCompleted("stop")]))[-1]["output"]
    assert message["content"][0]["type"] == "text", "a tool's output names its own file"


def test_a_refusal_stands_in_place_of_the_words_in_which_it_came() -> None:
    first = events.MessageCompleted(events.MessageBody("first", "assistant", "I look."))
    closing: list[Fact] = [said_with("I can't."), events.StageCompleted("execution", 5)]
    for last in (closing, []):
        words: list[Fact] = [events.MessageDelta("first", "I look."), first]
        words += [events.MessageDelta(SAID, "I can't."), *last, events.RunCompleted("refusal")]
        before, message = lines(told(words))[-1]["output"]
        assert before["content"][0]["type"] == "text"
        [content] = message["content"]
        assert (content["type"], content["index"], content["refusal"]) == ("refusal", 0, "I can't.")
        assert (message["status"], content["status"]) == ("completed", "completed")


def test_a_heartbeat_is_a_message_that_holds_nothing() -> None:
    beat = agent_api.encoder(HEAD).heartbeat(0)
    assert beat is not None
    assert (beat.event, beat.id) == ("", None)
    heard = oracle.clients.parse_event_from_json(json.loads(beat.data))
    assert heard.model_dump_json().encode() == beat.data
    assert (heard.type, heard.sequence_number, heard.content) == ("heartbeat", None, None)


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
