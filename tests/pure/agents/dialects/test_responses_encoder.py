"""OpenAI's Responses stream: events of the SDK's own types, which its accumulator takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai import omit
from openai._models import construct_type
from openai.lib.streaming.responses._responses import ResponseStreamState
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from agents.dialects.openai_responses import dialect as responses
from conversations import events
from conversations.events import MessageBody, RunEvent
from conversations.log.transcript import fold
from tests.agents.dialects.agent_api.runs import HEAD, RUN, RUNS, frames, resumed, told
from tests.support.properties import strategies
from tests.support.properties.effort import examples

EVENTS: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
LAST = {"response.completed", "response.incomplete", "response.failed"}


def lines(run: Sequence[RunEvent]) -> list[Any]:
    return [json.loads(frame.data) for frame in frames(responses, run)]


@settings(max_examples=examples(60), deadline=None)
@given(RUNS)
def test_every_event_is_of_the_sdks_types(run: list[RunEvent]) -> None:
    sent = frames(responses, run)
    assert [frame.id for frame in sent] == [*range(len(sent))]
    for frame in sent:
        event = EVENTS.validate_json(frame.data)
        assert (event.type, event.sequence_number) == (frame.event, frame.id)
        assert not event.model_extra


@settings(max_examples=examples(60), deadline=None)
@given(RUNS)
def test_the_sdks_own_accumulator_takes_whatever_a_runner_does(run: list[RunEvent]) -> None:
    state: Any = ResponseStreamState(text_format=omit, input_tools=omit)
    said = lines(run)
    for line in said:
        state.handle_event(construct_type(type_=ResponseStreamEvent, value=line))
    kinds = [line["type"] for line in said]
    assert kinds[0] == "response.created"
    assert [kind in LAST for kind in kinds] == [False] * (len(kinds) - 1) + [True]
    assert done(said) == said[-1]["response"]["output"]


def done(said: list[Any]) -> list[Any]:
    """The items as their last events say, each begun and done once."""
    begun: list[int] = []
    items: dict[int, Any] = {}
    for line in said:
        if line["type"] == "response.output_item.added":
            begun.append(line["output_index"])
        elif line["type"] == "response.output_item.done":
            assert line["output_index"] in begun
            assert line["output_index"] not in items
            items[line["output_index"]] = line["item"]
        elif "output_index" in line:
            assert line["output_index"] in set(begun) - items.keys()
    assert begun == sorted(items) == [*range(len(items))]
    return [items[place] for place in begun]


@settings(max_examples=examples(40), deadline=None)
@given(RUNS, st.data())
def test_a_reader_cut_off_anywhere_gets_the_rest(run: list[RunEvent], data: st.DataObject) -> None:
    whole = frames(responses, run)
    cut = data.draw(st.integers(-1, len(whole) - 1))
    assert resumed(responses, run, cut) == whole[cut + 1 :]


@settings(max_examples=examples(60), deadline=None)
@given(strategies.LOGGED_RUNS)
def test_what_is_streamed_is_what_is_stored(run: list[RunEvent]) -> None:
    kept = [message.content for message in fold(RUN, run).messages() if message.role == "assistant"]
    output = lines(run)[-1]["response"]["output"]
    said = [item["content"][0]["text"] for item in output if item["type"] == "message"]
    heard = [text.replace("\0", "") for text in said]
    assert sorted(filter(None, heard)) == sorted(filter(None, kept))


SAID = f"execution-{RUN.hex}"


def test_the_bytes_of_a_delta() -> None:
    run = told(
        [events.MessageDelta(SAID, "你"), events.MessageDelta(SAID, "好"), events.RunCompleted("stop")]
    )
    assert frames(responses, run)[5].data.decode() == (
        '{"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_execution-'
        '0192f0c18a3b7c449d551a2b3c4d5e6f","output_index":0,"content_index":0,"delta":"好","logprobs":[]}'
    )


@pytest.mark.parametrize(
    ("end", "kind", "status", "item"),
    [
        (events.RunCompleted("stop"), "response.completed", "completed", "completed"),
        (events.RunCompleted("length"), "response.incomplete", "incomplete", "incomplete"),
        (events.RunFailed("cancelled", "Stop."), "response.incomplete", "cancelled", "incomplete"),
        (events.RunFailed("worker_lost", "Gone."), "response.failed", "failed", "incomplete"),
    ],
)
def test_how_runs_end(end: Any, kind: str, status: str, item: str) -> None:
    half = events.MessageCompleted(MessageBody(SAID, "assistant", "half"))
    last = lines(told([events.MessageDelta(SAID, "half"), half, end]))[-1]
    assert (last["type"], last["response"]["status"]) == (kind, status)
    assert [found["status"] for found in last["response"]["output"]] == [item]
    if status == "failed":
        error = {"code": "server_error", "message": "Gone.", "type": "worker_lost"}
        assert last["response"]["error"] == error


def test_a_tool_of_ours_is_shown_with_its_answer() -> None:
    problem = events.Problem("tool_timeout", "The tool took too long.")
    run = told(
        [
            events.ToolCallStarted("t1", "search", {"q": "x"}),
            events.ToolCallCompleted("t1", "search", True, 3, {"total": 2}),
            events.ToolCallStarted("t2", "search", {"q": "y"}),
            events.ToolCallCompleted("t2", "search", False, 3, None, problem),
            events.ToolCallStarted("t3", "get_weather", {"city": "Ulm"}, "frontend"),
            events.RunCompleted("tool_calls"),
        ]
    )
    one, two, three = Response.model_validate(lines(run)[-1]["response"]).output
    assert (one.type, one.output, one.error) == ("mcp_call", '{"total":2}', None)  # type: ignore[union-attr]
    assert (two.type, two.status, two.output) == ("mcp_call", "failed", None)  # type: ignore[union-attr]
    assert (three.type, three.call_id, three.arguments) == ("function_call", "t3", '{"city":"Ulm"}')  # type: ignore[union-attr]


def test_the_response_can_be_asked_for_at_any_time() -> None:
    encoder = responses.encoder(HEAD)
    assert Response.model_validate_json(encoder.answer()).status == "queued"
    for event in told([events.MessageDelta(SAID, "a"), events.RunCompleted("stop", events.Usage(3, 4))]):
        encoder.feed(event)
        Response.model_validate_json(encoder.answer())
    last = Response.model_validate_json(encoder.answer())
    assert (last.status, last.output_text, last.usage.total_tokens) == ("completed", "a", 7)  # type: ignore[union-attr]
