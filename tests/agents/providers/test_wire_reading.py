"""What each provider wire says that the others do not: read without a network."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents.providers.base import (
    Finished,
    ModelEvent,
    ModelRequest,
    ProviderError,
    ReasoningBlock,
    ReasoningText,
    TextDelta,
    ToolCall,
)
from agents.providers.sse import EventSplitter
from agents.providers.tool_names import ToolNames
from conversations.events import Usage
from tests.support.fakes import fake_anthropic as anthropic
from tests.support.fakes import fake_gemini as gemini
from tests.support.fakes import fake_model as chat
from tests.support.fakes import fake_responses as responses
from tests.support.fakes.fake_model import Answer, Finish
from tests.support.fakes.wires import SEARCH, WIRES, on_the_wire

CHAT, RESPONSES = "openai.chat_completions", "openai.responses"
MESSAGES, GEMINI = "anthropic.messages", "gemini.generate_content"


def read(wire: str, *steps: Any) -> list[ModelEvent]:
    """The events of an answer of these steps. ProviderError as the reader raises it."""
    reader: Any = WIRES[wire].wire.reader(ToolNames.of(ModelRequest(messages=(), tools=(SEARCH,))))
    body = on_the_wire(Answer(tuple(steps)))
    said = [event for data in EventSplitter().feed(body) for event in reader.read(data)]
    return [*said, reader.end()]


def finished(wire: str, *steps: Any) -> Finished:
    found = read(wire, *steps)[-1]
    assert isinstance(found, Finished)
    return found


def error(wire: str, *steps: Any) -> str:
    with pytest.raises(ProviderError) as caught:
        read(wire, *steps)
    return caught.value.code


# --- openai.chat_completions ---------------------------------------------------------------------

CALL = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "now", "arguments": "{}"}}]}


def test_thoughts_beside_calls_are_kept_to_be_given_back() -> None:
    steps = ({"reasoning_content": "Let me "}, {"reasoning_content": "see."}, CALL)
    kept = finished(CHAT, *steps, Finish("tool_calls"))
    assert kept.reasoning == (ReasoningBlock(CHAT, {"reasoning_content": "Let me see."}),)
    assert kept.tool_calls == (ToolCall("c", "now", "{}"),)


def test_thoughts_under_their_other_name_are_thoughts_too() -> None:
    assert read(CHAT, {"reasoning": "Hm."}, Finish("stop"))[0] == ReasoningText("Hm.")


@pytest.mark.parametrize(
    ("details", "thought"),
    [
        ([{"type": "reasoning.text", "text": "Hm."}], "Hm."),
        ([{"type": "reasoning.summary", "summary": "Hm."}], "Hm."),
        ([{"type": "reasoning.encrypted", "data": "aGVpIQ=="}], ""),
        ("of another form", ""),
        (None, ""),
    ],
)
def test_thoughts_that_are_told_only_in_details_are_thoughts_too(details: Any, thought: str) -> None:
    found = read(CHAT, {"content": "Hi.", "reasoning_details": details}, Finish("stop"))
    assert found[:-1] == [*([ReasoningText(thought)] if thought else []), TextDelta("Hi.")]


def test_calls_that_end_with_stop_are_calls() -> None:
    done = finished(CHAT, CALL, Finish("stop"))
    assert (done.finish_reason, done.upstream_reason) == ("tool_calls", "stop")


def test_an_error_with_a_number_for_a_code_is_read_by_it() -> None:
    assert error(CHAT, b'data: {"error": {"code": 429, "message": "x"}}\n\n') == "provider_rate_limited"
    assert error(CHAT, b'data: {"error": {"code": 502}}\n\n') == "provider_unavailable"
    assert error(CHAT, b'data: {"error": "words"}\n\n') == "provider_error"


def test_more_calls_or_longer_ones_than_any_are_refused() -> None:
    many = [{"tool_calls": [{"index": n, "id": f"c{n}"}]} for n in range(257)]
    assert error(CHAT, *many, Finish("tool_calls")) == "provider_invalid_response"
    piece = {"tool_calls": [{"index": 0, "id": "c", "function": {"arguments": "x" * 1_000_000}}]}
    assert error(CHAT, *[piece] * 9, Finish("tool_calls")) == "provider_invalid_response"


# --- openai.responses ----------------------------------------------------------------------------


def test_parts_of_a_summary_are_parted_by_an_empty_line() -> None:
    said = read(RESPONSES, responses.thoughts(0, "One.", "Two."), responses.ended())
    assert "".join(e.text for e in said if isinstance(e, ReasoningText)) == "One.\n\nTwo."


def test_a_thought_remembers_the_call_that_came_of_it() -> None:
    first, second = responses.thoughts(0, secret="MQ=="), responses.thoughts(2, secret="Mg==")
    calls = [responses.tool_calls((f"c{n}", "now", "{}"), first=n) for n in (1, 3)]
    done = finished(RESPONSES, first, calls[0], second, calls[1], responses.ended())
    assert [(kept.block["item"]["id"], kept.block["before"]) for kept in done.reasoning] == [
        ("rs_0", "c1"),
        ("rs_2", "c3"),
    ]


def test_open_models_think_aloud() -> None:
    said = read(RESPONSES, responses.event("response.reasoning_text.delta", delta="Hm."), ENDED)
    assert said[0] == ReasoningText("Hm.")


ENDED = responses.ended(usage=responses.USAGE)


def test_a_call_that_comes_whole_is_a_call() -> None:
    item = {"type": "function_call", "call_id": "c", "name": "gymbro_exercise_search"}
    done = responses.event("response.output_item.done", output_index=0, item=item | {"arguments": "[]"})
    assert finished(RESPONSES, done, ENDED) == Finished(
        "tool_calls",
        Usage(11, 8),
        (ToolCall("c", "gymbro.exercise.search", "[]"),),
        upstream_reason="completed",
    )


def test_an_answer_that_was_filtered_says_so() -> None:
    cut = responses.ended("incomplete", incomplete_details={"reason": "content_filter"})
    assert finished(RESPONSES, responses.words(0, "Hel"), cut).finish_reason == "content_filter"
    unexplained = responses.ended("incomplete")
    assert finished(RESPONSES, unexplained).finish_reason == "incomplete"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"code": "rate_limit_exceeded", "message": "x", "param": None}, "provider_rate_limited"),
        ({"error": {"type": "server_error", "code": None}}, "provider_unavailable"),
        ({"error": {"code": "insufficient_quota"}}, "provider_quota_exceeded"),
        ({}, "provider_error"),
    ],
)
def test_an_error_event_has_either_shape(fields: dict[str, Any], code: str) -> None:
    assert error(RESPONSES, responses.opening(), responses.event("error", **fields)) == code


def test_a_response_that_failed_without_saying_why_has_failed() -> None:
    assert error(RESPONSES, responses.ended("failed")) == "provider_error"


# --- anthropic.messages --------------------------------------------------------------------------


def test_arguments_that_come_with_the_start_are_arguments() -> None:
    called = {"type": "tool_use", "id": "t", "name": "gymbro_exercise_search", "input": {"query": "卧"}}
    done = finished(MESSAGES, anthropic.block(0, called), anthropic.ending("tool_use"))
    assert done.tool_calls == (ToolCall("t", "gymbro.exercise.search", '{"query":"卧"}'),)


def test_a_call_without_arguments_has_an_empty_object() -> None:
    start, (empty,) = anthropic.tool(0, "t", "now", "")
    done = finished(MESSAGES, start, empty, anthropic.ending("tool_use"))
    assert done.tool_calls == (ToolCall("t", "now", "{}"),)


def test_a_thought_that_nobody_signed_is_shown_and_not_kept() -> None:
    thought = anthropic.block(0, {"type": "thinking"}, {"type": "thinking_delta", "thinking": "Hm."})
    said = read(MESSAGES, thought, anthropic.ending("end_turn"))
    assert said[0] == ReasoningText("Hm.")
    assert isinstance(said[-1], Finished)
    assert said[-1].reasoning == ()


def test_thoughts_that_are_not_shown_are_kept() -> None:
    deltas = ({"type": "thinking_delta", "thinking": ""}, {"type": "signature_delta", "signature": "s"})
    thought = anthropic.block(0, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)
    done = finished(MESSAGES, thought, anthropic.ending("end_turn"))
    assert [kept.block for kept in done.reasoning] == [
        {"type": "thinking", "thinking": "", "signature": "s"}
    ]


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("stop_sequence", "stop"),
        ("model_context_window_exceeded", "length"),
        ("pause_turn", "pause_turn"),
        ("refusal", "refusal"),
    ],
)
def test_anthropics_ends_have_these_names(given: str, reason: str) -> None:
    done = finished(MESSAGES, *anthropic.text("Hm.", finish=given).steps)
    assert (done.finish_reason, done.upstream_reason) == (reason, "" if given == reason else given)


# --- gemini.generate_content ---------------------------------------------------------------------


def test_a_prompt_that_is_blocked_is_an_answer_that_was_filtered() -> None:
    blocked = gemini.event(promptFeedback={"blockReason": "PROHIBITED_CONTENT"}, usageMetadata={})
    assert finished(GEMINI, blocked) == Finished(
        "content_filter", Usage(), upstream_reason="PROHIBITED_CONTENT"
    )


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ("SAFETY", "content_filter"),
        ("SPII", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "invalid_tool_call"),
        ("LANGUAGE", "LANGUAGE"),
    ],
)
def test_geminis_ends_have_these_names(given: str, reason: str) -> None:
    done = finished(GEMINI, gemini.chunk(finish=given))
    assert (done.finish_reason, done.upstream_reason) == (reason, "" if given == reason else given)


def test_calls_without_ids_are_given_different_ones() -> None:
    calls = gemini.chunk(gemini.call("now", None), gemini.call("now", {"in": "卧"}), finish="STOP")
    first, second = finished(GEMINI, calls).tool_calls
    assert (first.name, first.arguments, second.arguments) == ("now", "{}", '{"in": "卧"}')
    assert first.id != second.id
    assert first.id not in {call.id for call in finished(GEMINI, calls).tool_calls}


def test_a_signature_stays_with_its_call_though_that_has_no_id() -> None:
    steps = (
        gemini.chunk(gemini.call("now", {}, None, "c2ln"), gemini.call("now", {})),
        gemini.chunk({"text": "Done.", "thoughtSignature": "dGV4dA=="}, finish="STOP"),
    )
    done = finished(GEMINI, *steps)
    of_call = {"thoughtSignature": "c2ln", "call": done.tool_calls[0].id}
    assert [kept.block for kept in done.reasoning] == [of_call, {"thoughtSignature": "dGV4dA=="}]
    assert read(GEMINI, *steps)[0] == TextDelta("Done.")


def test_only_the_first_candidate_speaks() -> None:
    two = [{"content": {"parts": [{"text": said}]}, "finishReason": "STOP"} for said in "ab"]
    assert read(GEMINI, gemini.event(candidates=two))[:-1] == [TextDelta("a")]


def test_a_usage_with_everything_adds_up() -> None:
    counts = gemini.DETAILED_USAGE | {"toolUsePromptTokenCount": 5}
    done = finished(GEMINI, gemini.chunk(finish="STOP", usageMetadata=counts))
    assert done.usage == Usage(16, 8, 7, 5)


# --- what was used, as each says it ----------------------------------------------------------------

DEEPSEEK = chat.USAGE | {"prompt_cache_hit_tokens": 7, "prompt_cache_miss_tokens": 4}
XAI = {  # its reasoning is no part of the completion
    "prompt_tokens": 11,
    "completion_tokens": 8,
    "total_tokens": 24,
    "completion_tokens_details": {"reasoning_tokens": 5},
}
WRITTEN = {"cached_tokens": 3, "cache_write_tokens": 4}


@pytest.mark.parametrize(
    ("wire", "steps", "usage"),
    [
        (CHAT, (Finish("stop"), chat.Usage(DEEPSEEK)), Usage(11, 8, 7)),
        (CHAT, (Finish("stop"), chat.Usage(XAI)), Usage(11, 13, 0, 5)),
        (
            CHAT,
            (Finish("stop"), chat.Usage(chat.USAGE | {"prompt_tokens_details": WRITTEN})),
            Usage(11, 8, 3, 0, 4),
        ),
        (
            RESPONSES,
            (responses.ended(usage=responses.USAGE | {"input_tokens_details": WRITTEN}),),
            Usage(11, 8, 3, 0, 4),
        ),
        (
            MESSAGES,
            (
                anthropic.opening(),
                anthropic.event(
                    "message_delta",
                    delta={"stop_reason": "end_turn"},
                    usage={"output_tokens": 8, "output_tokens_details": {"thinking_tokens": 5}},
                ),
            ),
            Usage(11, 8, 0, 5),
        ),
    ],
    ids=["deepseek-cache", "xai-reasoning", "chat-written", "responses-written", "thinking"],
)
def test_usage_is_counted_as_the_provider_means_it(
    wire: str, steps: tuple[Any, ...], usage: Usage
) -> None:
    assert finished(wire, *steps).usage == usage


# --- all -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("data", [b"null", b"7", b"[]", b'"x"', b"{", b"\xff", b"[" * 100_000])
def test_what_is_no_event_is_unreadable(wire: str, data: bytes) -> None:
    assert error(wire, b"data: " + data + b"\n\n") == "provider_invalid_response"


HALF = {
    CHAT: b'{"choices":[{"delta":{"content":"a\\ud83c"},"finish_reason":"stop"}]}',
    RESPONSES: b'{"type":"response.output_text.delta","delta":"a\\ud83c"}',
    MESSAGES: b'{"type":"content_block_delta","delta":{"text":"a\\ud83c"}}',
    GEMINI: b'{"candidates":[{"content":{"parts":[{"text":"a\\ud83c"}]}}]}',
}


@pytest.mark.parametrize("wire", WIRES)
def test_half_a_surrogate_pair_becomes_a_replacement_character(wire: str) -> None:
    reader: Any = WIRES[wire].wire.reader(ToolNames([]))
    assert reader.read(HALF[wire]) == [TextDelta("a\ufffd")]


@pytest.mark.parametrize(
    ("told", "counted"),
    [
        ({"prompt_tokens": 12.0, "completion_tokens": "3"}, (12, 3)),
        ({"prompt_tokens": 12, "total_tokens": "many"}, (0, 0)),
        ("none", (0, 0)),
    ],
)
def test_odd_counts_of_a_server_that_speaks_openais_wire_cost_no_answer(
    told: Any, counted: tuple[int, int]
) -> None:
    reader: Any = WIRES[CHAT].wire.reader(ToolNames([]))
    reader.read(b'{"choices": [{"delta": {"content": "a"}, "finish_reason": "stop"}]}')
    reader.read(json.dumps({"choices": [], "usage": told}).encode())
    done = reader.end()
    assert (done.finish_reason, done.usage.input_tokens, done.usage.output_tokens) == ("stop", *counted)


@pytest.mark.parametrize("wire", WIRES)
def test_counts_beyond_what_a_row_can_hold_are_the_most_it_can(wire: str) -> None:
    huge: dict[str, Any] = dict.fromkeys(
        ["prompt_tokens", "input_tokens", "promptTokenCount", "cache_read_input_tokens"], 10**30
    )
    steps: dict[str, tuple[Any, ...]] = {
        CHAT: chat.text("a", usage=huge).steps,
        RESPONSES: responses.text("a", usage=huge).steps,
        MESSAGES: anthropic.text("a", usage=huge | {"output_tokens": -1}).steps,
        GEMINI: gemini.text("a", usage=huge).steps,
    }
    assert finished(wire, *steps[wire]).usage.input_tokens == 2**31 - 1
    assert finished(wire, *steps[wire]).usage.output_tokens == 0
