"""The seed's proxy calls (seed 003 §7), each spelled exactly as the seed spells it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from agents.host.actions import artifacts
from agents.host.grants import Base
from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.messages import LLMTool, Message, text_in
from agents.host_protocol.results import ArtifactCreatedData
from agents.knowledge.writing import store_chunks
from agents.models import KnowledgeBase, KnowledgeDocument
from tests.support.client import ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text
from tests.support.host.stage import GENEROUS, Stage, run

pytestmark = pytest.mark.once

Make = Callable[..., Stage]
MESSAGES = [Message(role="user", content="Say it.")]


@pytest.fixture
def model(provider: FakeModel) -> str:
    script = uuid4().hex
    provider.script(text("said"), name=script)
    return ScriptedModel.make(provider.base_url, (f"script:{script}",)).name


def api_of(stage: Stage, model: str = "", **more: Any) -> HostApi:
    return HostApi(stage.session(models=((model, "fake"),) if model else (), **more))


def test_models_are_invoked_and_streamed(make_stage: Make, model: str, provider: FakeModel) -> None:
    api = api_of(make_stage(), model)
    tools = [LLMTool(name="look", description="Looks.", parameters={"type": "object"})]

    async def go() -> list[Any]:
        invoke, stream = api.models.invoke, api.models.stream
        told = [await invoke(model, MESSAGES), await invoke(model, MESSAGES, None, None)]
        told += [await invoke(model, MESSAGES, tools=None, extra_args=None)]
        told += [await invoke(model, MESSAGES, tools, {"temperature": 0.11, "stop": "x", "seed": None})]
        pieces = [one async for one in stream(model, MESSAGES, tools=None, extra_args=None)]
        pieces += [one async for one in stream(model, MESSAGES, tools, {"top_p": 0.5})]
        return [*map(_text, told), "".join(map(_text, pieces))]

    already = len(provider.requests)
    assert run(go()) == ["said"] * 4 + ["saidsaid"]
    bodies = [one.body for one in provider.requests[already:]]
    assert [(one.get("temperature"), one.get("top_p")) for one in bodies] == [
        *[(None, None)] * 3, (0.11, None), (None, None), (None, 0.5),
    ]  # fmt: skip
    assert bodies[3]["stop"] == ["x"]
    assert [[tool["function"]["name"] for tool in one.get("tools") or ()] for one in bodies] == [
        [], [], [], ["look"], [], ["look"],
    ]  # fmt: skip


def _text(said: Any) -> str:
    return text_in(said.content)


def test_an_extra_argument_that_nobody_obeys_is_refused_by_name(make_stage: Make, model: str) -> None:
    api = api_of(make_stage(), model)
    with pytest.raises(HostRefusal) as refused:
        run(api.models.invoke(model, MESSAGES, None, {"temperature": 0.1, "logit_bias": {"1": 2}}))
    assert refused.value.code == "invalid_argument"
    assert refused.value.message.startswith("extra_args: logit_bias is none of temperature, top_p, ")


def test_documents_are_reranked(make_stage: Make, provider: FakeModel) -> None:
    script = uuid4().hex
    provider.script(text('{"scores": [0.1, 0.9, 0.5]}'), name=script)
    model = ScriptedModel.make(provider.base_url, (f"script:{script}",)).name
    api = api_of(make_stage(), model)
    assert [one.index for one in run(api.models.rerank(model, "q", ["a", "b", "c"], 2))] == [1, 2]
    assert len(run(api.models.rerank(model, "q", ["a", "b", "c"], top_k=None))) == 3


def test_knowledge_is_retrieved(make_stage: Make) -> None:
    base = KnowledgeBase.objects.create(name=f"kb-{uuid4().hex[:8]}")
    store_chunks(KnowledgeDocument.objects.create(base=base, name="a.txt", text="Lower the bar."))
    binding = replace(GENEROUS, knowledge_bases=(base.name,))
    api = api_of(make_stage(), bases=(Base(base.id, base.name),), binding=binding)
    kb = base.id.hex
    for found in (
        run(api.knowledge.retrieve(kb, "bar", 5, None)),
        run(api.knowledge.retrieve(kb, "bar")),
    ):
        assert [text_in(one.content) for one in found] == ["Lower the bar."]


def test_history_and_events_are_paged_and_searched(make_stage: Make) -> None:
    said = (("user", "one"), ("assistant", "two"), ("user", "three"))
    api = api_of(make_stage(said=said))
    page = run(api.history.page(None, None, None, 2, "backward", False))
    assert [one.content for one in page.items] == ["three", "two"]
    rest = run(api.history.page(None, page.next_cursor, None, 50, "backward", True))
    assert [one.content for one in rest.items] == ["one"]
    forward = run(api.history.page(None, None, rest.items[0].cursor, 50, "forward"))
    assert [one.content for one in forward.items] == ["two", "three"]
    found = run(api.history.search("three", None, 10))
    assert [one.content for one in found.items] == ["three"]
    assert run(api.events.page(None, 50)).items == ()


def test_artifacts_are_read_in_ranges(make_stage: Make) -> None:
    session = make_stage().session()
    made = run(
        artifacts.store(session.scene, ArtifactCreatedData(artifact_type="file", content=b"0123456789"))
    )
    api = HostApi(session)
    assert run(api.artifacts.metadata(made.artifact_id)).size_bytes == 10
    assert run(api.artifacts.read_range(made.artifact_id, 2, 3)).content == b"234"
    assert (
        run(api.artifacts.read_range(made.artifact_id, offset=0, length=65536)).content == b"0123456789"
    )


def test_state_and_storage_are_kept(make_stage: Make) -> None:
    api, key = api_of(make_stage()), uuid4().hex

    async def go() -> list[Any]:
        await api.state.set("binding", key, [1])
        told: list[Any] = [await api.state.get("binding", key), await api.state.delete("binding", key)]
        await api.storage.set("plugin", key, b"bytes")
        told += [await api.storage.get("plugin", key), list(await api.storage.list("plugin", key))]
        await api.storage.delete("plugin", key)
        return [*told, list(await api.storage.list("plugin", prefix=key))]

    assert run(go()) == [[1], True, b"bytes", [key], []]
    with pytest.raises(HostRefusal, match="A stored value is bytes"):
        run(api.storage.set("plugin", key, "text"))  # type: ignore[arg-type]


def test_a_platform_action_is_requested(make_stage: Make) -> None:
    stage = make_stage()
    taken = run(api_of(stage).platform.request_action("thread.rename", None, {"title": "Legs"}))
    assert (taken.status, bool(taken.approval_id)) == ("pending", True)


@pytest.mark.parametrize("length", [201, 5_000, 500_000])
@pytest.mark.parametrize("call", ["get", "set", "delete", "list"])
def test_a_key_that_is_too_long_is_refused_with_the_limit(
    make_stage: Make, call: str, length: int
) -> None:
    api, key = api_of(make_stage()), "k" * length
    more = ("v",) if call == "set" else ()
    with pytest.raises(HostRefusal) as state:
        run(getattr(api.state, call)("actor", key, *more))
    with pytest.raises(HostRefusal) as stored:
        run(getattr(api.storage, call)("plugin", key * 3, *(b"v" for _ in more)))
    name = "prefix" if call == "list" else "key"
    assert [(one.value.code, one.value.message, one.value.retryable) for one in (state, stored)] == [
        ("invalid_argument", f"{name} has {length} characters; at most 200 are kept", False),
        ("invalid_argument", f"{name} has {3 * length} characters; at most 500 are kept", False),
    ]


@pytest.mark.parametrize("key", ["", "nul \x00", "half \ud800"])
def test_a_key_that_is_no_text_is_refused(make_stage: Make, key: str) -> None:
    api = api_of(make_stage())
    for call in (api.state.get("actor", key), api.storage.get("plugin", key)):
        with pytest.raises(HostRefusal) as refused:
            run(call)
        assert refused.value.code == "invalid_argument"
