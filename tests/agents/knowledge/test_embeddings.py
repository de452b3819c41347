"""Embeddings and reranking against real sockets: what is asked, what is understood, what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest

from agents.host_protocol.errors import HostRefusal
from agents.host_protocol.host_api import HostApi
from agents.host_protocol.messages import text_in
from agents.knowledge import embeddings, writing
from tests.agents.knowledge.bases import GUIDE, host_of, stored
from tests.support.client import ScriptedModel
from tests.support.fakes.fake_embeddings import FakeEmbeddings, embeddings_server
from tests.support.fakes.fake_model import FakeModel, status, text
from tests.support.host.stage import Stage, audited, manifest, run

pytestmark = pytest.mark.once

Make = Callable[..., Stage]


@pytest.fixture(scope="module")
def vectors() -> Iterator[FakeEmbeddings]:
    with embeddings_server() as served:
        yield served


def host_with(stage: Stage, model: str) -> HostApi:
    return HostApi(stage.session(of=manifest(), models=((model, "fake"),)))


def refusal(work: Any) -> HostRefusal:
    with pytest.raises(HostRefusal) as refused:
        run(work)
    return refused.value


@pytest.mark.parametrize("model", ["plain", "mixed"])
def test_each_text_has_its_vector_in_order(
    make_stage: Make, vectors: FakeEmbeddings, model: str
) -> None:
    name = ScriptedModel.make(vectors.base_url, (model,)).name
    stage = make_stage()
    found = run(host_with(stage, name).models.embed(name, ["sleep well", "bench", "sleep"]))
    assert list(found) == [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    path, authorization, body = vectors.asked[-1]
    assert (path, body["model"], len(body["input"])) == ("/v1/embeddings", model, 3)
    assert authorization == "Bearer sk-test-key-of-the-suite-0123456789"
    assert audited(stage.run.pk) == [("invoke_embedding", "ok")]


def test_many_texts_are_asked_for_in_parts(make_stage: Make, vectors: FakeEmbeddings) -> None:
    name = ScriptedModel.make(vectors.base_url, ("plain",)).name
    before = len(vectors.asked)
    found = run(host_with(make_stage(), name).models.embed(name, ["sleep"] * 130))
    assert len(found) == 130
    assert [len(body["input"]) for _, _, body in vectors.asked[before:]] == [64, 64, 2]


@pytest.mark.parametrize("model", ["status-500", "status-401", "short", "rubbish"])
def test_a_server_that_misbehaves_is_a_refusal_without_its_words(
    make_stage: Make, vectors: FakeEmbeddings, model: str
) -> None:
    name = ScriptedModel.make(vectors.base_url, (model,)).name
    problem = refusal(host_with(make_stage(), name).models.embed(name, ["a", "b"]))
    assert (problem.code, problem.retryable) == ("runtime_error", True)
    assert problem.message == "The model gives no embeddings now."


def test_too_much_and_other_models_are_refused(make_stage: Make, vectors: FakeEmbeddings) -> None:
    name = ScriptedModel.make(vectors.base_url, ("plain",)).name
    host = host_with(make_stage(), name)
    assert refusal(host.models.embed(name, ["x"] * 513)).code == "payload_too_large"
    assert refusal(host.models.embed(name, ["x" * 2**20, "y"])).code == "payload_too_large"
    assert refusal(host.models.embed("global:other", ["x"])).code == "unauthorized"


def test_a_base_is_found_by_meaning_with_vectors_from_a_server(
    make_stage: Make, vectors: FakeEmbeddings
) -> None:
    if not writing.enable_pgvector():
        pytest.skip("this PostgreSQL has no pgvector")
    embeddings.has_pgvector.clear()
    name = ScriptedModel.make(vectors.base_url, ("plain",)).name
    base = stored(GUIDE, embedding_model=name)
    host = host_of(make_stage(), base)
    found = run(host.knowledge.retrieve(base.pk.hex, "sleepiness, please"))
    assert "Sleep eight hours" in text_in(found[0].content)
    assert vectors.asked[-1][2]["input"] == ["sleepiness, please"]


def test_a_base_whose_model_is_gone_is_still_found_by_words(
    make_stage: Make, vectors: FakeEmbeddings
) -> None:
    name = ScriptedModel.make(vectors.base_url, ("status-500",)).name
    base = stored(GUIDE, embedding_model=name)
    found = run(host_of(make_stage(), base).knowledge.retrieve(base.pk.hex, "bench press"))
    assert "Lower the bar" in text_in(found[0].content)


def test_documents_are_ranked_by_the_scores_that_a_model_gives(
    make_stage: Make, provider: FakeModel
) -> None:
    script = uuid4().hex
    provider.script(text('Here: {"scores": [0.1, 0.9, 2]}'), name=script)
    name = ScriptedModel.make(provider.base_url, (f"script:{script}",)).name
    host = host_with(make_stage(), name)
    ranked = run(host.models.rerank(name, "q", ["a", "b", "c"], top_k=2))
    assert [(one.index, one.relevance_score) for one in ranked] == [(2, 1.0), (1, 0.9)]
    assert run(host.models.rerank(name, "q", [])) == ()


@pytest.mark.parametrize("said", [text("no JSON"), text('{"scores": [1]}'), status(401)])
def test_a_model_that_does_not_rank_is_a_refusal(
    make_stage: Make, provider: FakeModel, said: Any
) -> None:
    script = uuid4().hex
    provider.script(said, name=script)
    name = ScriptedModel.make(provider.base_url, (f"script:{script}",)).name
    problem = refusal(host_with(make_stage(), name).models.rerank(name, "q", ["a", "b"]))
    assert problem.code == "runtime_error"
