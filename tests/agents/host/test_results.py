"""What becomes of results (specs/runner-host.md H17, H20): delivery, repetition, appended ones."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from typing import Any
from uuid import UUID

import msgspec
import pytest

from agents.host_protocol import parameters, results
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from agents.runtimes.plugins.runner import _result
from conversations.models import Message
from tests.support.client import Client
from tests.support.host.hosted_runs import bound, events_of, finished, reply
from tests.support.log_lines import lines_about
from tests.support.pictures import picture

pytestmark = pytest.mark.once


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
        ("runner", ["draft", " answer", WHOLE]),
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
            said = parameters.AppendResult(
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
            ask = parameters.AppendResult(target_run_id=context.run_id, result=said)
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
        ask = parameters.AppendResult(target_run_id=target or context.run_id, result=result)
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
    with lines_about("state.updated") as logs:
        assert _result(result, "r", lenient=True) is None
    assert [line["event"] for line in logs] == ["state.updated dropped"]
    assert _result(result, "r", lenient=False) is not None


# --- what a message shows beside its text --------------------------------------------------------


SHOWN: list[dict[str, Any]] = [
    {"type": "text", "text": "see "},
    {"type": "image_base64", "image_base64": base64.b64encode(picture("PNG", (4, 4))).decode()},
    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    {"type": "file_base64", "file_base64": "data:text/csv;base64,YSxi", "file_name": "a\n.csv"},
    {"type": "file_url", "file_url": "https://example.com/b.csv", "file_name": "b.csv"},
    {"type": "text", "text": "this"},
]


def result(context: AgentRunContext, kind: str, **data: Any) -> RunResult:
    return RunResult(run_id=context.run_id, type=kind, data=data)


async def _whole(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
    message = {"role": "assistant", "content": SHOWN}
    yield result(context, "message.completed", message=message)
    yield result(context, "run.completed", finish_reason="stop", message=message)


async def _in_pieces(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
    for part in SHOWN:
        yield result(context, "message.delta", chunk={"role": "assistant", "content": [part]})
    yield results.completed(context.run_id)


async def _at_the_end(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
    yield results.delta(context.run_id, "see this")
    message = {"role": "assistant", "content": SHOWN}
    yield result(context, "run.completed", finish_reason="stop", message=message)


@pytest.mark.parametrize("says", [_whole, _in_pieces, _at_the_end])
def test_the_images_and_files_of_a_message_are_kept_told_and_found_again(
    client: Client, says: Any
) -> None:
    with bound(client.user, says):
        run, frames = finished(client)
    assert reply(frames) == "see this"
    (row,) = Message.objects.filter(run_id=UUID(run["run_id"]), role="assistant")
    held = row.metadata["contents"]
    assert [one["type"] for one in held] == ["image", "image", "file", "file"]
    assert [one.get("url", "") for one in held][1::2] == [
        "https://example.com/a.png",
        "https://example.com/b.csv",
    ]
    assert [one.get("name", "") for one in held] == ["", "", "a.csv", "b.csv"]
    kept = [client.http.get(f"/api/v1/agent/artifacts/{held[n]['artifact_id']}").json() for n in (0, 2)]
    assert [one["mime_type"] for one in kept] == ["image/png", "text/csv"]
    assert kept[1]["url"].partition(",")[2] == "YSxi"
    made = [one for one in events_of(run["run_id"]) if one["type"] == "artifact.created"]
    assert [one["artifact_id"] for one in made] == [held[0]["artifact_id"], held[2]["artifact_id"]]

    day = client.history(run["conversation_id"])["messages"]
    files = day[-1]["files"]
    assert [one["type"] for one in files] == ["image", "image", "file", "file"]
    assert files[0]["url"] == f"/api/v1/agent/artifacts/{held[0]['artifact_id']}"
    assert [one["url"] for one in files[1::2]] == [one["url"] for one in held[1::2]]

    def told(dialect: str) -> list[Any]:
        path = f"/api/v1/agent/runs/{run['run_id']}/events"
        stream = client.http.get(path, params={"dialect": dialect}, headers=_STREAM).text
        return [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: {")]

    whole = [one for one in told("agent-api") if one["object"] == "response"][-1]["output"]
    contents = [part for message in whole for part in message["content"]]
    kinds = [part["type"] for part in contents if part["type"] != "data"]  # those are the prefetch
    assert kinds == ["text", "image", "image", "file", "file"]
    urls = [part["image_url"] for part in contents if part["type"] == "image"]
    assert urls[0].startswith("data:image/png;base64,iVBOR")
    assert urls[1] == "https://example.com/a.png"
    activities = [one for one in told("ag-ui") if one["type"] == "ACTIVITY_SNAPSHOT"]
    links = [one["content"]["url"] for one in activities if one["activityType"] == "parley.link"]
    assert links == ["https://example.com/a.png", "https://example.com/b.csv"]
    assert [one["activityType"] for one in activities].count("parley.artifact") == 2


_STREAM = {"Accept": "text/event-stream"}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": "javascript:alert(1)"}},
        {"type": "image_url", "image_url": {"url": "file:///etc/passwd"}},
        {"type": "image_base64", "image_base64": "%%%"},
        {"type": "image_base64"},
        {"type": "file_base64", "file_base64": base64.b64encode(bytes(2**20 + 1)).decode()},
    ],
)
def test_what_cannot_be_shown_breaks_the_contract(client: Client, part: dict[str, Any]) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield result(context, "message.completed", message={"role": "assistant", "content": [part]})

    with bound(client.user, says):
        run, _ = finished(client)
    assert (run["status"], run["error"]["code"]) == ("failed", "runner.protocol_error")


def test_a_plugin_s_snapshots_repeat_their_images_and_each_is_kept_once() -> None:
    """The released runtime's Host puts each delta in the place of the one before."""
    from agents.host.result_stream import ResultStream
    from agents.host_protocol.messages import MessageChunk, shown_in

    stream = ResultStream(None, "m1", whole=False, snapshots=True)  # type: ignore[arg-type]

    async def feed() -> None:
        for count in (2, 3, 3, 4):
            chunk = msgspec.convert({"role": "assistant", "content": SHOWN[:count]}, MessageChunk)
            await stream._delta(chunk)

    asyncio.run(feed())
    whole = msgspec.convert({"role": "assistant", "content": SHOWN[:4]}, MessageChunk)
    assert stream._shown == shown_in(whole.content)
