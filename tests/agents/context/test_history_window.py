"""How much of a thread its model reads, on the real stack: by its context size, and as a summary."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.context import thread_history as context_room
from agents.context.thread_history import read_history
from agents.host_protocol import results
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import ContextPolicy
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from config.database import run_sync
from conversations.identifiers import uuid7
from conversations.models import Run, Thread
from prompts import app_settings
from prompts.endpoints import routing
from prompts.models import AppSetting, ModelMapping
from tests.support.client import Client, ScriptedModel
from tests.support.conversation import NOON, Conversation
from tests.support.fakes.fake_model import FakeModel, status, text
from tests.support.host.hosted_runs import bound
from tests.support.host.stage import manifest

LONG = "练胸的动作 " * 60


@pytest.fixture
def summaries() -> Iterator[None]:
    app_settings.change("history_summary", True, by=None)
    app_settings.clear_cache()
    yield
    AppSetting.objects.filter(pk="history_summary").delete()
    app_settings.clear_cache()


@pytest.fixture
def turn(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> Callable[..., Any]:
    """Say something in a thread to a model that reads so much; the bodies it was sent."""

    def say(thread: str | None, *answers: Any, words: str = "next", size: int = 2_000) -> Any:
        name = uuid4().hex
        provider.script(*answers, name=name)
        model = scripted(f"script:{name}").name
        key = model.removeprefix("global:")
        ModelMapping.objects.filter(key=key).update(context_tokens=size)
        routing.clear_cache()
        run = client.start(words, model, enable_exercise_search=False, conversation_id=thread)
        assert client.watch(run["run_id"])[-1].event == "completed"
        asked = [request.body for request in provider.requests_for(f"script:{name}")]
        return run["conversation_id"], [body["messages"] for body in asked]

    return say


def contents(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages if message["role"] != "system"]


def test_the_newest_that_fit_are_told_and_the_system_message_always_is(turn: Callable[..., Any]) -> None:
    thread, _ = turn(None, text("Answer 0."), words=f"0 {LONG}")
    for number in range(1, 5):
        _, (told,) = turn(thread, text(f"Answer {number}."), words=f"{number} {LONG}")
    assert told[0]["role"] == "system"
    first_words = [words.split()[0] for words in contents(told)]
    order = ["0", "Answer", "1", "Answer", "2", "Answer", "3", "Answer", "4"]
    assert first_words == order[-len(first_words) :]
    assert 2 <= len(first_words) < 9
    _, (told,) = turn(thread, text("All."), size=100_000)
    assert contents(told)[0].startswith("0 ")


def test_a_question_larger_than_the_context_is_still_asked(turn: Callable[..., Any]) -> None:
    _, (told,) = turn(None, text("Hm."), words=LONG * 5, size=1_000)
    assert contents(told) == [LONG * 5]


@pytest.mark.usefixtures("summaries")
def test_what_is_cut_is_summarised_once_and_the_summary_is_told_again(turn: Callable[..., Any]) -> None:
    thread, _ = turn(None, text("Answer 0."), words=f"0 {LONG}")
    asked: list[Any] = []
    number = 0
    while len(asked) < 2:
        number += 1
        assert number < 15
        said = (text("They squat."), text("Answer."))
        _, asked = turn(thread, *said, words=f"{number} {LONG}", size=4_000)
        # a turn that needs no summary uses the first answer as its own
    summarised, told = asked
    assert "Summarise" in summarised[0]["content"]
    assert f"user: 0 {LONG}" in summarised[1]["content"]
    words = contents(told)
    assert words[0] == "<conversation_summary>\nThey squat.\n</conversation_summary>"
    assert words[-1] == f"{number} {LONG}"
    assert (Thread.objects.get(pk=thread).summary or {})["text"] == "They squat."
    _, asked = turn(thread, text("Short."), words="And now?", size=4_000)
    (told,) = asked  # no second summary
    assert contents(told)[0] == words[0]
    assert f"user: 0 {LONG}" not in str(told)


@pytest.mark.usefixtures("summaries")
def test_a_hosted_runner_is_told_the_summary_apart(turn: Callable[..., Any], client: Client) -> None:
    thread: str | None = None
    asked: list[Any] = []
    number = 0
    while len(asked) < 2:
        said = (text("They squat."), text("Answer."))
        thread, asked = turn(thread, *said, words=f"{number} {LONG}", size=4_000)
        number += 1
        assert number < 15
    contexts: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        contexts.append(context)
        yield results.message(context.run_id, "ok")

    policy = ContextPolicy(bootstrap="summary_tail")
    with bound(client.user, says, manifest(f"python:s{uuid4().hex[:8]}", context=policy)):
        turn(thread, text("unasked"), words="And now?", size=4_000)
    (context,) = contexts
    assert context.bootstrap is not None
    assert context.bootstrap.summary == "They squat."
    assert "conversation_summary" not in str(context.bootstrap.messages)
    told = context.context.inline_policy
    assert (told.mode, told.delivered_count) == ("summary_tail", len(context.bootstrap.messages))
    assert (told.messages_complete, context.context.has_history_before) == (False, True)


@pytest.mark.usefixtures("summaries")
def test_a_summary_that_cannot_be_made_is_done_without(turn: Callable[..., Any]) -> None:
    thread, _ = turn(None, text("Answer 0."), words=f"0 {LONG}")
    for number in range(1, 4):
        _, asked = turn(thread, text("A."), words=f"{number} {LONG}", size=100_000)
    _, asked = turn(thread, status(400), status(400), text("Answer."), words=f"5 {LONG}")
    assert contents(asked[-1])[-1] == f"5 {LONG}"
    assert "conversation_summary" not in str(asked[-1])
    assert Thread.objects.get(pk=thread).summary is None


# --- reading backwards ---------------------------------------------------------------------------


@pytest.fixture
def long_thread(client: Client) -> tuple[UUID, UUID]:
    """A thread of 300 runs of two messages each."""
    conversation = Conversation(client.user)
    about = {"owner_id": client.user.pk, "thread": conversation.thread, "request": {}, "deadline_s": 9}
    ended = {"status": "completed", "finished_at": NOON, "deadline_at": NOON}
    runs = [Run(thread_seq=2 * place + 1, **about, **ended) for place in range(300)]
    Run.objects.bulk_create(runs)
    for run in runs:
        conversation.say(f"question {run.thread_seq}", run=run)
        conversation.say("answer", role="assistant", run=run)
    return conversation.thread.pk, runs[-1].pk


def read(thread: UUID, budget: int) -> list[str]:
    found = run_sync(read_history(thread, before=9_999, run_id=uuid7(), budget=budget))
    return [message.content for message in found.messages]


def test_a_thread_is_read_backwards_no_further_than_it_is_needed(
    long_thread: tuple[UUID, UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    thread, _ = long_thread
    whole = [words for place in range(300) for words in (f"question {2 * place + 1}", "answer")]
    assert read(thread, 1_000_000) == whole
    some = read(thread, 200)
    assert some == whole[-40:]
    assert read(thread, 500) == whole[-200:]
    monkeypatch.setattr(context_room, "MOST_MESSAGES", 100)
    assert read(thread, 1_000_000) == whole[-100:]
