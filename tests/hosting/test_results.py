"""What becomes of results (specs/runner-host.md H17, H20): delivery, repetition, appended ones."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

import pytest
from structlog.testing import capture_logs

from agents.hosting import asks, results
from agents.hosting.api import HostApi
from agents.hosting.errors import HostRefusal
from agents.hosting.results import RunResult
from agents.hosting.run_context import AgentRunContext
from agents.plugins.runner import _result
from conversations.models import Message
from tests.client import Client
from tests.hosting.test_hosted_runs import bound, events_of, finished, reply


def stored(run_id: str) -> list[str]:
    """The run's messages as they stand in the conversation."""
    rows = Message.objects.filter(run_id=UUID(run_id), role="assistant").order_by("seq")
    return [row.content for row in rows]


def message_ids(run_id: str) -> list[str]:
    """Of all that was said, in order, each once: a log is folded before long."""
    said = (one for one in events_of(run_id) if one["type"] in ("message.delta", "message.completed"))
    return list(dict.fromkeys(one.get("message_id") or one["message"]["message_id"] for one in said))


def test_streaming_replaces_the_chunk_before_and_keeps_one_message_id(client: Client) -> None:
    """H17: each snapshot stands for all before it; what follows the whole message is another one."""

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for text in ("a", "ab", "ab", "abc"):
            yield results.delta(context.run_id, text, message_id="theirs")
        yield results.message(context.run_id, "abc", message_id="theirs")
        yield results.delta(context.run_id, "more")

    with bound(client.user, says):
        run, frames = finished(client)
    assert reply(frames) == "abcmore"
    assert stored(run["run_id"]) == ["abc", "more"]
    first, second = f"execution-{run['run_id']}", f"execution-{run['run_id']}-2"
    assert message_ids(run["run_id"]) == [first, second]


def test_pieces_are_never_taken_for_snapshots(client: Client) -> None:
    """Seed §6.3: a delta is a piece; one that says all_content has all of the text so far there."""

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for content in ("ha", "ha", "ha", " very", " funny"):
            chunk: dict[str, Any] = {"role": "assistant", "content": content, "all_content": None}
            yield RunResult(run_id=context.run_id, type="message.delta", data={"chunk": chunk})
        chunk = {"role": "assistant", "content": "!", "all_content": "hahaha very funny!"}
        yield RunResult(run_id=context.run_id, type="message.delta", data={"chunk": chunk})

    with bound(client.user, says):
        run, frames = finished(client)
    deltas = [frame.data["delta"] for frame in frames if frame.event == "content_delta"]
    assert deltas == ["ha", "ha", "ha", " very", " funny", "!"]
    assert stored(run["run_id"]) == ["hahaha very funny!"]


WHOLE = "FINAL ANSWER with citations"


@pytest.mark.parametrize(
    ("dialect", "told"),
    [
        ("text", ["draft", " answer", f"\n\n{WHOLE}"]),
        ("ag-ui", ["draft", " answer", f"\n\n{WHOLE}"]),
        ("runner", ["draft", "draft answer", WHOLE]),
        ("responses", ["draft", " answer", WHOLE]),
        ("agent-api", ["draft", " answer", WHOLE]),
        ("chat-completions", ["draft", " answer", f"\n\n{WHOLE}"]),
    ],
)
def test_a_whole_message_replaces_what_its_deltas_said(
    client: Client, dialect: str, told: list[str]
) -> None:
    """Seed §6.4: as each wire allows; one that can only add says the whole as a paragraph of its own."""

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.piece(context.run_id, "draft")
        yield results.piece(context.run_id, " answer")
        yield results.message(context.run_id, WHOLE)

    with bound(client.user, says):
        run, _ = finished(client)
    path = f"/api/v1/agent/runs/{run['run_id']}/events"
    stream = client.http.get(
        path, params={"dialect": dialect}, headers={"Accept": "text/event-stream"}
    ).text
    spoken = [text for line in stream.splitlines() if (text := _words(dialect, line))]
    assert spoken == told
    assert stored(run["run_id"]) == [WHOLE]


def test_a_whole_message_that_replaces_counts_to_the_size_of_the_answer(
    client: Client, settings: Any
) -> None:
    settings.RUN_ANSWER_KB = 8

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.piece(context.run_id, "draft")
        yield results.message(context.run_id, "x" * 9_000)

    with bound(client.user, says):
        run, _ = finished(client)
    assert (run["status"], run["error"]["code"]) == ("failed", "answer_too_large")
    assert stored(run["run_id"]) == ["draft"]


def _words(dialect: str, line: str) -> str:
    """The words of a frame's line, where it has some."""
    if not line.startswith(("data: {", "{")):
        return ""
    frame = json.loads(line.removeprefix("data: "))
    match dialect, frame:
        case "text", {"delta": text}:
            return str(text)
        case "ag-ui", {"type": "TEXT_MESSAGE_CONTENT", "delta": text}:
            return str(text)
        case "runner", {"data": {"chunk": {"content": text}} | {"message": {"content": text}}}:
            return str(text)
        case "responses", {"type": "response.output_text.delta", "delta": text}:
            return str(text)
        case "responses", {"type": "response.output_text.done", "text": text}:
            return str(text)
        case "agent-api", {"object": "content", "text": text}:
            return str(text)
        case "chat-completions", {"choices": [{"delta": {"content": text}}]}:
            return str(text)
    return ""


def test_what_is_not_streamed_is_all_kept(client: Client) -> None:
    """H17: whole messages, one after the other, none in the place of another."""

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.delta(context.run_id, "draft")
        for text in ("one", "two", "three"):
            yield results.message(context.run_id, text)
        yield results.delta(context.run_id, "four")

    with bound(client.user, says, delivery="whole"):
        run, frames = finished(client)
    deltas = [frame.data["delta"] for frame in frames if frame.event == "content_delta"]
    assert deltas == stored(run["run_id"]) == ["one", "two", "three", "four"]
    assert len(message_ids(run["run_id"])) == 4


def test_the_message_of_the_end_is_written_once(client: Client) -> None:
    """H20: whether or not it was said before."""

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        if context.input.text == "twice":
            yield results.message(context.run_id, "abc")
        end = {"message": {"role": "assistant", "content": "abc"}}
        yield RunResult(run_id=context.run_id, type="run.completed", data=end)

    with bound(client.user, says):
        twice, once = finished(client, "twice")[0], finished(client, "once")[0]
    assert stored(twice["run_id"]) == stored(once["run_id"]) == ["abc"]


def test_results_can_be_appended_and_stand_where_they_were(client: Client) -> None:
    """H20: the released runtimes' `run_append_result`."""
    told: list[Any] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for text in ("Hel", "Hello"):
            said = asks.AppendResult(
                target_run_id=context.run_id, result=results.delta(context.run_id, text)
            )
            told.append(await host.calls.call("run_append_result", said))
        yield results.delta(context.run_id, "Hello, you")

    with bound(client.user, says):
        _, frames = finished(client)
    deltas = [frame.data["delta"] for frame in frames if frame.event == "content_delta"]
    assert deltas == ["Hel", "lo", ", you"]
    assert [(one.sequence, one.type) for one in told] == [(1, "message.delta"), (2, "message.delta")]


def test_what_is_appended_and_not_followed_is_bounded(client: Client) -> None:
    refused: list[str] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for count in range(1, 300):
            said = results.delta(context.run_id, "x" * count)
            ask = asks.AppendResult(target_run_id=context.run_id, result=said)
            try:
                await host.calls.call("run_append_result", ask)
            except HostRefusal as refusal:
                refused.append(refusal.code)
        yield results.completed(context.run_id)

    with bound(client.user, says):
        run, frames = finished(client)
    assert (refused, len(reply(frames))) == (["rate_limited"] * 43, 256)
    assert run["status"] == "completed"


@pytest.mark.parametrize(
    ("result", "target", "code"),
    [
        (results.state("", "actor", "k", 1), "", "invalid_argument"),
        (results.artifact("", b"x"), "", "invalid_argument"),
        (results.action("", "thread.rename", payload={"title": "x"}), "", "invalid_argument"),
        (results.completed(""), "", "invalid_argument"),
        (results.failed("", "c", "m"), "", "invalid_argument"),
        (RunResult(run_id="", type="future.thing"), "", "invalid_argument"),
        (RunResult(run_id="", type="message.delta", data={}), "", "invalid_argument"),
        (results.delta("f" * 32, "x"), "", "unauthorized"),
        (results.delta("", "x"), "e" * 32, "unauthorized"),
        (results.delta("", "x" * 2**20), "", "payload_too_large"),
    ],
)
def test_what_has_an_effect_or_is_unknown_or_anothers_is_not_appended(
    client: Client, result: RunResult, target: str, code: str
) -> None:
    refused: list[str] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        ask = asks.AppendResult(target_run_id=target or context.run_id, result=result)
        try:
            await host.calls.call("run_append_result", ask)
        except HostRefusal as refusal:
            refused.append(refusal.code)
        yield results.message(context.run_id, "ok")

    with bound(client.user, says, platform_actions=["thread.rename"]):
        run, frames = finished(client)
    assert (refused, run["status"], reply(frames)) == ([code], "completed", "ok")


@pytest.mark.parametrize(
    "said", [{}, {"scope": "actor"}, {"scope": 1, "key": "k"}, {"scope": "actor", "key": ""}]
)
def test_a_released_plugins_state_without_scope_or_key_is_dropped(said: dict[str, Any]) -> None:
    """H20; of the first generation it ends the run (`test_a_result_that_breaks_the_contract_…`)."""
    result = {"run_id": "r", "type": "state.updated", "data": said}
    with capture_logs() as logs:
        assert _result(result, "r", lenient=True) is None
    assert [line["event"] for line in logs] == ["state.updated dropped"]
    assert _result(result, "r", lenient=False) is not None
