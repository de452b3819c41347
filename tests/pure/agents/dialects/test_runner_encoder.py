"""Whatever a run's log holds, a client of the runner dialect reads results as seed 003 has them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from hypothesis import given, settings
from langbot_plugin.api.entities.builtin.runner.result import RunnerResult, StateUpdatedPayload

from agents.dialects import runner
from agents.dialects.base import RunHead
from conversations import events
from conversations.events import RunEvent
from tests.support.properties.effort import examples
from tests.support.properties.strategies import RUNS, numbered

HEAD = RunHead(UUID(int=1), UUID(int=2), "r")


def results(run: list[RunEvent]) -> list[dict[str, Any]]:
    """What a client that reads the whole run is sent."""
    encoder = runner.encoder(HEAD)
    return [msgspec.json.decode(frame.data) for event in run for frame in encoder.feed(event)]


@settings(max_examples=examples(60), deadline=None)
@given(RUNS)
def test_every_result_is_one_of_the_released_sdk(run: list[RunEvent]) -> None:
    sent = results(run)
    for said in sent:
        RunnerResult.model_validate(said)
        if said["type"] == "state.updated":
            StateUpdatedPayload.model_validate(said["data"])
    assert [said["sequence"] for said in sent] == list(range(1, len(sent) + 1))


def test_the_threads_state_is_the_conversations_and_a_servers_tools_are_no_state() -> None:
    listed = events.StateUpdated("mcp", "files", [{"name": "read"}])
    shared = events.StateUpdated("thread", "step", 2)
    (said,) = results(numbered([listed, shared]))
    assert said["type"] == "state.updated"
    assert said["data"] == {"scope": "conversation", "key": "step", "value": 2}
