"""Whole runs in the real runtime: what a plugin may ask of the Host, and what a hostile one may not."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from io import BytesIO
from typing import Any
from uuid import uuid4

import pytest
from PIL import Image

from agents.host import run_input
from agents.host.actions import knowledge
from agents.knowledge.writing import store_chunks
from agents.models import KnowledgeBase, KnowledgeDocument, PluginRuntime
from conversations.models import Message
from tests.agents.runtimes.plugins.bound import audited, bound, done, said
from tests.agents.runtimes.plugins.runs import found, wait_for
from tests.agents.runtimes.plugins.runtime_home import ALL, RuntimeHome, install
from tests.conftest import Server
from tests.support.client import Client, ScriptedModel, reply
from tests.support.fakes.fake_embeddings import embeddings_server
from tests.support.fakes.mcp_host import wait_until
from tests.support.host.careful_tool import CAREFUL, approve, offer_a_careful_tool
from tests.support.host.told_history import STORY, TOLD, chat
from tests.support.pictures import picture

PROBE = "plugin:parley/asker/default"
HOSTILE = "plugin:parley/hostile/default"
GRANTS: dict[str, Any] = {"tools": ["gymbro.exercise.search"], "storage": ["plugin", "workspace"]}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RuntimeHome]:
    """A runtime with a plugin that may ask for everything, and one that may ask for nothing."""
    home = RuntimeHome(tmp_path_factory.mktemp("runtime"))
    install(home.home, "asker", ALL)
    install(home.home, "hostile", {})
    home.start()
    yield home
    home.stop()


@pytest.fixture(scope="module", autouse=True)
def row(server: Server, home: RuntimeHome, enter_runtime: Callable[..., PluginRuntime]) -> PluginRuntime:
    """Both are there."""
    row = enter_runtime(url=home.url, profile="released")
    wait_for(server, PROBE)
    wait_for(server, HOSTILE)
    return row


@pytest.fixture
def base() -> Iterator[KnowledgeBase]:
    base = KnowledgeBase.objects.create(name=f"kb-{uuid4().hex[:8]}")
    text = "Parley keeps every run in one log.\n\n卧推主要训练胸大肌。"
    document = KnowledgeDocument.objects.create(base=base, name="facts.txt", text=text)
    store_chunks(document)
    knowledge.bases_in_use.clear()
    yield base
    base.delete()


def test_a_run_streams_into_the_log_and_the_history(client: Client) -> None:
    with bound(client, PROBE):
        run_id, answer, detail = said(client, json.dumps([["say", "Hel", "lo ", "世界"]]))
    assert detail["status"] == "completed"
    assert answer == "Hello 世界\n\n[]"  # the probe's whole message replaces what its deltas said
    stored = Message.objects.filter(run_id=run_id, role="assistant").values_list("content", flat=True)
    assert list(stored) == ["[]"]


def test_the_real_sdk_reads_our_times(client: Client) -> None:
    """`datetime.fromtimestamp(ctx.event.event_time)` is what a plugin does with them."""
    with bound(client, PROBE):
        earlier = client.start("before")
        client.wait_for(earlier["run_id"], "completed")
        _, (told, history, events) = done(
            client,
            ["context"],
            ["api", "history_page", []],
            ["api", "event_page", []],
            conversation_id=earlier["conversation_id"],
        )
    times = [told["ok"]["trigger"]["timestamp"], told["ok"]["event"]["event_time"]]
    times += [one["created_at"] for one in history["ok"]["items"]]
    times += [one["event_time"] for one in events["ok"]["items"]]
    ages = [time.time() - datetime.fromtimestamp(one, UTC).timestamp() for one in times]
    assert len(ages) > 4
    assert -1 < min(ages) <= max(ages) < 60


def test_the_real_sdk_is_told_what_a_client_sends_with_its_question(client: Client) -> None:
    steps = [["context"], ["api", "history_page", []]]
    with bound(client, PROBE):
        answer = chat(client, [*STORY[:-1], {"role": "user", "content": json.dumps(steps)}])
    context, page = json.loads(answer.json()["choices"][0]["message"]["content"])
    assert context["ok"]["adapter"]["extra"]["system"] == ["Talk like a pirate."]
    items = page["ok"]["items"]
    told = [(one["role"], one["item_type"], one["content"]) for one in reversed(items)]
    assert told == [one[:3] for one in TOLD]
    assert [one["content_json"]["role"] for one in items if one["content_json"]] == ["tool", "assistant"]


def test_a_plugin_is_given_the_images_and_texts_of_its_message(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As LangBot's Host gives them; what does not fit the wire can be had by URL."""
    image = picture("PNG", (16, 12))
    steps = json.dumps([["context"]])

    def told() -> list[dict[str, Any]]:
        as_url = f"data:image/png;base64,{base64.b64encode(image).decode()}"
        parts = [
            {"type": "input_image", "image_url": as_url},
            {"type": "input_text", "text": steps},
            {"type": "input_file", "file_data": "YSxiCg==", "filename": "a.csv"},
        ]
        body = {"model": "demo", "input": [{"role": "user", "content": parts}]}
        with bound(client, PROBE):
            answer = client.http.post("/v1/responses", json=body).json()
        (context,) = json.loads(answer["output"][-1]["content"][0]["text"])
        asked: dict[str, Any] = context["ok"]["input"]
        kinds = [(one["type"], one["mime_type"], one["name"]) for one in asked["attachments"]]
        assert kinds[1] == ("file", "text/plain", "a.csv")
        assert kinds[0][:2] == ("image", "image/png")
        contents: list[dict[str, Any]] = asked["contents"]
        return contents

    shown, words, text_file = told()
    assert (words["type"], words["text"]) == ("text", steps)
    head, _, data = shown["image_base64"].partition(",")
    assert (shown["type"], head) == ("image_base64", "data:image/png;base64")
    with Image.open(BytesIO(base64.b64decode(data))) as seen:
        assert seen.size == (16, 12)
    assert (text_file["type"], text_file["file_name"]) == ("file_base64", "a.csv")
    assert text_file["file_base64"] == "data:text/plain;base64,YSxiCg=="

    monkeypatch.setattr(run_input, "LARGEST_INLINE", 64)
    shown, _, text_file = told()
    assert (shown["type"], text_file["type"]) == ("image_url", "file_base64"), "the text still fits"
    url = shown["image_url"]["url"]
    assert client.http.get(url[url.index("/storage/") :]).status_code == 200


def test_models_are_asked_whole_and_streamed(
    client: Client, scripted: Callable[..., ScriptedModel]
) -> None:
    model = scripted("hello").name
    with bound(client, PROBE):
        run_id, (whole, streamed) = done(
            client, ["ask", model, "Say it."], ["stream", model, "Say it."], model=model
        )
    assert whole["ok"]["role"] == "assistant"
    assert "".join(part for part in _texts(whole["ok"]["content"])) == streamed["ok"]
    assert streamed["ok"].startswith("Hello, world.")
    assert audited(run_id, 2) == [("invoke_llm", "ok"), ("invoke_llm_stream", "ok")]


def test_texts_are_embedded_by_a_granted_model(client: Client) -> None:
    with embeddings_server() as served:
        name = ScriptedModel.make(served.base_url, ("plain",)).name
        with bound(client, PROBE, further_models=[name]):
            _, (answer,) = done(client, ["api", "invoke_embedding", [name, ["sleep", "press"]]])
    assert answer["ok"] == [[1.0, 0.0], [0.0, 1.0]]


def test_tools_knowledge_history_state_and_storage(client: Client, base: KnowledgeBase) -> None:
    tool = "gymbro.exercise.search"
    with bound(client, PROBE, knowledge_bases=[base.name], **GRANTS):
        earlier = client.start("what was said before")
        client.watch(earlier["run_id"])
        run_id, found = done(
            client,
            ["api", "get_tool_detail", [tool]],
            ["api", "call_tool", [tool, {"query": "chest", "top_k": 2}]],
            ["api", "retrieve_knowledge", [base.pk.hex, "Which log?"]],
            ["api", "history_page", [], {"limit": 5}],
            ["api", "state_set", ["conversation", "k", {"a": [1]}]],
            ["api", "state_get", ["conversation", "k"]],
            ["api", "state_list", ["conversation"]],
            ["api", "state_delete", ["conversation", "k"]],
            ["store", "blob", "bytes 字节"],
            ["api", "get_plugin_storage", ["blob"]],
            ["api", "get_plugin_storage_keys", []],
            ["api", "delete_plugin_storage", ["blob"]],
            ["api", "event_page", [], {"limit": 5}],
            conversation_id=earlier["conversation_id"],
        )
    assert [one for one in found if "error" in one] == []
    detail, called, retrieved, history, *_ = [one["ok"] for one in found]
    assert detail["name"] == tool
    assert called["results"]
    assert "one log" in json.dumps(retrieved)
    assert "what was said before" in [item["content"] for item in history["items"]]
    assert found[5]["ok"]["value"] == {"a": [1]}
    assert found[6]["ok"]["keys"] == ["k"]
    assert found[9]["ok"] == "bytes 字节"
    assert found[10]["ok"] == ["blob"]
    assert {result for _, result in audited(run_id, len(found))} == {"ok"}


def test_state_said_as_a_result_is_there_in_the_next_run(client: Client) -> None:
    with bound(client, PROBE):
        update = {"scope": "actor", "key": "tone", "value": "calm"}
        done(client, ["result", "state.updated", update])
        _, (found,) = done(client, ["api", "state_get", ["actor", "tone"]])
    assert found["ok"]["value"] == "calm"


def test_results_of_no_known_type_are_ignored_and_broken_ones_fail_the_run(client: Client) -> None:
    with bound(client, PROBE):
        _, answers = done(client, ["result", "strange.thing", {"a": 1}])
        assert answers == []
        _, _, detail = said(client, json.dumps([["result", "message.delta", {"chunk": 7}]]))
    assert detail["status"] == "failed"


def test_what_is_not_granted_is_refused(client: Client, base: KnowledgeBase) -> None:
    """`raw` goes round the SDK's checks: what refuses here is the Host."""
    with bound(client, PROBE, own_model=False, state_enabled=False):
        run_id, found = done(
            client,
            ["raw", "invoke_llm", {"llm_model_uuid": "global:demo", "messages": []}],
            ["raw", "invoke_rerank", {"rerank_model_uuid": "x", "query": "q", "documents": []}],
            ["raw", "call_tool", {"tool_name": "web_search.exa", "parameters": {}}],
            ["raw", "get_tool_detail", {"tool_name": "web_search.exa"}],
            ["raw", "retrieve_knowledge_base", {"kb_id": base.pk.hex, "query_text": "q"}],
            ["raw", "set_plugin_storage", {"key": "k", "value_size": 1}],
            ["raw", "get_workspace_storage", {"key": "k"}],
            ["raw", "state_set", {"scope": "conversation", "key": "k", "value": 1}],
            ["raw", "history_page", {"conversation_id": uuid4().hex}],
        )
    assert [one.get("ok") for one in found] == [None] * len(found)
    assert all("unauthorized" in one["error"] for one in found), found
    results = audited(run_id, len(found))
    assert len(results) == len(found)
    assert {result for _, result in results} == {"unauthorized"}


def test_a_plugin_without_permissions_gets_nothing(client: Client) -> None:
    with bound(client, HOSTILE, **GRANTS):
        _, found = done(
            client,
            ["raw", "history_page", {}],
            ["raw", "event_page", {}],
            ["raw", "invoke_llm", {"llm_model_uuid": "global:demo", "messages": []}],
            ["raw", "call_tool", {"tool_name": "gymbro.exercise.search", "parameters": {}}],
            ["raw", "set_plugin_storage", {"key": "k", "value_size": 1}],
        )
    assert all("unauthorized" in one["error"] for one in found), found


def test_another_plugins_run_is_closed_to_a_plugin(
    make_client: Callable[..., Client], base: KnowledgeBase
) -> None:
    """The hostile plugin knows the id of a run that is on now, and whose it is; it gets nowhere."""
    victim, attacker = make_client(), make_client()
    grants = GRANTS | {"knowledge_bases": [base.name]}
    with bound(victim, PROBE, **grants), bound(attacker, HOSTILE, **grants):
        run_id = victim.start(json.dumps([["say", "on it"], ["sleep", 20]]))["run_id"]
        victim.watch(run_id, stop_after=3)
        claimed = {"run_id": run_id, "caller_plugin_identity": "parley/asker"}
        _, found = done(
            attacker,
            ["raw", "history_page", claimed],
            ["raw", "state_get", claimed | {"scope": "actor", "key": "k"}],
            ["raw", "call_tool", claimed | {"tool_name": "gymbro.exercise.search", "parameters": {}}],
            ["raw", "retrieve_knowledge_base", claimed | {"kb_id": base.pk.hex, "query_text": "q"}],
            ["raw", "get_workspace_storage", claimed | {"key": "k"}],
            ["raw", "invoke_llm_stream", claimed | {"llm_model_uuid": "global:demo", "messages": []}],
        )
        victim.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
        assert victim.wait_for(run_id, "failed", "cancelled")["error"]["code"] == "cancelled"
    assert all("mismatch" in one["error"] for one in found), found
    assert ("history_page", "unauthorized") in audited(run_id, len(found))


def test_an_ended_run_opens_nothing(make_client: Callable[..., Client]) -> None:
    client = make_client()
    with bound(client, PROBE, **GRANTS):
        ended, _, _ = said(client, "short")
        asked = {"run_id": ended, "scope": "actor", "key": "k"}
        _, (found,) = done(client, ["raw", "state_get", asked])
    assert "not found or expired" in found["error"]


def test_values_that_are_too_large_are_refused(client: Client) -> None:
    with bound(client, PROBE, **GRANTS):
        _, found = done(
            client,
            ["raw", "state_set", {"scope": "actor", "key": "k", "state_size": 300_000}],
            ["raw", "state_get", {"scope": "galaxy", "key": "k"}],
            ["raw", "state_get", {"key": "k"}],
        )
    large_state, scope, missing = [one["error"] for one in found]
    assert "payload_too_large" in large_state
    assert "scope must be one of" in scope
    assert "scope is required" in missing


def test_a_plugin_sees_no_secret_of_ours(client: Client) -> None:
    with bound(client, PROBE):
        _, (environment,) = done(client, ["environment"])
    assert not {"DATABASE_URL", "SECRET_KEY", "SEALING_KEYS", "JWT_SECRET"} & set(environment["ok"])


def test_a_deadline_and_a_cancelled_run_end_as_they_should(client: Client) -> None:
    with bound(client, PROBE, deadline_s=1):
        _, _, late = said(client, json.dumps([["sleep", 60]]))
    assert late["error"]["code"] in ("runner.timeout", "deadline_exceeded")
    with bound(client, PROBE):
        run_id = client.start(json.dumps([["say", "a"], ["sleep", 60]]))["run_id"]
        client.watch(run_id, stop_after=3)
        client.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
        assert client.wait_for(run_id, "failed", "cancelled")["error"]["code"] == "cancelled"


def test_a_call_that_needs_approval_stops_the_run_and_the_next_one_is_told(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = offer_a_careful_tool(monkeypatch)
    steps = [["say", "Let me ask. "], ["api", "call_tool", [CAREFUL, {"to": "ann"}]], ["say", "never"]]
    with bound(client, PROBE, tools=[CAREFUL]):
        run_id, answer, detail = said(client, json.dumps(steps))
        assert (answer, detail["finish_reason"], sent) == ("Let me ask. ", "interrupt", [])
        after = approve(client, detail)
        assert sent == [{"to": "ann"}]
        (outcome,) = json.loads(reply(client.watch(after)))["outcomes"]
    assert outcome["tool_name"] == CAREFUL
    assert json.loads(outcome["content"]) == {"sent_to": "ann"}
    assert audited(run_id, 1) == [("call_tool", "approval_required")]


def test_a_runtime_that_lives_on_is_found_again(
    server: Server, client: Client, row: PluginRuntime
) -> None:
    """It knows its plugins and their installations from before; so do we."""
    row.is_active = False
    row.save(update_fields=["is_active"])
    wait_until(lambda: found(server, PROBE) is None)
    row.is_active = True
    row.save(update_fields=["is_active"])
    wait_for(server, PROBE)
    with bound(client, PROBE):
        _, (answer,) = done(client, ["api", "state_get", ["actor", "k"]])
    assert answer["ok"]["value"] is None


def _texts(content: Any) -> list[str]:
    return [content] if isinstance(content, str) else [part["text"] for part in content]
