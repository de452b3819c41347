"""The first generation's wire, against a runtime written from the published tables."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing, nullcontext
from typing import Any

import pytest
from structlog.testing import capture_logs

from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import Capabilities, ContextPolicy, FormItem, Permissions
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentInput, ArtifactRef
from agents.host_protocol.runner import HostedRunner
from agents.models import PluginRuntime
from agents.runners.base import RunFailure
from agents.runtimes.plugins import connection
from agents.runtimes.plugins.v1_protocol import V1Protocol
from agents.runtimes.plugins.wire_protocol import read_runners
from conversations.models import Message
from tests.agents.runtimes.plugins.bound import bound, said
from tests.agents.runtimes.plugins.fake_v1 import RUNNER
from tests.agents.runtimes.plugins.runs import context, heard, on_loop, texts, wait_for
from tests.agents.runtimes.plugins.runtime_rows import FAKE, forget, old_runtime_process, wait_for_status
from tests.conftest import Server
from tests.support.client import Client
from tests.support.fakes.mcp_host import wait_until
from tests.support.host.told_history import STORY, TOLD, chat
from tests.support.pictures import picture

OLD = "plugin:old/probe/default"
JUNE = "plugin:old/probe/june"
PASSED_OVER = [
    "old/bad/name/x: A plugin runner's id is plugin:author/name/runner.",
    "?/?/?: plugin_author is missing",
]


@pytest.fixture(params=["ws", "stdio"])
def old(
    request: pytest.FixtureRequest,
    server: Server,
    enter_runtime: Callable[..., PluginRuntime],
    commands_allowed: None,
) -> Iterator[HostedRunner]:
    """The old runner, over either way."""
    with old_runtime_process() if request.param == "ws" else nullcontext("") as url:
        if url:
            row = enter_runtime(url=url)
        else:
            row = enter_runtime(transport="stdio", command=sys.executable, args=[str(FAKE), "stdio"])
        yield wait_for(server, OLD)
        forget(server, row)


def test_everything_of_the_first_generation(server: Server, old: HostedRunner) -> None:
    """One test for each way, because each starts a runtime."""
    assert old.manifest.label == {"en_US": "Old probe", "zh_Hans": "旧探针"}
    assert old.manifest.description == {"en_US": "Does what it is told.", "zh_Hans": "听话"}
    assert old.manifest.context == ContextPolicy(ownership="self_managed")
    assert old.manifest.permissions.artifacts == ("metadata", "read")
    tone = FormItem("string", "tone", {"en_US": "Tone"}, {"en_US": "How it speaks."}, default="calm")
    speeds = [{"name": "fast", "label": {"en_US": "Fast", "zh_Hans": "快"}}]
    label = {"en_US": "Speed", "zh_Hans": "速度"}
    speed = FormItem("select", "speed", label, required=True, default="fast", options=speeds)
    assert old.manifest.config_schema == (tone, speed)

    assert texts(on_loop(server, heard(old, context("say 你|好")))) == ["你", "你好"]
    assert texts(on_loop(server, heard(old, context("x" * 3_000_000)))) == ["3000000 characters"]
    assert texts(on_loop(server, heard(old, context("练" * 1_000_000)))) == ["1000000 characters"]
    (big,) = texts(on_loop(server, heard(old, context("big 3000000"))))
    assert len(big) == 3_000_000

    told = json.loads(texts(on_loop(server, heard(old, context("context"))))[0])
    assert told["runtime"]["sdk_protocol_version"] == "1"
    assert told["input"]["attachments"] == []

    async def all_at_once() -> list[Any]:
        return await asyncio.gather(*(heard(old, context(f"say {n}|!")) for n in range(20)))

    assert [texts(one)[-1] for one in on_loop(server, all_at_once())] == [f"{n}!" for n in range(20)]

    (answer,) = texts(on_loop(server, heard(old, context("call nope {}"))))
    assert json.loads(answer)[0]["code"] == 1
    assert json.loads(answer)[0]["data"]["code"] == "invalid_argument"

    assert texts(on_loop(server, heard(old, context("rubbish")))) == ["after the rubbish"]
    assert texts(on_loop(server, broken_off(old))) == ["…"]
    unknown = json.loads(texts(on_loop(server, heard(old, context("unknown"))))[0])
    assert unknown == []  # nothing is asked that this generation has no word for


async def broken_off(runner: HostedRunner) -> list[RunResult]:
    """A run that nobody waits for the end of."""
    async with aclosing(runner.run(context("sleep"), HostApi(None))) as results:  # type: ignore[arg-type]
        first = await anext(results)
    assert isinstance(first, RunResult)
    return [first]


def test_a_slow_taker_fails_alone(server: Server, old: HostedRunner) -> None:
    """This generation knows no pacing: what is not taken in time ends its own run."""

    async def slowly() -> str:
        results = old.run(context("flood 800"), None)  # type: ignore[arg-type]
        await anext(results)
        assert texts(await heard(old, context("flooded"))) == ["yes"]  # all of it has come
        try:
            async for _ in results:
                pass
        except RunFailure as failure:
            return failure.code
        return "whole"

    async def both() -> tuple[str, list[str]]:
        slow, quick = await asyncio.gather(slowly(), heard(old, context("say a|b")))
        return slow, texts(quick)

    assert on_loop(server, both()) == ("runner.overrun", ["a", "ab"])


def test_a_runtime_that_dies_fails_its_runs(server: Server, old: HostedRunner) -> None:
    with pytest.raises(RunFailure) as failed:
        on_loop(server, heard(old, context("die")))
    assert failed.value.code == "runner.unavailable"


def test_an_invalid_runner_of_a_list_is_logged_once_per_change(
    server: Server,
    enter_runtime: Callable[..., PluginRuntime],
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.PLUGIN_REFRESH_S = 0.05
    lists: list[tuple[Any, ...]] = []

    def listed(*given: Any) -> Any:
        lists.append(given)
        return read_runners(*given)

    monkeypatch.setattr(connection, "read_runners", listed)
    with capture_logs() as lines, old_runtime_process() as url:
        row = enter_runtime(url=url)
        wait_until(lambda: len(lists) > 20, 60)
        forget(server, row)
    warned = [line["why"] for line in lines if line["event"] == "plugin runners passed over"]
    assert warned == [PASSED_OVER]


def test_what_this_host_does_not_know_of_a_runner_does_not_spoil_it() -> None:
    listed = RUNNER | {
        "permissions": {"models": ["invoke", "dream"], "skills": ["run"], "tools": None},
        "capabilities": {"streaming": True, "telepathy": True, "interrupt": None},
    }
    found, passed_over = read_runners(V1Protocol(), [listed])
    manifest = found[OLD]
    assert (passed_over, manifest.permissions) == ([], Permissions(models=("invoke",)))
    assert manifest.capabilities == Capabilities(streaming=True)


def test_each_delta_of_a_runtime_stands_for_all_before_and_the_whole_for_all_deltas(
    server: Server, enter_runtime: Callable[..., PluginRuntime], make_client: Callable[..., Client]
) -> None:
    """As its own Host has it, which puts each in the place of the one before; nothing is guessed."""
    client = make_client()
    with old_runtime_process() as url:
        row = enter_runtime(url=url)
        wait_for(server, OLD)
        with bound(client, OLD):
            told = [said(client, text) for text in ("snapshots ha|ha|haha|h", "final draft|FINAL")]
        forget(server, row)
    assert [answer for _, answer, _ in told] == ["haha", "draft\n\nFINAL"]
    rows = Message.objects.filter(run_id__in=[run_id for run_id, _, _ in told], role="assistant")
    assert sorted(row.content for row in rows) == ["FINAL", "haha"]


def test_a_runner_reads_the_state_that_it_has_just_said(
    server: Server, enter_runtime: Callable[..., PluginRuntime], make_client: Callable[..., Client]
) -> None:
    client = make_client()
    with old_runtime_process() as url:
        row = enter_runtime(url=url)
        wait_for(server, OLD)
        with bound(client, OLD):
            answers = [json.loads(said(client, f"state k{n} v")[1]) for n in range(5)]
        forget(server, row)
    assert [one[0]["data"] for one in answers] == [{"value": "v19"}] * 5


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (None, "an entry that is no object: "),
        ({"plugin_author": 1}, "1/?/?: plugin_name is missing"),
        (RUNNER | {"permissions": {"models": "all"}}, "old/probe/default: Expected `array`, got `str`"),
        (RUNNER | {"config": [{"type": "string"}]}, "old/probe/default: Object missing required field"),
    ],
)
def test_a_runner_that_is_passed_over_is_named_with_the_reason(entry: Any, why: str) -> None:
    found, passed_over = read_runners(V1Protocol(), [entry])
    assert (found, len(passed_over)) == ({}, 1)
    assert passed_over[0].startswith(why)


def test_the_sdk_of_june_is_told_what_its_entities_allow(
    server: Server, enter_runtime: Callable[..., PluginRuntime], make_client: Callable[..., Client]
) -> None:
    """Its HistoryPage and its AgentInput forbid every key but their own."""
    client = make_client()
    with old_runtime_process("june") as url:
        row = enter_runtime(url=url)
        june = wait_for(server, JUNE)
        assert june.manifest.title == "June probe"
        file = ArtifactRef(artifact_id="file-1", artifact_type="image", mime_type="image/png")
        asked = context("context", input=AgentInput(text="context", attachments=(file,)))
        told = json.loads(texts(on_loop(server, heard(june, asked)))[0])
        with bound(client, JUNE):
            talk = client.start("first")["conversation_id"]
            page = said(client, "call history_page", conversation_id=talk)[1]
            asked_with = chat(client, [*STORY[:-1], {"role": "user", "content": "call history_page"}])
            image = base64.b64encode(picture("PNG", (4, 4))).decode()
            shown = {"type": "input_image", "image_url": f"data:image/png;base64,{image}"}
            parts = [{"type": "input_text", "text": "context"}, shown]
            body = {"model": "demo", "input": [{"role": "user", "content": parts}]}
            output = client.http.post("/v1/responses", json=body).json()["output"]
        forget(server, row)
    answer = json.loads(asked_with.json()["choices"][0]["message"]["content"])
    items = answer[0]["data"]["items"]
    assert [(one["role"], one["content"]) for one in items[::-1]] == [(a, c) for a, _, c, _ in TOLD]
    keys = ["type", "mime_type", "size", "name", "source", "url", "content", "id"]
    assert [list(one) for one in told["input"]["attachments"]] == [keys]
    given = json.loads(output[-1]["content"][0]["text"])["input"]["contents"]
    assert [one["type"] for one in given] == ["text", "image_base64"], "no API of its gives it the image"
    assert given[1]["image_base64"].startswith("data:image/png;base64,iVBOR")
    newest = json.loads(page)[0]["data"]["items"][0]
    assert (newest["content"], newest["attachment_refs"]) == ("5 characters", [])
    assert "artifact_refs" not in newest


def test_a_program_that_is_not_allowed_is_not_started(
    server: Server, enter_runtime: Callable[..., PluginRuntime]
) -> None:
    row = enter_runtime(transport="stdio", command="/bin/sh", args=["-c", "true"])
    wait_for_status(row, "failed")
    assert "RUNNER_COMMANDS" in row.problem


@pytest.mark.parametrize(
    ("url", "told"),
    [("ws://127.0.0.1:1/x", "Nothing answers"), ("ws://127.0.0.1:{server}/health", "answers 403")],
)
def test_staff_are_told_why_a_runtime_is_not_reached(
    server: Server, enter_runtime: Callable[..., PluginRuntime], url: str, told: str
) -> None:
    row = enter_runtime(url=url.replace("{server}", server.url.rpartition(":")[2]))
    wait_for_status(row, "failed")
    assert told in row.problem
