"""The encoder alone: whatever a runner says, both real clients take it, whole or in two parts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import pytest
from ag_ui.core.events import Event
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agents.dialects.ag_ui.encoder import AgUiEncoder
from agents.dialects.ag_ui.message_types import AgUiUserMessage
from agents.dialects.base import Frame, RunHead
from conversations import events
from conversations.events import RunEvent
from tests.agents.dialects.ag_ui.conftest import clients as clients
from tests.agents.dialects.ag_ui.node import GENERATIONS, Clients
from tests.support.properties import strategies
from tests.support.properties.effort import examples

THREAD = "7c9e6679-7425-40de-944b-e07fc1f90ae7"
USER: Final[Any] = {"id": "u1", "role": "user", "content": "hello"}
MODELS: TypeAdapter[Any] = TypeAdapter(Event)


def head(generation: str = "1.0.0") -> RunHead:
    return RunHead(
        run_id=UUID("0192f0c1-8a3b-7c44-9d55-1a2b3c4d5e6f"),
        thread_id=UUID(THREAD),
        request_id="request-1",
        client_run_id="run-1",
        wire={"protocolVersion": "1.0"} if generation == "1.0.0" else {},
    )


def frames(run: Sequence[RunEvent], generation: str = "1.0.0") -> list[Frame]:
    encoder = AgUiEncoder(head(generation))
    return [frame for event in run for frame in encoder.feed(event)]


def again(run: Sequence[RunEvent], cut: int, known: list[str], generation: str) -> list[Frame]:
    """What a client that comes back after `cut` events gets."""
    encoder = AgUiEncoder(head(generation), silent=True)
    assert [frame for event in run[:cut] for frame in encoder.feed(event)] == []
    prelude = encoder.prelude([AgUiUserMessage(**USER)], known=known)
    return [*prelude, *(frame for event in run[cut:] for frame in encoder.feed(event))]


def body(some: Sequence[Frame]) -> str:
    return "".join(
        f": keep-alive\n\nid: {frame.id or ''}\ndata: {frame.data.decode()}\n\n" for frame in some
    )


def told(some: Sequence[Frame]) -> list[Any]:
    return [json.loads(frame.data) for frame in some]


def new(clients: Clients, generation: str) -> Any:
    return clients.new(generation, threadId=THREAD, messages=[USER], state={})


slow = settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])


@slow
@given(run=strategies.RUNS)
def test_every_event_is_one_of_the_published_models(run: list[RunEvent]) -> None:
    for event in told(frames(run)):
        assert json.loads(MODELS.dump_json(MODELS.validate_python(event), by_alias=True)) == event


KINDS = {
    "RUN_STARTED",
    "RUN_FINISHED",
    "RUN_ERROR",
    "STEP_STARTED",
    "STEP_FINISHED",
    "TEXT_MESSAGE_START",
    "TEXT_MESSAGE_CONTENT",
    "TEXT_MESSAGE_END",
    "REASONING_START",
    "REASONING_MESSAGE_START",
    "REASONING_MESSAGE_CONTENT",
    "REASONING_MESSAGE_END",
    "REASONING_END",
    "TOOL_CALL_START",
    "TOOL_CALL_ARGS",
    "TOOL_CALL_END",
    "TOOL_CALL_RESULT",
    "STATE_SNAPSHOT",
    "STATE_DELTA",
    "MESSAGES_SNAPSHOT",
    "ACTIVITY_SNAPSHOT",
    "CUSTOM",
}


@slow
@given(run=strategies.RUNS, cut=st.integers(0, 30))
def test_only_these_events_are_sent_and_each_place_of_the_log_once(
    run: list[RunEvent], cut: int
) -> None:
    assert {event["type"] for event in told(again(run, cut, ["u1"], "1.0.0"))} <= KINDS
    some = frames(run)
    assert {event["type"] for event in told(some)} <= KINDS - {"MESSAGES_SNAPSHOT"}
    places = [frame.id for frame in some if frame.id is not None]
    assert places == sorted(set(places))
    assert (places[0], places[-1]) == (1, run[-1].seq)


def test_a_cancelled_run_ends_as_each_generation_understands_it() -> None:
    run = strategies.numbered([events.RunQueued(0), events.RunFailed("cancelled", "Stopped.")])
    assert told(frames(run))[-1]["outcome"] == {"type": "cancelled"}
    last = told(frames(run, "0.0.59"))[-1]
    assert (last["type"], last["code"], last["message"]) == ("RUN_ERROR", "cancelled", "Stopped.")


def test_calls_of_the_client_are_pending_and_never_answered_by_us() -> None:
    run = strategies.numbered(
        [
            events.ToolCallStarted("c1", "theirs", {"a": 1}, "frontend"),
            events.ToolCallStarted("c2", "ours"),
            events.ToolCallCompleted("c1", "theirs", True, 1, {"x": 1}),
            events.RunCompleted("tool_calls"),
        ]
    )
    some = told(frames(run))
    answered = [event["toolCallId"] for event in some if event["type"] == "TOOL_CALL_RESULT"]
    assert answered == [f"c2-{head().run_id.hex}"], "what nobody answered has failed"
    assert some[-1]["outcome"] == {"type": "success", "pendingToolCallIds": ["c1"]}
    assert told(frames(run, "0.0.59"))[-1]["outcome"] == {"type": "success"}


def test_a_delta_is_what_it_looks_like() -> None:
    run = strategies.numbered(
        [
            events.StageStarted("execution"),
            events.MessageDelta("m", "a"),
            events.MessageDelta("m", '"\u2028\n你'),
        ]
    )
    assert frames(run)[-1].data.decode() == (
        '{"type":"TEXT_MESSAGE_CONTENT","messageId":"m-0192f0c18a3b7c449d551a2b3c4d5e6f",'
        '"delta":"\\"\u2028\\n你","timestamp":1760000000030,'
        '"metadata":{"parley":{"stage":"execution","seq":3}}}'
    )


@pytest.mark.parametrize("generation", GENERATIONS)
@slow
@given(run=strategies.RUNS, piece=st.integers(1, 900))
def test_no_run_gives_a_stream_that_a_client_rejects(
    clients: Clients, generation: str, run: list[RunEvent], piece: int
) -> None:
    seen = new(clients, generation).run(sse=body(frames(run, generation)), piece=piece)
    assert seen["failure"] is None, seen["failure"]
    assert seen["warnings"] == []
    kinds = [event["type"] for event in seen["events"]]
    assert kinds[0] == "RUN_STARTED"
    assert kinds[-1] in {"RUN_FINISHED", "RUN_ERROR"}
    assert len(kinds) == len(frames(run, generation))


@pytest.mark.parametrize("generation", GENERATIONS)
@settings(slow, max_examples=examples(12))
@given(run=strategies.RUNS, late=st.integers(0, 5))
def test_a_client_cut_off_at_every_event_gets_the_same_messages(
    clients: Clients, generation: str, run: list[RunEvent], late: int
) -> None:
    """`late` more events are in the log when it comes back."""
    whole = new(clients, generation).run(sse=body(frames(run, generation)))
    made = [clients.made(generation, threadId=THREAD, messages=[USER], state={}) for _ in run]
    broken = [[client, ran(client, frames(run[:got], generation))] for got, client in enumerate(made, 1)]
    mended = []
    for got, (client, (_, first)) in enumerate(zip(made, clients.chains(broken), strict=True), 1):
        known = [message["id"] for message in first["messages"]]
        cut = min(got + late, len(run))
        fresh = clients.made(generation, threadId=THREAD, messages=[USER], state={})
        mended.append(
            [
                ran(client, again(run, cut, known, generation)),
                fresh,
                ran(fresh, again(run, cut, ["u1"], generation)),
            ]
        )
    for back, _, anew in clients.chains(mended):
        assert back["failure"] is None
        assert parted(back) == parted(whole)
        assert back["state"] == whole["state"]
        assert anew["messages"] == whole["messages"], "in the same order, activities too"


def ran(client: dict[str, Any], some: Sequence[Frame]) -> dict[str, Any]:
    return {"op": "run", "agent": client["agent"], "sse": body(some)}


@pytest.mark.parametrize("generation", GENERATIONS)
@slow
@given(run=strategies.RUNS, data=st.data())
def test_a_client_cut_off_anywhere_gets_the_same_messages(
    clients: Clients, generation: str, run: list[RunEvent], data: st.DataObject
) -> None:
    whole = new(clients, generation).run(sse=body(frames(run, generation)))
    got = data.draw(st.integers(1, len(run)), label="events that reached the client")
    cut = data.draw(st.integers(got, len(run)), label="events in the log when it came back")
    client = new(clients, generation)
    first = client.run(sse=body(frames(run[:got], generation)))
    known = [message["id"] for message in first["messages"]]
    back = client.run(sse=body(again(run, cut, known, generation)))
    assert (back["failure"], back["warnings"]) == (None, [])
    assert parted(back) == parted(whole)
    assert back["state"] == whole["state"]
    fresh = new(clients, generation).run(sse=body(again(run, cut, ["u1"], generation)))
    assert parted(fresh) == parted(whole)


def parted(seen: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """What was said, in order, and the activities, whose place among it may be another."""
    messages = seen["messages"]
    spoken = [message for message in messages if message["role"] != "activity"]
    return spoken, [message for message in messages if message["role"] == "activity"]
