"""Runs of a hosted runner through the whole server (specs/runner-host.md H04–H09, H15–H20)."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from agents.host import bindings, gateway
from agents.host_protocol import results
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import Capabilities, ContextPolicy, FormItem
from agents.host_protocol.messages import Message
from agents.host_protocol.results import RunResult
from agents.host_protocol.run_context import AgentRunContext
from agents.models import HostArtifact, HostState, RunnerBinding
from agents.requests import PromptUse, RunRequest
from conversations import events
from conversations.models import Thread
from prompts.models import Prompt
from tests.support.client import Client, ScriptedModel
from tests.support.host.hosted_runs import bound, events_of, finished, reply
from tests.support.host.stage import EVERYTHING, Scripted, Stage, audited, manifest, serving
from tests.support.host.stage import run as on_a_loop

Scripts = Callable[..., ScriptedModel]


def is_open(run_id: str) -> bool:
    """Whether the Host answers calls of this run."""
    try:
        on_a_loop(gateway.call("get_prompt", {}, run_id=run_id, identity=None))
    except HostRefusal as refusal:
        return "not found or expired" not in refusal.message
    return True


def test_snapshots_become_increments_and_the_last_one_is_the_answer(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        for text in ("Hel", "Hello", "Hello, you"):
            yield results.delta(context.run_id, text)

    with bound(client.user, says):
        run, frames = finished(client)
    deltas = [frame.data["delta"] for frame in frames if frame.event == "content_delta"]
    assert (deltas, run["status"], run["finish_reason"]) == (["Hel", "lo", ", you"], "completed", "stop")


def test_the_context_is_event_first_and_inlines_no_history(client: Client) -> None:
    seen: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        seen.append(context)
        yield results.message(context.run_id, "ok")

    with bound(client.user, says, config={"depth": 3}, storage=["plugin"]):
        first, _ = finished(client, "one")
        finished(client, "two", conversation_id=first["conversation_id"])
    one, two = seen
    thread = UUID(first["conversation_id"]).hex
    assert (one.event.event_type, one.event.event_id) == ("message.received", f"{one.run_id}-1")
    assert (one.input.text, one.delivery.surface, one.config) == ("one", "text", {"depth": 3})
    assert (two.bootstrap, two.adapter, two.subject and two.subject.subject_type) == (
        None,
        None,
        "message",
    )
    assert (one.context.has_history_before, two.context.has_history_before) == (False, True)
    assert two.conversation is not None
    assert two.conversation.conversation_id == thread
    apis = two.context.available_apis
    assert (apis.history_page, apis.state, apis.storage) == (True, True, True)
    assert two.runtime.deadline_at is not None
    assert two.runtime.static_refs == one.runtime.static_refs
    assert set(one.runtime.static_refs) == {"system", "resources"}


def test_a_runner_that_asks_for_a_tail_gets_no_more_than_it_bounds(client: Client) -> None:
    seen: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        seen.append(context)
        yield results.message(context.run_id, "ok")

    declared = manifest(
        f"python:t{uuid4().hex[:8]}", context=ContextPolicy(bootstrap="recent_tail", max_inline_events=1)
    )
    with bound(client.user, says, declared):
        first, _ = finished(client, "one")
        finished(client, "two", conversation_id=first["conversation_id"])
    assert seen[1].bootstrap is not None
    assert [said.content for said in seen[1].bootstrap.messages] == ["ok"]


def test_apis_that_the_manifest_does_not_ask_for_are_not_available(client: Client) -> None:
    seen: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        seen.append(context)
        yield results.message(context.run_id, "ok")

    declared = manifest(f"python:t{uuid4().hex[:8]}", permissions=type(EVERYTHING)())
    with bound(client.user, says, declared, state_enabled=False, storage=["plugin"]):
        finished(client)
    apis = seen[0].context.available_apis
    told = {name for name in apis.__struct_fields__ if getattr(apis, name)}
    assert told == {"prompt_get", "run_append_result"}  # which need no permission
    assert seen[0].resources.models == ()


def test_models_stream_to_the_runner_in_increments_and_their_tokens_are_the_runs(
    client: Client, scripted: Scripts
) -> None:
    chunks: list[Any] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        (model,) = context.resources.models
        said = ""
        question = [Message(role="user", content="Hello")]
        async for chunk in host.models.stream(model.model_id, question):
            chunks.append(chunk)
            said += str(chunk.content)
            yield results.delta(context.run_id, said)
        yield results.completed(context.run_id)

    model = scripted("hello")
    with bound(client.user, says):
        run, frames = finished(client, model=model.name)
    assert run["status"] == "completed", run
    assert reply(frames) == "".join(str(chunk.content) for chunk in chunks) != ""
    assert [chunk.is_final for chunk in chunks] == [False] * (len(chunks) - 1) + [True]
    assert run["usage"]["output_tokens"] > 0
    assert run["provider"] == "fake"


def test_models_of_the_config_are_granted_within_the_manifest(client: Client, scripted: Scripts) -> None:
    seen: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        seen.append(context)
        yield results.message(context.run_id, "ok")

    own, chosen = scripted("hello"), scripted("hello")
    form = (FormItem("model-fallback-selector", "model"),)
    declared = manifest(
        f"python:t{uuid4().hex[:8]}",
        permissions=type(EVERYTHING)(models=("invoke",)),
        config_schema=form,
    )
    config = {"model": {"primary": chosen.name, "fallbacks": [own.name, "global:gone"]}}
    with bound(client.user, says, declared, config=config):
        finished(client, model=own.name)
    granted = [(one.model_id, one.operations) for one in seen[0].resources.models]
    assert granted == [(own.name, ("invoke",)), (chosen.name, ("invoke",))]


def test_state_is_kept_from_run_to_run_and_not_delivered(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.message(context.run_id, str(context.state.conversation.get("external.session_id")))
        yield results.state(context.run_id, "conversation", "external.session_id", "s-1")
        yield results.state(context.run_id, "galaxy", "x", 1)  # dropped, the run goes on
        yield results.state(context.run_id, "actor", "big", "x" * 300_000)

    with bound(client.user, says):
        first, frames = finished(client)
        second, again = finished(client, conversation_id=first["conversation_id"])
    assert (reply(frames), reply(again), second["status"]) == ("None", "s-1", "completed")
    assert HostState.objects.filter(owner=client.user).count() == 1
    assert "s-1" not in json.dumps([frame.data for frame in frames])
    gone = client.http.delete(f"/api/v1/agent/threads/{first['conversation_id']}")
    assert gone.status_code < 300
    assert not HostState.objects.filter(owner=client.user).exists()


def test_an_artifact_is_stored_said_and_belongs_to_the_next_message(client: Client) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(100)

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.artifact(context.run_id, png, mime_type="text/html", name="a.png")
        yield results.message(context.run_id, "Here it is")

    with bound(client.user, says):
        run, _ = finished(client)
    (made,) = HostArtifact.objects.filter(owner=client.user)
    assert (made.mime_type, made.size, made.name) == ("image/png", 108, "a.png")
    log = events_of(run["run_id"])
    assert [event["artifact_id"] for event in log if event["type"] == "artifact.created"] == [
        made.pk.hex
    ]
    (message,) = [event["message"] for event in log if event["type"] == "message.completed"]
    assert message["metadata"] == {"artifact_refs": [made.pk.hex]}


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (RunResult(run_id="", type=""), "no type"),
        (RunResult(run_id="", type="message.delta", data={}), "message.delta"),
        (RunResult(run_id="", type="message.completed", data={"message": 1}), "message.completed"),
        (RunResult(run_id="", type="state.updated", data={"key": "k"}), "scope and key"),
        (RunResult(run_id="", type="artifact.created", data={}), "artifact_type"),
        (
            RunResult(
                run_id="", type="artifact.created", data={"artifact_type": "f", "content_base64": "*"}
            ),
            "",
        ),
        (
            RunResult(
                run_id="", type="artifact.created", data={"artifact_type": "f", "run_id": "other"}
            ),
            "another run",
        ),
        (results.artifact("", bytes(1024 * 1024 + 1)), "at most"),
        (results.delta("f" * 32, "x"), "another run"),
        ("rubbish", "RunResult, facts or events"),
    ],
)
def test_a_result_that_breaks_the_contract_fails_its_run(client: Client, said: Any, words: str) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        yield said

    with bound(client.user, says):
        run, frames = finished(client)
    assert run["status"] == "failed"
    assert run["error"]["code"] == "runner.protocol_error"
    assert words in run["error"]["message"]
    assert frames[-1].event == "error"


def test_unknown_results_are_ignored_and_repeated_ones_dropped(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield RunResult(run_id=context.run_id, type="future.thing", data={"x": 1})
        for sequence, text in ((1, "a"), (2, "ab"), (2, "zzz"), (3, "abc")):
            yield RunResult(
                run_id=context.run_id,
                type="message.delta",
                data=results.delta("", text).data,
                sequence=sequence,
            )
        yield results.message(context.run_id, "abc")
        yield RunResult(
            run_id=context.run_id,
            type="run.completed",
            data={"message": {"role": "assistant", "content": "abc"}, "external": {"provider": "x"}},
        )
        raise AssertionError("after its end nobody listens")

    with bound(client.user, says):
        run, frames = finished(client)
    assert (run["status"], reply(frames)) == ("completed", "abc")


@pytest.mark.parametrize("spelling", ["error", "message"])
def test_a_runners_failure_keeps_its_code_and_words(client: Client, spelling: str) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        data = {"code": "acp.empty_response", spelling: "Nothing came", "retryable": True}
        yield RunResult(run_id=context.run_id, type="run.failed", data=data)

    with bound(client.user, says):
        run, _ = finished(client)
    assert run["error"] == {"code": "acp.empty_response", "message": "Nothing came"}


def test_a_runner_that_breaks_says_nothing_of_its_inside(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.delta(context.run_id, "so far")
        raise ValueError("password=hunter2")

    with bound(client.user, says):
        run, frames = finished(client)
    assert run["error"] == {"code": "runner.exception", "message": "The runner failed."}
    assert "hunter2" not in json.dumps([frame.data for frame in frames])


def test_the_bindings_deadline_ends_the_run_and_its_session(client: Client) -> None:
    seen: list[str] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        seen.append(context.run_id)
        yield results.delta(context.run_id, "one")
        await asyncio.sleep(60)

    with bound(client.user, says, deadline_s=1):
        run, _ = finished(client)
    assert run["error"] == {"code": "runner.timeout", "message": "Runner timed out"}
    assert not is_open(seen[0])


def test_a_cancelled_run_stops_its_runner(client: Client) -> None:
    began, stopped = threading.Event(), threading.Event()

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.delta(context.run_id, "one")
        began.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.set()
            raise

    with bound(client.user, says):
        run_id = client.start()["run_id"]
        assert began.wait(30)
        client.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
        run = client.wait_for(run_id, "cancelled")
    assert run["error"]["code"] == "cancelled"
    assert stopped.wait(30)
    assert not is_open(run_id)


def test_facts_of_a_runner_in_process_pass_as_they_are(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[Any]:
        for text in ("in", "crements"):
            yield events.MessageDelta("m1", text)
        yield events.RunCompleted("length")

    with bound(client.user, says):
        run, frames = finished(client)
    assert (reply(frames), run["finish_reason"]) == ("increments", "length")


def test_whole_delivery_keeps_back_what_is_not_finished(client: Client) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.delta(context.run_id, "draft one")
        yield results.message(context.run_id, "Final")

    with bound(client.user, says, delivery="whole"):
        _, frames = finished(client)
    assert [frame.data["delta"] for frame in frames if frame.event == "content_delta"] == ["Final"]


def test_a_binding_whose_runner_is_gone_fails_its_runs_and_no_others(client: Client) -> None:
    rule = RunnerBinding.objects.create(
        name=uuid4().hex, runner_id="plugin:gone/away/default", user=client.user, position=1
    )
    bindings.clear_cache()
    try:
        run, _ = finished(client)
    finally:
        rule.delete()
        bindings.clear_cache()
    assert run["error"]["code"] == "runner.not_found"
    assert finished(client)[0]["status"] == "completed"


def test_a_binding_for_a_prompt_serves_the_runs_that_are_told_it(
    make_stage: Callable[..., Stage],
) -> None:
    stage = make_stage()
    prompt = Prompt.objects.create(name=uuid4().hex, kind="agent_system")
    rule = RunnerBinding.objects.create(
        name=uuid4().hex, runner_id="builtin:chat", user=stage.user, prompt=prompt, position=0
    )
    bindings.clear_cache()

    def serves(*told: PromptUse) -> bool:
        asked = RunRequest(
            dialect="text", model="global:none", request_id="r", messages=(), prompts=told
        )
        user_id, thread_id = stage.user.pk, stage.thread.pk
        found = on_a_loop(bindings.find_binding(asked, user_id=user_id, thread_id=thread_id))
        return found is not None and found.id == rule.pk

    try:
        assert serves(PromptUse(version_id=1, prompt_id=prompt.pk))
        assert not serves(PromptUse(version_id=1, prompt_id=prompt.pk + 1))
        assert not serves()  # the active ones: it is not among them
    finally:
        prompt.delete()
        bindings.clear_cache()
    assert not RunnerBinding.objects.filter(pk=rule.pk).exists()


def test_a_call_from_a_run_that_is_over_is_refused_and_audited(client: Client) -> None:
    kept: list[HostApi] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        kept.append(host)
        await host.state.set("actor", "k", 1)
        yield results.message(context.run_id, "ok")

    with bound(client.user, says):
        run, _ = finished(client)

    async def late() -> None:
        from agents.host import call_audit
        from config import database

        with pytest.raises(HostRefusal, match="not found or expired"):
            await kept[0].state.get("actor", "k")
        await call_audit.flush()
        await database.close()

    asyncio.run(late())
    calls = audited(UUID(run["run_id"]))
    assert calls == [("state_set", "ok"), ("state_get", "unauthorized")]


def test_an_action_waits_for_approval_and_is_done_by_the_next_run(client: Client) -> None:
    seen: list[AgentRunContext] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        seen.append(context)
        if context.event.event_type == "message.received":
            yield results.action(context.run_id, "thread.rename", payload={"title": "Chest day"})
            yield results.action(context.run_id, "thread.delete", payload={})  # refused, logged
        yield results.message(context.run_id, "ok")

    with bound(client.user, says, platform_actions=["thread.rename"]):
        run, _ = finished(client)
        assert (run["finish_reason"], len(run["interrupts"])) == ("interrupt", 1)
        thread = Thread.objects.get(pk=run["conversation_id"])
        assert thread.title != "Chest day"
        approval = run["interrupts"][0]["id"]
        decided = client.http.post(f"/api/v1/agent/approvals/{approval}", json={"approve": True})
        assert decided.status_code == 200, decided.text
        told = decided.json()["told_run_id"]
        deadline = 200
        while not told and deadline:
            told = client.http.get(f"/api/v1/agent/approvals/{approval}").json()["told_run_id"]
            deadline -= 1
        client.wait_for(told, "completed", "failed")
    thread.refresh_from_db()
    assert thread.title == "Chest day"
    assert seen[1].event.event_type == "approval.decided"
    assert seen[1].event.data["outcomes"][0]["content"] == '{"changed":true}'


def test_an_action_that_no_binding_allows_is_not_done(client: Client) -> None:
    said: list[str] = []

    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        try:
            await host.platform.request_action("thread.rename", payload={"title": "x"})
        except HostRefusal as refusal:
            said.append(refusal.code)
        yield results.message(context.run_id, "ok")

    with bound(client.user, says):
        run, _ = finished(client)
    assert (said, run["finish_reason"]) == (["unauthorized"], "stop")


def test_staff_list_runners_and_run_one_in_the_seeds_envelope(
    make_client: Callable[..., Client], client: Client
) -> None:
    async def says(context: AgentRunContext, host: HostApi) -> AsyncGenerator[RunResult]:
        yield results.delta(context.run_id, "Hel")
        yield results.delta(context.run_id, f"Hello {context.input.text}")
        yield RunResult(
            run_id=context.run_id,
            type="tool.call.started",
            data={"tool_call_id": "c1", "tool_name": "t", "parameters": {"a": 1}},
        )
        yield results.completed(context.run_id)

    staff = make_client(is_staff=True, is_superuser=True)
    declared = manifest(
        f"plugin:acme/p{uuid4().hex[:6]}/default", capabilities=Capabilities(streaming=True)
    )
    with serving(Scripted(declared, says)):
        listed = staff.http.get("/api/v1/agent/runners").json()["runners"]
        (shown,) = [one for one in listed if one["id"] == declared.id]
        assert (shown["home"], shown["permissions"]["history"]) == ("plugin", ["page", "search"])
        path = f"/api/v1/agent/runners/{declared.id}/run"
        body = {"input": {"text": "you"}, "conversation": {"conversation_id": uuid4().hex}}
        answer = staff.http.post(path, json=body)
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        lines = [json.loads(line) for line in answer.text.splitlines() if line]
        streamed = staff.http.post(path, json=body, headers={"Accept": "text/event-stream"})
        assert client.http.get("/api/v1/agent/runners").status_code == 403
        assert client.http.post(path, json=body).status_code == 403
        assert staff.http.post("/api/v1/agent/runners/python:nobody/run", json=body).status_code == 404
        assert staff.http.post(path, json={"input": {"text": " "}}).json()["code"] == "text_required"
        assert staff.http.post(path, json={"input": 7}).status_code == 422
    assert [(one["type"], one["sequence"]) for one in lines] == [
        ("message.delta", 1),
        ("message.delta", 2),
        ("tool.call.started", 3),
        ("message.completed", 4),
        ("tool.call.completed", 5),
        ("run.completed", 6),
    ]
    assert [one["data"]["chunk"]["content"] for one in lines[:2]] == ["Hel", "lo you"]
    assert {one["run_id"] for one in lines} == {lines[0]["run_id"]}
    assert "event: run.completed" in streamed.text
