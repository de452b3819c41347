"""The fold: what was streamed, what is stored, and how a run is closed (promises P2 and P3)."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from conversations import events
from conversations.events import Fact, RunEvent
from conversations.log.transcript import StoredMessage, Transcript, fold
from conversations.runs.endings import FAILURES, compose_ending
from conversations.usage import sum_usage
from tests.support.properties.strategies import (
    AT,
    OBJECTS,
    RUNS,
    TERMINALS,
    UNENDED_RUNS,
    numbered,
    texts,
)

RUN_ID = UUID("0199c3c0-1111-7222-8333-444455556666")
HEX = "0199c3c0111172228333444455556666"
SEARCH = "gymbro.exercise.search"
FAILED = events.RunFailed("provider_timeout", "It fell silent.", True)


def stored(transcript: Transcript) -> list[tuple[str, str, dict[str, Any]]]:
    return [(m.role, m.content, json.loads(m.metadata)) for m in transcript.messages()]


def folded(*facts: Fact) -> Transcript:
    return fold(RUN_ID, numbered(facts))


def closed(transcript: Transcript, terminal: events.Terminal) -> Transcript:
    """The transcript after its closing facts and the terminal one."""
    facts = [*transcript.closing_facts(terminal, AT), terminal]
    for event in numbered(facts, after=transcript.last_seq):
        transcript.feed(event)
    return transcript


def deltas(some: list[RunEvent]) -> dict[str, str]:
    """The streamed text of each message."""
    found: dict[str, str] = defaultdict(str)
    for event in some:
        if isinstance(event.fact, events.MessageDelta):
            found[event.fact.message_id] += event.fact.text
    return found


# --- literals ------------------------------------------------------------------------------------


def test_a_whole_run_is_stored_as_these_messages() -> None:
    transcript = folded(
        events.RunQueued(1),
        events.RunStarted(1, AT),
        events.StageStarted("execution"),
        events.ToolCallStarted("prefetch-1", SEARCH, {"query": "卧推", "top_k": 5}),
        events.ToolCallCompleted("prefetch-1", SEARCH, True, 12, {"total": 2, "results": ["a", "b"]}),
        events.ModelRouted("xai", "grok-4", 3, "up-1"),
        events.MessageDelta("execution-1", "卧推"),
        events.ReasoningDelta("execution-1", "not said"),
        events.MessageDelta("execution-1", "，好。"),
        events.MessageCompleted(events.MessageBody("execution-1", "assistant", "卧推，好。")),
        events.StageCompleted("execution", 80),
        events.RunCompleted("stop"),
    )
    assert stored(transcript) == [
        (
            "tool",
            "gymbro.exercise.search: 2 found",
            {
                "run_id": HEX,
                "stage": "tool_execution",
                "message_id": f"tool-{HEX}-prefetch-1",
                "tool_name": SEARCH,
                "tool_arguments": {"query": "卧推", "top_k": 5},
                "latency_ms": 12,
                "tool_agent_output": {
                    "tool_name": SEARCH,
                    "tool_call_id": "prefetch-1",
                    "ok": True,
                    "result": {"total": 2, "results": ["a", "b"]},
                    "latency_ms": 12,
                },
            },
        ),
        (
            "assistant",
            "卧推，好。",
            {
                "run_id": HEX,
                "message_id": "execution-1",
                "stage": "execution",
                "latency_ms": 80,
                "worker_agent_output": {"answer": "卧推，好。", "status": "completed"},
            },
        ),
    ]


def test_a_stage_in_which_nothing_was_said_is_stored_with_its_timing() -> None:
    transcript = folded(
        events.StageStarted("intent"),
        events.StageCompleted("intent", 2610, SEARCH),
        events.StageStarted("execution"),
        events.MessageDelta("execution-1", "Hi."),
        events.StageCompleted("execution", 80),
        events.RunCompleted("stop"),
    )
    assert stored(transcript)[-1] == (
        "activity",
        SEARCH,
        {"run_id": HEX, "stage": "intent", "latency_ms": 2610, "message_id": f"intent-{HEX}"},
    )


def test_a_call_that_waits_for_the_client_is_stored_with_the_message_that_makes_it() -> None:
    transcript = folded(
        events.StageStarted("execution"),
        events.ToolCallStarted("c", "get_weather", {"city": "北京"}, "frontend"),
    )
    terminal = events.RunCompleted("tool_calls")
    assert transcript.closing_facts(terminal, 0) == [events.StageCompleted("execution", 0)]
    assert [type(fact) for fact in transcript.closing_facts(events.RunFailed("cancelled", ""), AT)] == [
        events.ToolCallCompleted,
        events.StageCompleted,
    ]
    transcript.feed(events.RunEvent(3, AT, terminal))
    ((role, content, metadata),) = stored(transcript)
    assert metadata["message_id"] == "call-c"
    calls = [{"id": "c", "name": "get_weather", "arguments": '{"city":"北京"}'}]
    assert (role, content, metadata["tool_calls"]) == ("assistant", "", calls)


def test_metadata_and_hints_that_a_runner_gives_are_kept_beside_ours() -> None:
    hints = {"status": "success", "title": "日程已创建"}
    body = events.MessageBody("m", "assistant", "done", {"mood": "good", "run_id": "forged"}, hints)
    transcript = folded(
        events.MessageCompleted(body),
        events.ToolCallStarted("c", "plan", {}),
        events.ToolCallCompleted("c", "plan", True, 3, {"id": 7}, ui_hints=hints),
        events.RunCompleted("stop"),
    )
    assert stored(transcript) == [
        (
            "assistant",
            "done",
            {
                "mood": "good",
                "run_id": HEX,
                "message_id": "m",
                "worker_agent_output": {"answer": "done", "status": "completed", "ui_hints": hints},
            },
        ),
        (
            "tool",
            "plan: done",
            {
                "run_id": HEX,
                "stage": "tool_execution",
                "message_id": f"tool-{HEX}-c",
                "tool_name": "plan",
                "tool_arguments": {},
                "latency_ms": 3,
                "tool_agent_output": {
                    "tool_name": "plan",
                    "tool_call_id": "c",
                    "ok": True,
                    "result": {"id": 7},
                    "latency_ms": 3,
                    "ui_hints": hints,
                },
            },
        ),
    ]


def test_a_failed_tool_is_stored_with_its_problem() -> None:
    problem = events.Problem("exercise_search_failed", "The search failed.")
    transcript = folded(
        events.ToolCallStarted("c", SEARCH, {}),
        events.ToolCallCompleted("c", SEARCH, False, 7, error=problem),
        FAILED,
    )
    assert stored(transcript) == [
        (
            "tool",
            "gymbro.exercise.search failed: The search failed.",
            {
                "run_id": HEX,
                "stage": "tool_execution",
                "message_id": f"tool-{HEX}-c",
                "tool_name": SEARCH,
                "tool_arguments": {},
                "latency_ms": 7,
                "tool_agent_output": {
                    "tool_name": SEARCH,
                    "tool_call_id": "c",
                    "ok": False,
                    "error": {"code": "exercise_search_failed", "message": "The search failed."},
                    "latency_ms": 7,
                },
            },
        )
    ]


def test_messages_of_other_roles_have_no_worker_output() -> None:
    transcript = folded(events.MessageCompleted(events.MessageBody("m", "reasoning", "hm")), FAILED)
    assert stored(transcript) == [("reasoning", "hm", {"run_id": HEX, "message_id": "m"})]


def test_messages_stand_in_the_order_in_which_they_began() -> None:
    transcript = folded(
        events.MessageDelta("a", "1"),
        events.ToolCallStarted("c", "t", {}),
        events.MessageDelta("b", "2"),
        events.ToolCallCompleted("c", "t", True, 1, {}),
        events.MessageDelta("a", "3"),
        events.MessageDelta("silent", ""),
    )
    assert [(m.role, m.content) for m in transcript.messages()] == [
        ("assistant", "13"),
        ("tool", "t: done"),
        ("assistant", "2"),
    ]


def test_a_message_belongs_to_the_stage_in_which_it_began() -> None:
    transcript = folded(
        events.StageStarted("intent"),
        events.MessageDelta("a", "1"),
        events.StageCompleted("intent", 5),
        events.StageStarted("execution"),
        events.MessageDelta("a", "2"),
        events.MessageDelta("b", "3"),
        events.StageCompleted("execution", 9),
    )
    stages = [(meta["stage"], meta["latency_ms"]) for _, _, meta in stored(transcript)]
    assert stages == [("intent", 5), ("execution", 9)]


def test_what_is_open_is_closed_calls_first_then_messages_then_stages() -> None:
    transcript = folded(
        events.StageStarted("execution"),
        events.MessageDelta("m", "half a"),
        events.ToolCallStarted("open", "t", {"q": 1}),
        events.ToolCallStarted("answered", "t", {}),
        events.ToolCallCompleted("answered", "t", True, 1, {}),
        events.MessageCompleted(events.MessageBody("whole", "assistant", "whole")),
        events.MessageDelta("m", " word"),
        events.StageStarted("over"),
        events.StageCompleted("over", 1),
    )
    problem = events.Problem("worker_lost", "The run ended before the tool answered.")
    assert transcript.closing_facts(events.RunFailed("worker_lost", ""), AT + 110) == [
        events.ToolCallCompleted("open", "t", False, 0, error=problem),
        events.MessageCompleted(events.MessageBody("m", "assistant", "half a word")),
        events.StageCompleted("execution", 100),
    ]


def test_a_stage_is_never_closed_before_it_began() -> None:
    transcript = folded(events.StageStarted("execution"))
    assert transcript.closing_facts(events.RunFailed("cancelled", ""), AT - 5_000) == [
        events.StageCompleted("execution", 0)
    ]


def test_an_untouched_transcript_is_empty() -> None:
    transcript = Transcript(RUN_ID)
    assert transcript.closing_facts(events.RunFailed("cancelled", ""), AT) == []
    assert transcript.messages() == ()
    assert transcript.text_of("m") == ""
    assert (transcript.status, transcript.has_output, transcript.last_seq) == ("running", False, 0)


@pytest.mark.parametrize(
    ("fact", "has_output"),
    [
        (events.RunStarted(1, AT), False),
        (events.StageStarted("execution"), False),
        (events.ModelRouted("p", "m"), False),
        (events.MessageDelta("m", "x"), True),
        (events.ToolCallStarted("c", "t", {}), True),
    ],
)
def test_words_and_calls_make_a_run_one_that_cannot_be_repeated(fact: Fact, has_output: bool) -> None:
    assert folded(fact).has_output is has_output


@pytest.mark.parametrize(
    ("terminal", "status"),
    [
        (events.RunCompleted("stop"), "completed"),
        (events.RunCompleted("length"), "completed"),
        (FAILED, "failed"),
        (FAILURES["deadline_exceeded"], "failed"),
        (FAILURES["worker_lost"], "failed"),
        (FAILURES["queue_timeout"], "failed"),
        (FAILURES["cancelled"], "cancelled"),
    ],
)
def test_the_status_is_that_of_the_last_event(terminal: events.Terminal, status: str) -> None:
    assert folded(events.RunQueued(1), terminal).status == status


def test_the_first_token_is_the_first_delta_of_the_answer() -> None:
    transcript = folded(
        events.ReasoningDelta("m", "hm"), events.MessageDelta("m", "a"), events.MessageDelta("m", "b")
    )
    assert transcript.first_token_at_ms == AT + 20


def test_nothing_that_is_stored_holds_a_nul() -> None:
    nul = "a\x00b"
    problem = events.Problem("failed", nul)
    transcript = folded(
        events.MessageDelta("m", nul),
        events.MessageCompleted(events.MessageBody("m", "assistant", nul, {nul: [nul, {"deep": nul}]})),
        events.ToolCallStarted("c", nul, {"q": nul}),
        events.ToolCallCompleted("c", nul, True, 1, {"found": [nul]}),
        events.ToolCallStarted("d", nul, {}),
        events.ToolCallCompleted("d", nul, False, 1, error=problem),
    )
    assert [(m.role, m.content) for m in transcript.messages()] == [
        ("assistant", "ab"),
        ("tool", "ab: done"),
        ("tool", "ab failed: ab"),
    ]
    metadata = [meta for _, _, meta in stored(transcript)]
    assert metadata[0]["ab"] == ["ab", {"deep": "ab"}]
    assert metadata[0]["worker_agent_output"]["answer"] == "ab"
    assert metadata[1]["tool_name"] == "ab"
    assert metadata[1]["tool_agent_output"]["result"] == {"found": ["ab"]}
    assert metadata[2]["tool_agent_output"]["error"] == {"code": "failed", "message": "ab"}


def test_a_backslash_that_only_looks_like_a_nul_is_kept() -> None:
    looks = "a\\u0000b"
    transcript = folded(events.MessageDelta("m", looks))
    assert stored(transcript)[0][1:] == (
        looks,
        {
            "run_id": HEX,
            "message_id": "m",
            "worker_agent_output": {"answer": looks, "status": "running"},
        },
    )


@given(OBJECTS)
def test_metadata_of_any_kind_can_be_stored(metadata: dict[str, Any]) -> None:
    body = events.MessageBody("m", "assistant", "said", metadata)
    (message,) = folded(events.MessageCompleted(body)).messages()
    assert "\\u0000" not in message.metadata.replace("\\\\", "")
    kept = json.loads(message.metadata)
    assert kept.items() >= {"run_id": HEX, "message_id": "m"}.items()


# --- properties ----------------------------------------------------------------------------------


@given(RUNS)
def test_the_fold_of_the_stored_events_is_the_transcript_that_was_kept(some: list[RunEvent]) -> None:
    live = Transcript(RUN_ID)
    for event in some:
        live.feed(event)
    assert fold(RUN_ID, events.decode(1, events.encode(some))) == live


@given(UNENDED_RUNS)
def test_the_fold_can_be_read_at_any_moment_without_changing_it(some: list[RunEvent]) -> None:
    read, unread = Transcript(RUN_ID), Transcript(RUN_ID)
    for event in some:
        read.feed(event)
        unread.feed(event)
        read.closing_facts(events.RunFailed("cancelled", ""), event.at)
        read.messages()
    assert read == unread


@given(UNENDED_RUNS, TERMINALS)
def test_after_closing_and_the_terminal_nothing_is_open(
    some: list[RunEvent], terminal: events.Terminal
) -> None:
    transcript = closed(fold(RUN_ID, some), terminal)
    assert transcript.closing_facts(events.RunFailed("cancelled", ""), AT) == []
    expected = "completed"
    if isinstance(terminal, events.RunFailed):
        expected = "cancelled" if terminal.code == "cancelled" else "failed"
    assert transcript.status == expected
    assert transcript.terminal == terminal


@given(UNENDED_RUNS)
def test_closing_closes_each_open_thing_once_and_nothing_else(some: list[RunEvent]) -> None:
    calls, messages, stages = set[str](), set[str](), set[str]()
    for event in some:
        match event.fact:
            case events.ToolCallStarted(call_id):
                calls.add(call_id)
            case events.ToolCallCompleted(call_id):
                calls.discard(call_id)
            case events.MessageDelta(message_id):
                messages.add(message_id)
            case events.StageStarted(stage):
                stages.add(stage)
            case events.StageCompleted(stage):
                stages.discard(stage)
    whole = [e.fact.message for e in some if isinstance(e.fact, events.MessageCompleted)]
    messages -= {body.message_id for body in whole if body.role != "reasoning"}
    closing = fold(RUN_ID, some).closing_facts(events.RunFailed("cancelled", ""), AT)
    kinds = [type(fact) for fact in closing]
    order = [events.ToolCallCompleted, events.MessageCompleted, events.StageCompleted]
    assert kinds == sorted(kinds, key=order.index)
    names: list[str] = []
    for fact in closing:
        match fact:
            case events.ToolCallCompleted(name) | events.StageCompleted(name):
                names.append(name)
            case events.MessageCompleted(body):
                names.append(body.message_id)
    assert sorted(names) == sorted([*calls, *messages, *stages])


@given(UNENDED_RUNS, TERMINALS)
def test_the_stored_answer_is_the_streamed_text(some: list[RunEvent], terminal: events.Terminal) -> None:
    spoken = [event for event in some if not isinstance(event.fact, events.MessageCompleted)]
    transcript = fold(RUN_ID, spoken)
    streamed = deltas(spoken)
    assert {name: transcript.text_of(name) for name in streamed} == streamed
    closed(transcript, terminal)
    answers = {
        meta["message_id"]: content for role, content, meta in stored(transcript) if role == "assistant"
    }
    assert answers == {name: said.replace("\x00", "") for name, said in streamed.items() if said}


@given(st.lists(texts(), max_size=8))
def test_the_text_so_far_is_the_deltas_so_far(pieces: list[str]) -> None:
    transcript = Transcript(RUN_ID)
    for number, piece in enumerate(pieces, 1):
        transcript.feed(RunEvent(number, AT, events.MessageDelta("m", piece)))
        assert transcript.text_of("m") == "".join(pieces[:number])


# --- endings -------------------------------------------------------------------------------------


@given(UNENDED_RUNS, TERMINALS)
def test_an_ending_has_exactly_one_terminal_event_and_it_is_the_last(
    some: list[RunEvent], terminal: events.Terminal
) -> None:
    transcript = fold(RUN_ID, some)
    opened = len(transcript.closing_facts(events.RunFailed("x", ""), AT))
    ending = compose_ending(transcript, terminal, fence=3, after=len(some))
    if transcript.calls and isinstance(terminal, events.RunCompleted):  # the calls' counts win
        word = transcript.calls[-1].upstream_reason
        said = ({"upstream_reason": word} if word else {}) | terminal.metadata
        terminal = replace(terminal, usage=sum_usage(transcript.calls), metadata=said)
    last = ending.batch.events
    assert [event.seq for event in last] == list(range(len(some) + 1, len(some) + opened + 2))
    assert [event.fact for event in last if isinstance(event.fact, events.TERMINAL)] == [terminal]
    assert last[-1].fact == terminal
    assert (ending.batch.first_seq, ending.batch.last_seq) == (last[0].seq, last[-1].seq)


@given(UNENDED_RUNS, TERMINALS)
def test_an_ending_is_the_fold_of_the_whole_log(some: list[RunEvent], terminal: events.Terminal) -> None:
    ending = compose_ending(fold(RUN_ID, some), terminal, fence=3, after=len(some))
    whole = fold(RUN_ID, [*some, *ending.batch.events])
    assert (ending.status, ending.messages) == (whole.status, whole.messages())
    assert ending.first_token_at_ms == whole.first_token_at_ms
    routed = whole.routed or events.ModelRouted("", "")
    assert (ending.provider, ending.resolved_model, ending.endpoint_id) == (
        routed.provider,
        routed.model,
        routed.endpoint_id,
    )


def test_the_ending_of_a_completed_run_says_all_that_its_row_keeps() -> None:
    some = numbered(
        [
            events.StageStarted("execution"),
            events.ModelRouted("xai", "grok-4", 3),
            events.MessageDelta("m", "hi"),
        ]
    )
    usage = events.Usage(11, 2, 7, 5)
    ending = compose_ending(fold(RUN_ID, some), events.RunCompleted("stop", usage), fence=3, after=3)
    assert [type(event.fact) for event in ending.batch.events] == [
        events.MessageCompleted,
        events.StageCompleted,
        events.RunCompleted,
    ]
    latency_ms = json.loads(ending.messages[0].metadata)["latency_ms"]
    metadata = {
        "run_id": HEX,
        "message_id": "m",
        "stage": "execution",
        "latency_ms": latency_ms,
        "worker_agent_output": {"answer": "hi", "status": "completed"},
    }
    assert [(m.role, m.content, json.loads(m.metadata)) for m in ending.messages] == [
        ("assistant", "hi", metadata)
    ]
    assert (ending.run_id, ending.fence, ending.status) == (RUN_ID, 3, "completed")
    assert (ending.finish_reason, ending.usage) == ("stop", usage)
    assert (ending.error_code, ending.error_message) == ("", "")
    assert (ending.provider, ending.resolved_model, ending.endpoint_id) == ("xai", "grok-4", 3)
    assert ending.first_token_at_ms == AT + 30


@pytest.mark.parametrize("reason", FAILURES)
def test_the_ending_of_a_run_that_others_end_says_why(reason: Any) -> None:
    transcript = folded(events.ToolCallStarted("c", "t", {}))
    ending = compose_ending(transcript, FAILURES[reason], fence=4, after=1)
    failure = FAILURES[reason]
    problem = events.Problem(failure.code, "The run ended before the tool answered.")
    assert [event.fact for event in ending.batch.events] == [
        events.ToolCallCompleted("c", "t", False, 0, error=problem),
        failure,
    ]
    assert (ending.error_code, ending.error_message) == (failure.code, failure.message)
    assert (ending.finish_reason, ending.usage) == ("", events.Usage())
    assert ending.status == ("cancelled" if reason == "cancelled" else "failed")
    assert [m.content for m in ending.messages] == ["t failed: The run ended before the tool answered."]
    assert isinstance(ending.messages[0], StoredMessage)
