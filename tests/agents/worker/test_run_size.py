"""A runaway model, plugin or runner ends its own run and nothing else (promises P1, P3, P9)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from agents.runners.base import RunFailure
from agents.worker.size_limits import RunSize
from conversations import events
from conversations.models import Message
from tests.support.client import Client, ScriptedModel, reply
from tests.support.fakes.fake_model import FakeModel, text

PIECE = "0123456789abcdef" * 64  # 1 KiB


def test_an_answer_past_its_limit_ends_the_run_and_keeps_what_was_said(
    client: Client,
    provider: FakeModel,
    scripted: Callable[..., ScriptedModel],
    settings: Any,
) -> None:
    settings.RUN_ANSWER_KB = 32
    provider.script(text(*[PIECE] * 200), name="runaway")
    started = client.start("go on", model=scripted("script:runaway").name, enable_exercise_search=False)
    assert client.wait_for(started["run_id"], "failed")["error"]["code"] == "answer_too_large"
    answer = Message.objects.get(run_id=started["run_id"], role="assistant").content
    assert answer == PIECE * 32
    frames = client.watch(started["run_id"])
    assert (reply(frames), frames[-1].data["code"]) == (answer, "answer_too_large")


def test_the_next_run_of_the_conversation_goes_on(
    client: Client, provider: FakeModel, scripted: Callable[..., ScriptedModel], settings: Any
) -> None:
    settings.RUN_ANSWER_KB = 32
    provider.script(text(*[PIECE] * 200), text("short"), name="once")
    model = scripted("script:once").name
    first = client.start("go on", model=model, enable_exercise_search=False)
    client.wait_for(first["run_id"], "failed")
    second = client.start(
        "again", model=model, enable_exercise_search=False, conversation_id=first["conversation_id"]
    )
    client.wait_for(second["run_id"], "completed")


def test_everything_in_the_log_counts_and_so_does_each_event(settings: Any) -> None:
    settings.RUN_LOG_KB = 64
    size = RunSize()
    for _ in range(1000):
        size.add(events.ReasoningDelta("r", "x"), state=None)
    with pytest.raises(RunFailure, match="its log passed 64 KiB"):
        size.add(events.ReasoningDelta("r", "x" * 600), state=None)


def test_a_state_that_grows_past_its_limit_ends_the_run(settings: Any) -> None:
    settings.STATE_LIMIT_KB = 1
    size, half = RunSize(), "x" * 600
    size.add(events.StateUpdated("thread", "", {"a": half}), state=None)
    size.add(events.StateUpdated("thread", "/a", half), state={"a": half})  # in the place of the other
    with pytest.raises(RunFailure) as failure:
        size.add(events.StateUpdated("thread", "/b", half), state={"a": half})
    assert failure.value.code == "state_too_large"
