"""Host calls through the one door: allowed, refused, audited (specs/runner-host.md H10–H14, H21)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from agents.host import gateway
from agents.host.actions import state, storage
from agents.host.grants import Base, Binding
from agents.host_protocol import parameters
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.manifest import Permissions
from agents.host_protocol.messages import Message
from agents.host_protocol.resources import AgentResources, ModelResource
from agents.tools.base import Tool
from tests.support.host.stage import DOUBLE, EVERYTHING, GENEROUS, Stage, audited, manifest, run

Make = Callable[..., Stage]
IDENTITY = "acme/tester"


def refused(session: Any, action: str, ask: Any) -> HostRefusal:
    with pytest.raises(HostRefusal) as caught:
        run(session.call(action, ask))
    return caught.value


def wire(stage: Stage, action: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
    called = {"run_id": stage.run.pk.hex, "identity": IDENTITY} | more
    return run(gateway.call(action, payload, **called))


def test_state_is_set_read_listed_and_deleted(make_stage: Make) -> None:
    stage = make_stage()
    host = HostApi(stage.session())

    async def go() -> list[Any]:
        await host.state.set("conversation", "external.session_id", "abc")
        await host.state.set("conversation", "external.folder", {"path": ["a", 1]})
        listed = await host.state.list("conversation", prefix="external.", limit=1)
        got = await host.state.get("conversation", "external.folder")
        gone = [await host.state.delete("conversation", "external.folder") for _ in range(2)]
        return [listed.keys, listed.has_more, got, gone, await host.state.get("actor", "nothing")]

    assert run(go()) == [("external.folder",), True, {"path": ["a", 1]}, [True, False], None]
    assert {result for _, result in audited(stage.run.pk)} == {"ok"}


def test_an_older_name_of_a_state_key_is_known(make_stage: Make) -> None:
    host = HostApi(make_stage().session())

    async def go() -> Any:
        await host.state.set("conversation", "conversation_id", "c-1")
        return await host.state.get("conversation", "external.conversation_id")

    assert run(go()) == "c-1"


def test_state_is_apart_for_each_binding_runner_and_conversation(make_stage: Make) -> None:
    stage, other = make_stage(), make_stage()
    asked = parameters.GetState("conversation", "k")
    run(stage.session().call("state_set", parameters.SetState("conversation", "k", 1)))
    elsewhere = [
        stage.session(binding=replace(GENEROUS, id=2)),
        stage.session(of=manifest("plugin:acme/other/default")),
        other.session(),
    ]
    assert [run(one.call("state_get", asked)).value for one in elsewhere] == [None, None, None]
    assert run(stage.session().call("state_get", asked)).value == 1


def test_state_needs_the_bindings_policy_and_something_to_belong_to(make_stage: Make) -> None:
    stage = make_stage()
    ask = parameters.SetState("conversation", "k", 1)
    off = stage.session(binding=replace(GENEROUS, state_enabled=False))
    actor_only = stage.session(binding=replace(GENEROUS, state_scopes=("actor",)))
    nowhere = stage.session(thread_id=None)
    assert [refused(one, "state_set", ask).message for one in (off, actor_only, nowhere)] == [
        "State access is disabled by binding policy",
        'Scope "conversation" is not enabled by binding policy',
        'Scope key not available for scope "conversation"',
    ]
    assert run(nowhere.call("state_set", parameters.SetState("runner", "k", 1))).success
    assert (
        refused(stage.session(), "state_get", parameters.GetState("galaxy", "k")).code
        == "invalid_argument"
    )


def test_a_state_value_is_json_and_at_most_256_kib(make_stage: Make) -> None:
    session = make_stage().session()
    large = refused(session, "state_set", parameters.SetState("actor", "k", "x" * state.LARGEST))
    assert (large.code, large.message) == (
        "payload_too_large",
        f"Value size {state.LARGEST + 2} bytes exceeds limit {state.LARGEST} bytes",
    )
    for value in ({1, 2}, b"bytes", float("nan"), object()):
        problem = refused(session, "state_set", parameters.SetState("actor", "k", value))
        assert problem.message.startswith("Value is not JSON-serializable")
    odd = "nul \x00 and half \ud800"
    assert run(session.call("state_set", parameters.SetState("actor", "k", [odd]))).success
    assert run(session.call("state_get", parameters.GetState("actor", "k"))).value == [
        "nul \ufffd and half \ufffd"
    ]


def test_storage_keeps_bytes_by_area(make_stage: Make) -> None:
    host = HostApi(make_stage().session(binding=replace(GENEROUS, id=uuid4().int % 2**30)))

    async def go() -> list[Any]:
        key = uuid4().hex
        for area in ("plugin", "workspace", "binding"):
            await host.storage.set(area, key, area.encode() + b"\x00\xff")
        got = [await host.storage.get(area, key) for area in ("plugin", "workspace", "binding")]
        listed = [
            list(await host.storage.list(area, prefix=key)) == [key] for area in ("plugin", "workspace")
        ]
        await host.storage.delete("plugin", key)
        left = await host.storage.list("plugin", prefix=key)
        return [got, listed, list(left)]

    assert run(go()) == [
        [b"plugin\x00\xff", b"workspace\x00\xff", b"binding\x00\xff"],
        [True, True],
        [],
    ]


def test_storage_needs_the_area_and_a_value_that_fits(make_stage: Make) -> None:
    stage = make_stage()
    narrow = stage.session(binding=replace(GENEROUS, storage=("plugin",)))
    undeclared = stage.session(of=manifest(permissions=replace(EVERYTHING, storage=("workspace",))))
    ask = parameters.SetStored(key="k", value=b"1", area="workspace")
    assert refused(narrow, "set_binary_storage", ask).message == (
        "storage workspace is not authorized for this agent run"
    )
    mine = parameters.GetStored(key="k", area="plugin")
    assert refused(undeclared, "get_binary_storage", mine).code == "unauthorized"
    large = parameters.SetStored(key="k", value=bytes(storage.LARGEST + 1))
    assert refused(stage.session(), "set_binary_storage", large).code == "payload_too_large"
    missing = refused(stage.session(), "get_binary_storage", parameters.GetStored(key=uuid4().hex))
    assert missing.code == "not_found"


def test_one_plugins_storage_is_not_anothers(make_stage: Make) -> None:
    stage, key = make_stage(), uuid4().hex
    run(stage.session().call("set_binary_storage", parameters.SetStored(key=key, value=b"mine")))
    other = stage.session(of=manifest("plugin:acme/other/default"))
    assert refused(other, "get_binary_storage", parameters.GetStored(key=key)).code == "not_found"
    said_so = {"key": key, "owner_type": "plugin", "owner": IDENTITY}
    with pytest.raises(HostRefusal, match="not found"):
        wire(stage, "get_binary_storage", said_so, identity="acme/other")


def test_history_pages_both_ways_and_leaves_out_what_is_asked_now(make_stage: Make) -> None:
    said = tuple(("user" if place % 2 else "assistant", f"text {place}") for place in range(1, 8))
    stage = make_stage(said=said)
    host = HostApi(stage.session())

    async def go() -> list[Any]:
        first = await host.history.page(limit=3)
        second = await host.history.page(limit=3, before_cursor=first.next_cursor)
        rest = await host.history.page(limit=3, before_cursor=second.next_cursor)
        forward = await host.history.page(
            limit=2, direction="forward", after_cursor=rest.items[-1].cursor
        )
        return [[one.content for one in page.items] for page in (first, second, rest, forward)] + [
            first.has_more,
            rest.has_more,
            rest.next_cursor,
        ]

    assert run(go()) == [
        ["text 7", "text 6", "text 5"],
        ["text 4", "text 3", "text 2"],
        ["text 1"],
        ["text 2", "text 3"],
        True,
        False,
        None,
    ]


def test_history_is_at_most_a_hundred_and_cut(make_stage: Make) -> None:
    said = tuple(("user", f"{place} " + "x" * 5_000) for place in range(120))
    page = run(HostApi(make_stage(said=said).session()).history.page(limit=1_000))
    assert (len(page.items), page.has_more) == (100, True)
    assert {len(item.content or "") for item in page.items} == {4_000}


def test_history_search_finds_text_in_any_script(make_stage: Make) -> None:
    stage = make_stage(
        said=(("user", "怎么练卧推？"), ("assistant", "Bench PRESS, 100% slowly"), ("user", "ok"))
    )
    host = HostApi(stage.session())
    found = [
        [item.content for item in run(host.history.search(query)).items]
        for query in ("卧推", "bench press", "100%", "1__%")
    ]
    assert found == [["怎么练卧推？"], ["Bench PRESS, 100% slowly"], ["Bench PRESS, 100% slowly"], []]


def test_another_conversation_is_refused_also_in_filters(make_stage: Make) -> None:
    stage, other = make_stage(), make_stage(said=(("user", "secret"),))
    theirs = other.thread.pk.hex
    session = stage.session()
    for action, ask in (
        ("history_page", parameters.PageHistory(conversation_id=theirs)),
        (
            "history_search",
            parameters.SearchHistory(query="secret", filters={"conversation_id": theirs}),
        ),
        ("event_page", parameters.PageEvents(conversation_id=theirs)),
    ):
        problem = refused(session, action, ask)
        assert problem.message == f"Conversation {theirs} is not accessible by this run"
    with pytest.raises(HostRefusal, match="is not accessible"):
        wire(stage, "history_page", {"conversation_id": theirs})
    nowhere = stage.session(thread_id=None)
    assert refused(nowhere, "history_page", parameters.PageHistory()).message == (
        "History page is not available without a run conversation"
    )


def test_each_permission_of_the_manifest_is_needed(make_stage: Make) -> None:
    bare = make_stage().session(of=manifest(permissions=Permissions()))
    said = {
        action: refused(bare, action, ask).message
        for action, ask in {
            "history_page": parameters.PageHistory(),
            "history_search": parameters.SearchHistory(query="x"),
            "event_get": parameters.GetEvent("x-1"),
            "event_page": parameters.PageEvents(),
            "artifact_metadata": parameters.GetArtifact("x"),
            "artifact_read": parameters.ReadArtifact(artifact_id="x"),
            "invoke_llm": parameters.InvokeModel(llm_model_uuid="m", messages=[]),
            "call_tool": parameters.CallTool(tool_name="t"),
            "retrieve_knowledge_base": parameters.Retrieve(kb_id="k", query_text="x"),
            "get_config_file": parameters.GetFile("f"),
            "request_action": parameters.RequestAction(action="thread.rename"),
        }.items()
    }
    assert said == {
        "history_page": "History page access not authorized",
        "history_search": "History search access not authorized",
        "event_get": "Event get access not authorized",
        "event_page": "Event page access not authorized",
        "artifact_metadata": "Artifact metadata access not authorized",
        "artifact_read": "Artifact read access not authorized",
        "invoke_llm": "model m is not authorized for this agent run",
        "call_tool": "tool t is not authorized for this agent run",
        "retrieve_knowledge_base": "knowledge_base k is not authorized for this agent run",
        "get_config_file": "file f is not authorized for this agent run",
        "request_action": "action thread.rename is not authorized for this agent run",
    }


def test_an_operation_that_is_not_granted_is_refused(make_stage: Make) -> None:
    only_invoke = AgentResources(models=(ModelResource("global:m", operations=("invoke",)),))
    session = make_stage().session(resources=only_invoke)

    async def go() -> None:
        async for _ in session.stream(
            "invoke_llm_stream", parameters.InvokeModel(llm_model_uuid="global:m", messages=[])
        ):
            raise AssertionError("a piece came")

    with pytest.raises(HostRefusal, match="for operation stream"):
        run(go())


def test_tools_are_described_and_called(make_stage: Make) -> None:
    session = make_stage().session(tools=(DOUBLE,))
    host = HostApi(session)
    assert run(host.tools.get_detail("math.double")).parameters == DOUBLE.parameters
    assert run(host.tools.call("math.double", {"n": 4})) == {"twice": 8}
    wrong = refused(
        session, "call_tool", parameters.CallTool(tool_name="math.double", parameters={"n": "x"})
    )
    assert (wrong.code, wrong.details["reason"]) == ("invalid_argument", "invalid_arguments")
    large = parameters.CallTool(tool_name="math.double", parameters={"n": 1, "x": "y" * 2**20})
    assert refused(session, "call_tool", large).code == "payload_too_large"


def test_what_a_model_is_asked_with_has_bounds(make_stage: Make) -> None:
    session = make_stage().session(models=(("global:m", "p"),))
    for messages in (
        [Message(role="user", content="x")] * 2_001,
        [Message(role="user", content="x" * (8 * 2**20 + 1))],
    ):
        ask = parameters.InvokeModel(llm_model_uuid="global:m", messages=messages)
        assert refused(session, "invoke_llm", ask).code == "payload_too_large"
    odd = parameters.InvokeModel(
        llm_model_uuid="global:m", messages=[], extra_args={"temperature": "hot"}
    )
    assert refused(session, "invoke_llm", odd).code == "invalid_argument"


def test_a_tool_outside_the_bindings_list_does_not_exist_for_the_runner(make_stage: Make) -> None:
    session = make_stage().session(tools=(DOUBLE,), binding=replace(GENEROUS, tools=("other",)))
    assert session.scene.resources.tools == ()
    assert (
        refused(session, "call_tool", parameters.CallTool(tool_name="math.double")).code
        == "unauthorized"
    )


def test_a_tool_that_needs_approval_is_not_called_for_who_cannot_wait(make_stage: Make) -> None:
    session = make_stage().session(tools=(replace_tool(DOUBLE),))
    ask = parameters.CallTool(tool_name="math.double", parameters={"n": 1}, may_wait=False)
    problem = refused(session, "call_tool", ask)
    assert (problem.code, problem.details["reason"]) == ("unauthorized", "approval_required")


def replace_tool(tool: Tool) -> Tool:
    import dataclasses

    return dataclasses.replace(tool, requires_approval=True)


def test_a_run_id_that_is_absent_unknown_stale_or_anothers_opens_nothing(make_stage: Make) -> None:
    stage, theirs = make_stage(), make_stage()
    stage.session()
    stale = theirs.session()
    gateway.unregister(stale)
    payload = {"scope": "actor", "key": "k"}
    said = []
    for run_id, identity in (
        (None, IDENTITY),
        (uuid4().hex, IDENTITY),
        (theirs.run.pk.hex, IDENTITY),
        (stage.run.pk.hex, "evil/plugin"),
        (stage.run.pk.hex, None),
    ):
        with pytest.raises(HostRefusal) as caught:
            run(gateway.call("state_get", payload, run_id=run_id, identity=identity))
        said.append((caught.value.code, caught.value.message.split(stage.run.pk.hex)[0]))
    assert [code for code, _ in said] == ["unauthorized"] * 5
    assert said[0][1] == "run_id is required"
    assert said[1][1].endswith("not found or expired")
    assert said[3][1] == "Plugin identity mismatch for run_id "
    assert said[4][1] == "caller_plugin_identity is required for run_id "
    assert refused(stale, "state_get", parameters.GetState("actor", "k")).message.endswith(
        "not found or expired"
    )


@pytest.mark.parametrize(
    ("action", "payload", "message"),
    [
        ("state_get", {"scope": "actor"}, "key is required"),
        ("state_get", {"key": "k"}, "scope is required"),
        ("event_get", {}, "event_id is required"),
        ("artifact_read", {}, "artifact_id is required"),
        ("artifact_read", {"artifact_id": "a", "offset": "x"}, "offset must be an integer"),
        ("artifact_read", {"artifact_id": "a", "offset": -1}, "offset must be >= 0"),
        ("artifact_read", {"artifact_id": "a", "limit": 0}, "limit must be > 0"),
        ("history_page", {"limit": "many"}, "limit must be an integer"),
        ("nope", {}, "Action nope not found"),
        ("invoke_llm_stream", {}, "Action invoke_llm_stream not found"),
    ],
)
def test_wrong_arguments_of_a_wire_are_named(
    make_stage: Make, action: str, payload: dict[str, Any], message: str
) -> None:
    stage = make_stage()
    stage.session()
    with pytest.raises(HostRefusal) as caught:
        wire(stage, action, payload)
    assert (caught.value.code, caught.value.message) == ("invalid_argument", message)
    assert ("invalid_argument" in dict(audited(stage.run.pk)).values()) is True


def test_bytes_are_base64_on_a_wire(make_stage: Make) -> None:
    stage = make_stage()
    stage.session()
    key = uuid4().hex
    assert (
        wire(stage, "set_binary_storage", {"key": key, "value_base64": "AP8=", "owner_type": "plugin"})
        == {}
    )
    assert wire(stage, "get_binary_storage", {"key": key, "owner_type": "plugin"}) == {
        "value_base64": "AP8="
    }


def test_a_call_after_the_deadline_or_too_often_is_refused(make_stage: Make) -> None:
    stage = make_stage()
    late = stage.session(seconds=-1)
    assert refused(late, "get_prompt", parameters.GetPrompt()).code == "deadline_exceeded"
    hasty = stage.session(binding=replace(GENEROUS, calls_per_minute=1))

    async def hurry() -> None:
        for _ in range(20):
            await hasty.call("get_prompt", parameters.GetPrompt())
        await hasty.call("get_prompt", parameters.GetPrompt())

    with pytest.raises(HostRefusal) as caught:
        run(hurry())
    assert (caught.value.code, caught.value.retryable) == ("rate_limited", True)
    assert audited(stage.run.pk).count(("get_prompt", "ok")) == 20


def test_a_call_ends_with_the_runs_deadline(make_stage: Make) -> None:
    async def slow(arguments: dict[str, Any]) -> dict[str, Any]:
        await asyncio.sleep(30)
        return {}

    import dataclasses

    tool = dataclasses.replace(DOUBLE, name="slow", call=slow, timeout_s=60)
    session = make_stage().session(tools=(tool,), seconds=0.3)
    problem = refused(session, "call_tool", parameters.CallTool(tool_name="slow", parameters={"n": 1}))
    assert problem.code == "deadline_exceeded"


def test_what_was_granted_stays_as_it_was_when_the_run_began(make_stage: Make) -> None:
    base = Base(uuid4(), "handbook")
    session = make_stage().session(bases=(base,), binding=Binding(id=3, knowledge_bases=("handbook",)))
    (granted,) = session.scene.resources.knowledge_bases
    assert granted.kb_id == base.id.hex
    with pytest.raises(AttributeError):
        session.scene.resources.models = ()  # type: ignore[misc]
    other = parameters.Retrieve(kb_id=uuid4().hex, query_text="x")
    assert refused(session, "retrieve_knowledge_base", other).code == "unauthorized"
    gone = parameters.Retrieve(kb_id=base.id.hex, query_text="x")
    assert refused(session, "retrieve_knowledge_base", gone).code == "not_found"
