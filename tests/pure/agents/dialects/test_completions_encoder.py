"""OpenAI's Chat Completions: chunks of the SDK's own types, which its accumulator takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import omit
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from agents.dialects.base import RunHead
from agents.dialects.openai_chat import dialect as chat_completions
from agents.dialects.openai_chat.encoder import CompletionEncoder
from conversations import events
from conversations.events import MessageBody, RunEvent
from conversations.log.transcript import fold
from tests.agents.dialects.agent_api.runs import HEAD, RUN, RUNS, frames, resumed, told
from tests.support.paths import ROOT
from tests.support.properties import strategies
from tests.support.properties.effort import examples

WITH_USAGE = msgspec.structs.replace(HEAD, wire={"model": "demo", "usage": True})
SAID = f"execution-{RUN.hex}"
ID = f"chatcmpl-{RUN.hex}"
UNKNOWN = {"reasoning_content", "annotations"}
"""What OpenAI's type of a delta has not: what DeepSeek's clients read, and what its web search sends."""


def lines(run: Sequence[RunEvent], head: RunHead = HEAD) -> list[Any]:
    return [json.loads(frame.data) for frame in frames(chat_completions, run, head)]


def answer(run: Sequence[RunEvent], head: RunHead = HEAD) -> Any:
    encoder = fed(run, head)
    return json.loads(encoder.answer())


def fed(run: Sequence[RunEvent], head: RunHead = HEAD) -> CompletionEncoder:
    encoder = chat_completions.encoder(head)
    for event in run:
        encoder.feed(event)
    return encoder


def deltas(said: list[Any]) -> list[Any]:
    return [choice["delta"] for line in said for choice in line.get("choices", ())]


def text(said: list[Any], field: str = "content") -> str:
    return "".join(delta.get(field) or "" for delta in deltas(said))


@settings(max_examples=examples(60), deadline=None)
@given(RUNS)
def test_the_sdk_s_types_and_accumulator_take_whatever_a_runner_does(run: list[RunEvent]) -> None:
    said = lines(run, WITH_USAGE)
    failed = "error" in said[-1]
    chunks = [ChatCompletionChunk.model_validate(line) for line in (said[:-1] if failed else said)]
    state: Any = ChatCompletionStreamState(response_format=omit, input_tools=omit)
    for chunk in chunks:
        state.handle_chunk(chunk)
        assert not chunk.model_extra
        for choice in chunk.choices:
            assert set(choice.delta.model_extra or ()) <= UNKNOWN
    whole = answer(run, WITH_USAGE)
    assert ("error" in whole) == failed
    if failed:
        assert whole["error"] == said[-1]["error"]
        return
    finishes = [choice.finish_reason for chunk in chunks for choice in chunk.choices]
    assert [reason is not None for reason in finishes] == [False] * (len(finishes) - 1) + [True]
    assert (chunks[-1].choices, chunks[-1].usage is not None) == ([], True)
    assert not [chunk for chunk in chunks[:-1] if chunk.usage is not None]
    assert chunks[0].choices[0].delta.role == "assistant"
    completion = ChatCompletion.model_validate(whole)
    assert not completion.model_extra
    built = state.current_completion_snapshot.choices[0].message.tool_calls or []
    assert [(call.id, call.function.arguments) for call in built] == [
        (call.id, call.function.arguments)  # type: ignore[union-attr]
        for call in completion.choices[0].message.tool_calls or []
    ]


@settings(max_examples=examples(40), deadline=None)
@given(RUNS, st.data())
def test_a_reader_cut_off_between_two_events_gets_the_rest(
    run: list[RunEvent], data: st.DataObject
) -> None:
    whole = frames(chat_completions, run)
    places = [-1, *(frame.id for frame in whole if frame.id is not None)]
    after = data.draw(st.sampled_from(places))
    seen = next((n for n, frame in enumerate(whole, 1) if frame.id == after), 0)
    assert resumed(chat_completions, run, after) == whole[seen:]


@settings(max_examples=examples(60), deadline=None)
@given(strategies.LOGGED_RUNS)
def test_what_is_streamed_is_what_is_stored(run: list[RunEvent]) -> None:
    kept = [message.content for message in fold(RUN, run).messages() if message.role == "assistant"]
    heard = text(lines(run)).replace("\0", "").replace("\n\n", "")
    assert sorted(heard) == sorted("".join(kept).replace("\n\n", ""))


def test_a_stream_byte_for_byte() -> None:
    run = told(
        [
            events.ReasoningDelta(SAID, "Hm"),
            events.MessageDelta(SAID, "你"),
            events.MessageDelta(SAID, "好"),
            events.ToolCallStarted("t1", "search", {"q": "x"}),
            events.ToolCallCompleted("t1", "search", True, 3, {"total": 2}),
            events.ToolCallStarted("call_1", "get_weather", {"city": "Ulm"}, "frontend"),
            events.RunCompleted("tool_calls", events.Usage(12, 34, 5, 6)),
        ]
    )
    begun = (
        f'{{"id":"{ID}","object":"chat.completion.chunk","created":1700000000,"model":"demo",'
        '"service_tier":"default","system_fingerprint":null,"choices":['
    )
    told_of = [
        ('{"role":"assistant","content":null,"refusal":null}', "null"),
        ('{"reasoning_content":"Hm"}', "null"),
        ('{"content":"你"}', "null"),
        ('{"content":"好"}', "null"),
        (
            '{"tool_calls":[{"index":0,"id":"call_1","type":"function",'
            '"function":{"name":"get_weather","arguments":""}}]}',
            "null",
        ),
        ('{"tool_calls":[{"index":0,"function":{"arguments":"{\\"city\\":\\"Ulm\\"}"}}]}', "null"),
        ("{}", '"tool_calls"'),
    ]
    usage = (
        '{"prompt_tokens":12,"completion_tokens":34,"total_tokens":46,"prompt_tokens_details":'
        '{"cached_tokens":5,"cache_write_tokens":0,"audio_tokens":0},"completion_tokens_details":'
        '{"reasoning_tokens":6,"audio_tokens":0,"accepted_prediction_tokens":0,'
        '"rejected_prediction_tokens":0}}'
    )
    sent = frames(chat_completions, run, WITH_USAGE)
    assert [frame.data.decode() for frame in sent] == [
        *(
            f'{begun}{{"index":0,"delta":{delta},"logprobs":null,"finish_reason":{end}}}],"usage":null}}'
            for delta, end in told_of
        ),
        f'{begun}],"usage":{usage}}}',
    ]
    assert [frame.event for frame in sent] == [""] * 7 + ["done"]
    assert [frame.id for frame in sent] == [None, 3, 4, 5, None, 8, None, 9]
    plain = [frame.data.decode() for frame in frames(chat_completions, run)]
    assert plain[-1].endswith('"delta":{},"logprobs":null,"finish_reason":"tool_calls"}]}')
    assert '"usage"' not in "".join(plain)


def test_the_exchange_on_the_page_is_what_is_sent() -> None:
    page = (ROOT / "docs" / "clients" / "chat-completions.md").read_text()
    shown = [line.removeprefix("data: ") for line in page.splitlines() if line.startswith("data: ")]
    run = told([events.MessageDelta(SAID, "Hello"), events.RunCompleted("stop", events.Usage(11, 8))])
    assert shown == [
        *(frame.data.decode() for frame in frames(chat_completions, run, WITH_USAGE)),
        "[DONE]",
    ]


def test_a_completion_whole() -> None:
    run = told(
        [
            events.ReasoningDelta(SAID, "Hm"),
            events.MessageDelta(SAID, "I look."),
            events.ToolCallStarted("t1", "search", {"q": "x"}),
            events.ToolCallCompleted("t1", "search", True, 3, {"total": 2}),
            events.MessageDelta("second", "Two."),
            events.RunCompleted("stop", events.Usage(12, 34, 5, 6)),
        ]
    )
    assert answer(run) == {
        "id": ID,
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": "demo",
        "service_tier": "default",
        "system_fingerprint": None,
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "I look.\n\nTwo.",
                    "refusal": None,
                    "annotations": [],
                    "reasoning_content": "Hm",
                },
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": 12,
            "completion_tokens": 34,
            "total_tokens": 46,
            "prompt_tokens_details": {"cached_tokens": 5, "cache_write_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {
                "reasoning_tokens": 6,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
        },
    }
    assert text(lines(run)) == "I look.\n\nTwo."


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("stop", "stop"),
        ("", "stop"),
        ("length", "length"),
        ("max_tokens", "length"),
        ("content_filter", "content_filter"),
        ("invalid_tool_call", "stop"),
        ("tool_calls", "stop"),  # of ours alone: nothing is left to the client
        ("interrupt", "stop"),
    ],
)
def test_how_answers_end(reason: str, finish: str) -> None:
    run = told([events.MessageDelta(SAID, "half"), events.RunCompleted(reason)])
    assert lines(run)[-1]["choices"][0]["finish_reason"] == finish
    assert answer(run)["choices"][0]["finish_reason"] == finish


def test_a_call_of_the_client_s_is_the_end_whatever_the_runner_calls_it() -> None:
    asked = events.ToolCallStarted("c", "f", {}, "frontend")
    for reason, finish in (("stop", "tool_calls"), ("length", "length")):
        run = told([asked, events.RunCompleted(reason)])
        choice = answer(run)["choices"][0]
        assert choice["finish_reason"] == finish
        assert choice["message"]["content"] is None


def test_a_refusal_is_one() -> None:
    run = told([events.MessageDelta(SAID, "I can't."), events.RunCompleted("refusal")])
    choice = answer(run)["choices"][0]
    assert (choice["message"]["content"], choice["message"]["refusal"]) == (None, "I can't.")
    assert choice["finish_reason"] == "stop"
    assert lines(run)[-1]["choices"][0]["finish_reason"] == "content_filter"  # its words were sent


@pytest.mark.parametrize(
    ("failed", "status", "kind"),
    [
        (events.RunFailed("provider_rate_limited", "Slow down.", True), 429, "rate_limit_error"),
        (events.RunFailed("budget_exceeded", "Used up."), 429, "insufficient_quota"),
        (events.RunFailed("provider_context_exceeded", "Long."), 422, "invalid_request_error"),
        (events.RunFailed("provider_timeout", "Late.", True), 503, "server_error"),
        (events.RunFailed("structured_output_invalid", "No.", True), 503, "server_error"),
        (events.RunFailed("internal_error", "Ours.", True), 500, "server_error"),
        (events.RunFailed("provider_auth_error", "Key."), 500, "server_error"),
        (events.RunFailed("cancelled", "Stop."), 409, "invalid_request_error"),
    ],
)
def test_how_runs_fail(failed: events.RunFailed, status: int, kind: str) -> None:
    run = told([events.MessageDelta(SAID, "half"), failed])
    error = {"message": failed.message, "type": kind, "param": None, "code": failed.code}
    assert lines(run)[-1] == {"error": error}
    encoder = fed(run)
    assert json.loads(encoder.answer()) == {
        "detail": failed.message,
        "code": failed.code,
        "request_id": HEAD.request_id,
        "error": error,
    }
    assert encoder.failure is not None
    assert encoder.failure.status == status
    assert (encoder.failure.retry_after is not None) == (status in (429, 503))
    assert encoder.may_retry is failed.retryable


def test_what_has_not_ended_is_no_answer() -> None:
    encoder = fed(told([events.MessageDelta(SAID, "half")]))
    assert not encoder.ended
    assert json.loads(encoder.answer())["error"]["code"] == "unavailable"


def test_a_call_that_waits_for_an_approval_is_said_in_words() -> None:
    interrupt = {"id": "i", "toolCallId": "t", "metadata": {"tool_name": "pay"}}
    run = told(
        [
            events.MessageDelta(SAID, "I pay."),
            events.ToolCallStarted("t", "pay", {}),
            events.RunCompleted("interrupt", interrupts=[interrupt]),
        ]
    )
    assert text(lines(run)) == "I pay.\n\n[pay waits for an approval.]"
    assert answer(run)["choices"][0]["message"]["content"] == text(lines(run))


def test_a_whole_message_that_replaces_its_pieces() -> None:
    whole = events.MessageCompleted(MessageBody(SAID, "assistant", "final"), replaces=True)
    run = told([events.MessageDelta(SAID, "draft"), whole, events.RunCompleted("stop")])
    assert text(lines(run)) == "draft\n\nfinal"
    assert answer(run)["choices"][0]["message"]["content"] == "final"


def test_an_answer_of_a_form_is_the_message_that_was_checked() -> None:
    run = told(
        [
            events.MessageDelta(SAID, "Let me look."),
            events.ToolCallStarted("t1", "search", {}),
            events.ToolCallCompleted("t1", "search", True, 3, {}),
            events.MessageDelta("second", '{"a":1}'),
            events.RunCompleted("stop"),
        ]
    )
    head = msgspec.structs.replace(HEAD, wire={"form": True})
    assert answer(run, head)["choices"][0]["message"]["content"] == '{"a":1}'
