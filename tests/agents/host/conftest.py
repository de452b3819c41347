"""A run whose session may do everything."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from msgspec.structs import replace

from agents.host.actions import artifacts, files, knowledge
from agents.host.grants import Base
from agents.host_protocol.manifest import FormItem
from agents.host_protocol.results import ArtifactCreatedData
from agents.knowledge import writing
from agents.models import HostBlob, KnowledgeBase, KnowledgeDocument
from conversations import events
from conversations.models import EventBatch
from tests.conftest import Server
from tests.support.client import ScriptedModel
from tests.support.fakes.fake_embeddings import FakeEmbeddings, embeddings_server
from tests.support.fakes.fake_model import FakeModel, text
from tests.support.host.stage import (
    DOUBLE,
    GENEROUS,
    Stage,
    manifest,
    run,
)


@pytest.fixture
def embeddings() -> Iterator[FakeEmbeddings]:
    with embeddings_server() as served:
        yield served


@pytest.fixture
def everything(
    server: Server,
    provider: FakeModel,
    embeddings: FakeEmbeddings,
    make_stage: Callable[..., Stage],
) -> tuple[Stage, dict[str, dict[str, Any]], dict[str, Any]]:
    """A stage, an allowed payload for every action, and what its session needs."""
    stage = make_stage(said=(("user", "bench"), ("assistant", "press")))
    name = uuid4().hex
    provider.script(text('{"scores": [0.2, 0.9]}'), name=name)
    model = ScriptedModel.make(provider.base_url, (f"script:{name}",)).name
    vectors = ScriptedModel.make(embeddings.base_url, ("plain",)).name
    base = KnowledgeBase.objects.create(name=uuid4().hex)
    document = KnowledgeDocument.objects.create(base=base, name="a.md", text="The bench press.")
    writing.store_chunks(document)
    knowledge.bases_in_use.clear()
    key = uuid4().hex
    HostBlob.objects.create(area="workspace", holder=files.HOLDER, key=key, content=b"x", size=1)
    declared = manifest(config_schema=(FormItem("file", "file"),))
    binding = replace(
        GENEROUS, config={"file": {"file_key": key}}, knowledge_bases=(base.name,), calls_per_minute=0
    )
    needs: dict[str, Any] = {
        "of": declared,
        "binding": binding,
        "tools": (DOUBLE,),
        "models": ((model, "fake"), (vectors, "fake")),
        "bases": (Base(base.pk, base.name),),
    }
    scene = stage.session(**needs).scene
    made = run(artifacts.store(scene, ArtifactCreatedData(artifact_type="file", content=b"x")))
    log = events.encode([events.RunEvent(1, 1, events.RunQueued(0))]).decode()
    EventBatch.objects.create(run_id=stage.run.pk, first_seq=1, last_seq=1, events=log)
    return stage, _payloads(stage, model, vectors, base.pk, key, made.artifact_id), needs


def _payloads(
    stage: Stage, model: str, vectors: str, base_id: UUID, file_key: str, artifact_id: str
) -> dict[str, dict[str, Any]]:
    messages = [{"role": "user", "content": "hi"}]
    state = {"scope": "actor", "key": "k"}
    stored = {"key": "table", "owner_type": "plugin"}
    asked = {"llm_model_uuid": model, "messages": messages}
    return {
        "invoke_llm": asked,
        "invoke_llm_stream": asked,
        "invoke_rerank": {"rerank_model_uuid": model, "query": "q", "documents": ["a", "b"]},
        "invoke_embedding": {"embedding_model_uuid": vectors, "texts": ["a", "b"]},
        "count_tokens": asked,
        "get_tool_detail": {"tool_name": "math.double"},
        "call_tool": {"tool_name": "math.double", "parameters": {"n": 2}},
        "retrieve_knowledge_base": {"kb_id": base_id.hex, "query_text": "bench"},
        "history_page": {},
        "history_search": {"query": "bench"},
        "event_get": {"event_id": f"{stage.run.pk.hex}-1"},
        "event_page": {},
        "artifact_metadata": {"artifact_id": artifact_id},
        "artifact_read": {"artifact_id": artifact_id},
        "artifact_stream": {"artifact_id": artifact_id},
        "state_set": state | {"value": 1},
        "state_get": state,
        "state_list": {"scope": "actor"},
        "state_delete": state,
        "set_binary_storage": stored | {"value_base64": base64.b64encode(b"x").decode()},
        "get_binary_storage": stored,
        "get_binary_storage_keys": {"owner_type": "plugin"},
        "delete_binary_storage": stored,
        "get_config_file": {"file_key": file_key},
        "request_action": {"action": "thread.rename", "payload": {"title": "x"}},
        "run_append_result": {
            "target_run_id": stage.run.pk.hex,
            "result": {"run_id": stage.run.pk.hex, "type": "processor.log", "data": {"text": "x"}},
        },
        "get_prompt": {},
        "get_langbot_version": {},
    }
