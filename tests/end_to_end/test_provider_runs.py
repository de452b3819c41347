"""Runs on a provider that misbehaves: one ending, one truth, and a thread that goes on (promise P2)."""

from __future__ import annotations

import random
import socket
import string
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from pytest_django import Settings

from tests.support.client import Client, ScriptedModel, Seen, reply
from tests.support.fakes.fake_model import (
    DONE,
    Answer,
    End,
    FakeModel,
    Finish,
    Step,
    status,
    text,
    tool_calls,
)

pytestmark = pytest.mark.once

Scripted = Callable[..., ScriptedModel]


@pytest.fixture
def hurried(settings: Settings) -> None:
    """Time-outs short enough to wait for."""
    settings.PROVIDER_CONNECT_S = 0.1
    settings.PROVIDER_FIRST_TOKEN_S = 0.2
    settings.PROVIDER_IDLE_S = 0.2


def script(provider: FakeModel, *answers: Answer) -> str:
    """A model name of its own for these answers."""
    name = uuid4().hex
    provider.script(*answers, name=name)
    return f"script:{name}"


def run(
    client: Client, model: str, conversation_id: str | None = None
) -> tuple[dict[str, Any], list[Seen]]:
    """A run without tools on this model, watched to its end."""
    accepted = client.start(
        "How do I squat?", model, conversation_id=conversation_id, enable_exercise_search=False
    )
    return accepted, client.watch(accepted["run_id"])


def stored(client: Client, accepted: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and content of the messages of the conversation."""
    messages = client.history(accepted["conversation_id"])["messages"]
    return [(message["role"], message["content"]) for message in messages]


def check_failed(
    client: Client, accepted: dict[str, Any], frames: list[Seen], code: str, said: str
) -> None:
    """The run has failed once, everywhere with the same code and text, and its thread is free."""
    assert [frame.event for frame in frames if frame.event in {"completed", "error"}] == ["error"]
    last = frames[-1]
    assert (last.event, last.data["code"]) == ("error", code)
    assert last.data["error"] == last.data["message"]
    assert not {"sk-test", "127.0.0.1"} & set(last.data["message"].split())
    detail = client.run(accepted["run_id"])
    assert detail["status"] == "failed"
    assert detail["error"] == {"code": code, "message": last.data["message"]}
    assert detail["finish_reason"] is None
    assert reply(frames) == said
    answered = [("assistant", said)] if said else []
    assert stored(client, accepted) == [("user", "How do I squat?"), *answered]
    _, next_frames = run(client, "demo", accepted["conversation_id"])
    assert next_frames[-1].event == "completed"


def check_completed(
    client: Client, accepted: dict[str, Any], frames: list[Seen], said: str
) -> dict[str, Any]:
    """The run has completed, and what was streamed is what is stored; its row."""
    assert (frames[-1].event, reply(frames)) == ("completed", said)
    assert frames[-1].data["reply_len"] == len(said)
    detail = client.run(accepted["run_id"])
    assert (detail["status"], detail["error"]) == ("completed", None)
    answered = [("assistant", said)] if said else []
    assert stored(client, accepted) == [("user", "How do I squat?"), *answered]
    return detail


# --- failures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "code", "said"),
    [
        ("status-400", "provider_bad_request", ""),
        ("status-401", "provider_auth_error", ""),
        ("status-403", "provider_auth_error", ""),
        ("status-404", "provider_model_not_found", ""),
        ("status-418", "provider_error", ""),
        ("status-500", "provider_unavailable", ""),
        ("status-503", "provider_unavailable", ""),
        ("cut-first", "provider_unreachable", ""),
        ("cut", "provider_stream_interrupted", "Hello"),
        ("truncated", "provider_stream_interrupted", "Hello"),
        ("rubbish", "provider_invalid_response", ""),
        ("bad-chunk", "provider_invalid_response", "Hello"),
        ("error-in-stream", "provider_unavailable", "Hello"),
    ],
)
def test_a_provider_that_fails_ends_the_run_with_this_code(
    client: Client, scripted: Scripted, model: str, code: str, said: str
) -> None:
    accepted, frames = run(client, scripted(model).name)
    check_failed(client, accepted, frames, code, said)


@pytest.mark.usefixtures("hurried")
@pytest.mark.parametrize(("model", "said"), [("hang", ""), ("hang-midway", "Hello")])
def test_a_provider_that_hangs_ends_the_run_in_time(
    client: Client, scripted: Scripted, model: str, said: str
) -> None:
    accepted, frames = run(client, scripted(model).name)
    check_failed(client, accepted, frames, "provider_timeout", said)


def test_a_provider_that_limits_our_rate_ends_the_run_after_three_tries(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    model = script(provider, status(429, headers={"retry-after": "0"}))
    accepted, frames = run(client, scripted(model).name)
    check_failed(client, accepted, frames, "provider_rate_limited", "")
    assert len(provider.requests_for(model)) == 3


def test_a_provider_that_repeats_its_key_shows_it_to_nobody(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    key = "sk-test-key-of-the-suite-0123456789"
    echo = replace(text("Bearer ", key[:9], key[9:], "?"), headers={"x-request-id": f"Bearer {key}"})
    accepted, frames = run(client, scripted(script(provider, echo)).name)
    check_completed(client, accepted, frames, "Bearer ***?")
    assert all(key not in str(frame.data) for frame in frames)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT events::text FROM conversations_eventbatch WHERE run_id = %s", [accepted["run_id"]]
        )
        logged = str(cursor.fetchall())
    assert "Bearer ***" in logged
    assert key not in logged


def test_a_provider_that_is_not_there_ends_the_run(client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    model = ScriptedModel.make(f"http://127.0.0.1:{port}/v1", ("gpt-test",))
    accepted, frames = run(client, model.name)
    check_failed(client, accepted, frames, "provider_unreachable", "")


def test_a_failure_before_the_first_delta_that_passes_is_not_seen(
    client: Client, scripted: Scripted
) -> None:
    accepted, frames = run(client, scripted(f"fail-2:{uuid4().hex}").name)
    check_completed(client, accepted, frames, "Hello, world. 你好，世界。")
    assert [f.data["state"] for f in frames if f.event == "status"] == ["queued", "working", "routed"]


def test_a_run_is_cancelled_in_the_middle_of_a_stream_and_leaves_the_provider(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    before = provider.disconnects
    accepted = client.start("How do I squat?", scripted("endless").name, enable_exercise_search=False)
    seen = client.watch(accepted["run_id"], stop_after=5)
    assert seen[-1].event == "content_delta"
    assert client.http.post(f"/api/v1/agent/runs/{accepted['run_id']}/cancel").status_code == 202
    frames = client.watch(accepted["run_id"])
    assert (frames[-1].event, frames[-1].data["code"]) == ("error", "cancelled")
    assert frames[: len(seen)] == seen
    assert client.run(accepted["run_id"])["status"] == "cancelled"
    assert stored(client, accepted) == [("user", "How do I squat?"), ("assistant", reply(frames))]
    provider.wait_for_disconnects(before + 1)


# --- candidates ----------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["status-429", "status-503", "cut-first"])
def test_the_second_candidate_serves_the_run_when_the_first_fails(
    client: Client, scripted: Scripted, bad: str
) -> None:
    mapping = scripted(bad, "usage")
    accepted, frames = run(client, mapping.name)
    detail = check_completed(client, accepted, frames, "Hello, world. 你好，世界。")
    second = mapping.endpoint_ids[1]
    assert [detail[key] for key in ("provider", "resolved_model", "endpoint_id")] == [
        "fake",
        "usage",
        second,
    ]
    counted = detail["usage"]
    assert [model["endpoint_id"] for model in counted.pop("models")] == [second]
    assert counted == {
        "input_tokens": 11,
        "output_tokens": 8,
        "cached_tokens": 7,
        "reasoning_tokens": 5,
        "cache_write_tokens": 0,
        "unpriced_tokens": 19,
        "cost_usd": None,
    }
    assert frames[-1].data["endpoint_id"] == second
    assert frames[-1].data["upstream_request_id"].startswith("req_fake_")


def test_no_candidate_takes_over_what_another_has_begun_to_say(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    second = script(provider, text("never asked for"))
    accepted, frames = run(client, scripted("cut", second).name)
    check_failed(client, accepted, frames, "provider_stream_interrupted", "Hello")
    assert provider.requests_for(second) == []


def test_when_every_candidate_fails_the_run_fails_as_the_last_one(
    client: Client, scripted: Scripted
) -> None:
    accepted, frames = run(client, scripted("status-503", "status-401").name)
    check_failed(client, accepted, frames, "provider_auth_error", "")


# --- what models say -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pieces",
    [
        ("卧推时", "肩胛收紧，", "脚踩实。"),
        ("Сохраняйте ", "спину прямой."),
        ("حافظ على ", "استقامة ظهرك"),
        ("🏋️‍♀️", "👨‍👩‍👧‍👦 ", "🇪🇺"),
        ("line\n", "tab\t", "cr\r\n", "sep\u2028\u2029\x85\x0b\x0c", "zero\u200bwidth", "\ufeff"),
        ("data: x\n\n", "event: completed\n\n", ": comment"),
        ('{"a": "\\u0041"}', "</script>", "<!-- -->"),
        ("x" * 100_000,),
        ("长" * 100_000,),
        ("word " * 20_000,),
    ],
    ids=lambda pieces: "".join(pieces)[:12].encode("ascii", "backslashreplace").decode(),
)
def test_a_text_is_streamed_and_stored_as_the_model_said_it(
    client: Client, scripted: Scripted, provider: FakeModel, pieces: tuple[str, ...]
) -> None:
    accepted, frames = run(client, scripted(script(provider, text(*pieces))).name)
    check_completed(client, accepted, frames, "".join(pieces))
    deltas = [frame.data for frame in frames if frame.event == "content_delta"]
    assert [delta["seq"] for delta in deltas] == list(range(1, len(deltas) + 1))
    assert max(len(delta["delta"]) for delta in deltas) <= 256


def test_a_nul_in_a_text_is_streamed_and_stored_as_a_replacement_character(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    accepted, frames = run(client, scripted(script(provider, text("a\x00b", "\x00"))).name)
    check_completed(client, accepted, frames, "a\ufffdb\ufffd")


def test_half_a_surrogate_pair_is_streamed_and_stored_as_a_replacement_character(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    chunks = [
        rb'data: {"choices":[{"delta":{"content":"a\ud83c"}}]}' + b"\n\n",
        rb'data: {"choices":[{"delta":{"content":"\udfcb b"},"finish_reason":"stop"}]}' + b"\n\n",
    ]
    accepted, frames = run(client, scripted(script(provider, Answer((*chunks, DONE)))).name)
    check_completed(client, accepted, frames, "a\ufffd\ufffd b")


def test_a_model_that_says_nothing_completes_without_a_message(
    client: Client, scripted: Scripted
) -> None:
    accepted, frames = run(client, scripted("silent").name)
    check_completed(client, accepted, frames, "")


def test_the_answer_of_a_model_that_reasons_is_its_answer_alone(
    client: Client, scripted: Scripted
) -> None:
    accepted, frames = run(client, scripted("reasoning").name)
    check_completed(client, accepted, frames, "Hello, world. 你好，世界。")


@pytest.mark.parametrize(
    ("model", "reason"), [("length", "length"), ("content-filter", "content_filter")]
)
def test_why_a_model_stopped_is_kept(
    client: Client, scripted: Scripted, model: str, reason: str
) -> None:
    _, frames = run(client, scripted(model).name)
    assert frames[-1].data["metadata"]["finish_reason"] == reason


def test_a_tool_that_the_run_did_not_offer_is_shown_and_refused(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    model = script(provider, tool_calls(("call_a", "search", '{"q":"卧推"}')))
    accepted, frames = run(client, scripted(model).name)
    assert [(f.event, f.data["tool_name"]) for f in frames if f.event.startswith("tool_")] == [
        ("tool_start", "search"),
        ("tool_result", "search"),
    ]
    assert frames[3].data["args"] == {"q": "卧推"}
    assert frames[4].data["error"] == {
        "code": "tool_not_offered",
        "message": "This run does not offer a tool of this name.",
    }
    assert frames[-1].data["metadata"]["finish_reason"] == "tool_calls"
    assert stored(client, accepted)[1:] == [
        ("tool", "search failed: This run does not offer a tool of this name.")
    ]


NOISE = "".join(random.Random(7).choices(string.ascii_letters, k=20_000))


@pytest.mark.parametrize(
    "steps",
    [
        (Finish("x" * 10_000),),
        (Finish("a\x00b"),),
        ({"tool_calls": [{"index": 0, "id": "c\x00", "function": {"name": "a\x00b"}}]}, Finish("stop")),
        ({"tool_calls": [{"index": 0, "id": NOISE, "function": {"name": NOISE}}]}, Finish("stop")),
        ({"tool_calls": [{"index": 2**70, "function": {"name": "t"}}]}, Finish("stop")),
        (Finish("stop"), b'data: {"usage":{"prompt_tokens":99999999999,"completion_tokens":-1}}\n\n'),
    ],
    ids=["long-reason", "nul-reason", "nul-tool", "long-tool", "huge-index", "huge-usage"],
)
def test_whatever_a_model_says_of_itself_its_run_completes(
    client: Client, scripted: Scripted, provider: FakeModel, steps: tuple[Step, ...]
) -> None:
    model = script(provider, Answer(({"content": "ok"}, *steps, DONE)))
    accepted, frames = run(client, scripted(model).name)
    assert (frames[-1].event, reply(frames)) == ("completed", "ok")
    assert client.run(accepted["run_id"])["status"] == "completed"


def test_a_provider_that_keeps_its_stream_open_after_the_end_does_not_hold_the_run(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    model = script(provider, Answer((*text("Hel", "lo").steps, End.HANG)))
    accepted, frames = run(client, scripted(model).name)
    check_completed(client, accepted, frames, "Hello")


def test_the_conversation_so_far_and_what_was_found_go_to_the_model(
    client: Client, scripted: Scripted, provider: FakeModel
) -> None:
    model = script(provider, text("First."), text("Second."))
    name = scripted(model).name
    accepted, _ = run(client, name)
    again = client.start("bench press", name, conversation_id=accepted["conversation_id"])
    assert reply(client.watch(again["run_id"])) == "Second."
    messages = provider.requests_for(model)[1].body["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "user",
    ]
    assert [message["content"] for message in messages[1:3]] == ["How do I squat?", "First."]
    assert messages[3]["content"].startswith(
        '<gymbro_injected_context>\n<tool name="gymbro.exercise.search"><text>- '
    )
    assert messages[4]["content"] == "bench press"
