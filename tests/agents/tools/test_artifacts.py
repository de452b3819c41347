"""A result too large for a model: kept as a file of the thread, its head told, then read on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from agents.tools import large_results, registry
from agents.tools.base import Tool, ToolContext, ToolFailure, in_context
from config.errors import StorageFull
from conversations import attachments
from conversations.attachments import file_rows
from conversations.models import Attachment, Run
from tests.support.client import Client, ScriptedModel, read_sse
from tests.support.fakes.fake_model import Answer, FakeModel, text, tool_calls

LARGE = {"rows": ["Zeile “x” 行"] * 6_000}
WHOLE = json.dumps(LARGE, ensure_ascii=False, separators=(",", ":"))


@pytest.fixture(autouse=True)
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    async def call(arguments: dict[str, Any]) -> dict[str, Any]:
        return LARGE if arguments.get("large", True) else {"rows": []}

    tool = Tool("test.large", "Much.", {"type": "object"}, call, idempotent=True, timeout_s=5)
    known = {**registry._by_name(), tool.name: tool}
    monkeypatch.setattr(registry, "_by_name", lambda: known)


@pytest.fixture
def talk(
    client: Client, scripted: Callable[..., ScriptedModel], provider: FakeModel
) -> Callable[..., Any]:
    def run(*answers: Answer, thread: str | None = None) -> tuple[Run, list[Any], list[Any]]:
        name = uuid4().hex
        provider.script(*answers, name=name)
        body = {
            "threadId": thread or str(uuid4()),
            "runId": uuid4().hex,
            "messages": [{"id": uuid4().hex, "role": "user", "content": "go"}],
            "forwardedProps": {"model": scripted(f"script:{name}").name},
        }
        run_id = client.http.post("/api/v1/agent/runs", json=body).json()["taskId"]
        with client.http.stream("GET", f"/api/v1/agent/runs/{run_id}/events") as response:
            seen = [frame.data for frame in read_sse(response)]
        asked = [request.body for request in provider.requests_for(f"script:{name}")]
        return Run.objects.get(pk=run_id), seen, asked

    return run


def large_call(call_id: str = "c1") -> Answer:
    return tool_calls((call_id, "test.large", "{}"))


def artifact_of(seen: list[Any]) -> dict[str, Any]:
    (shown,) = [event for event in seen if event["type"] == "ACTIVITY_SNAPSHOT"]
    content: dict[str, Any] = shown["content"]
    return content


def offered(body: dict[str, Any]) -> set[str]:
    return {tool["function"]["name"] for tool in body["tools"]}


def test_a_large_result_is_an_artifact_that_its_owner_downloads(
    client: Client, make_client: Callable[..., Client], talk: Callable[..., Any]
) -> None:
    _, seen, asked = talk(large_call(), text("Much."))
    artifact = artifact_of(seen)
    assert (artifact["mime_type"], artifact["name"]) == ("application/json", "test.large.json")
    assert artifact["size_bytes"] == len(WHOLE.encode())
    told = json.loads(asked[1]["messages"][-1]["content"])
    assert told["head"] == WHOLE[: large_results.LONGEST_HEAD]
    assert artifact["artifact_id"] in told["note"]
    assert len(asked[1]["messages"][-1]["content"]) < 20_000
    path = f"/api/v1/agent/artifacts/{artifact['artifact_id']}"
    found = client.http.get(path).json()
    assert found["size_bytes"] == artifact["size_bytes"]
    response = httpx.get(found["url"].replace("http://127.0.0.1:8000", client.url), trust_env=False)
    assert response.status_code == 200, response.text
    assert (response.text, response.headers["content-type"]) == (WHOLE, "application/json")
    assert make_client().http.get(path).status_code == 404
    for nothing in ("x", uuid4().hex):
        refused = client.http.get(f"/api/v1/agent/artifacts/{nothing}")
        assert (refused.status_code, refused.json()["code"]) == (404, "artifact_not_found")


def test_the_model_reads_on_in_this_run_and_in_a_later_one(talk: Callable[..., Any]) -> None:
    thread = str(uuid4())
    _, seen, asked = talk(large_call(), text("Much."), thread=thread)
    assert "parley_read_artifact" not in offered(asked[0])
    assert "parley_read_artifact" in offered(asked[1])
    artifact_id, offset, read = artifact_of(seen)["artifact_id"], 0, ""
    while True:
        arguments = json.dumps({"artifact_id": artifact_id, "offset": offset, "length": 30_000})
        call = tool_calls((f"r{offset}", "parley_read_artifact", arguments))
        _, _, asked = talk(call, text("Read."), thread=thread)
        assert "parley_read_artifact" in offered(asked[0])
        piece = json.loads(asked[1]["messages"][-1]["content"])
        read += piece["text"]
        offset = piece.get("next_offset")
        if offset is None:
            break
    assert read == WHOLE


def test_an_artifact_goes_with_its_thread_and_stays_until_then(
    client: Client, talk: Callable[..., Any]
) -> None:
    run, seen, _ = talk(large_call(), text("Much."))
    row = Attachment.objects.get(pk=UUID(artifact_of(seen)["artifact_id"]))
    assert row.thread == str(run.thread_id)
    Attachment.objects.filter(pk=row.pk).update(check_at="2020-01-01T00:00:00Z")
    orphans, _ = _run(file_rows.find_orphans(10_000))
    assert row.path not in orphans
    client.http.delete(f"/api/v1/agent/threads/{run.thread_id}")
    assert not Attachment.objects.filter(pk=row.pk).exists()
    path = f"/api/v1/agent/artifacts/{row.pk.hex}"
    assert client.http.get(path).status_code == 404


def test_an_artifact_is_no_image_to_attach(client: Client, talk: Callable[..., Any]) -> None:
    run, seen, _ = talk(large_call(), text("Much."))
    found = client.http.get(f"/api/v1/agent/artifacts/{artifact_of(seen)['artifact_id']}").json()
    block = {"type": "binary", "mimeType": "image/png", "url": found["url"]}
    body = {
        "threadId": str(run.thread_id),
        "runId": uuid4().hex,
        "messages": [{"id": "1", "role": "user", "content": [block]}],
    }
    refused = client.http.post("/api/v1/agent/runs", json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_binary_url")


# --- the rooms below -----------------------------------------------------------------------------

TOOL = Tool("t", "", {}, lambda _: None, idempotent=True, timeout_s=1)  # type: ignore[arg-type,return-value]


@pytest.fixture
def caller(client: Client) -> ToolContext:
    return ToolContext(uuid4(), uuid4(), client.user.pk, "c")


def test_only_the_same_conversation_reads_it(caller: ToolContext) -> None:
    async def read() -> str:
        _, artifact = await large_results.fit_result(TOOL, LARGE, caller)
        assert artifact is not None
        in_context(caller)
        own = await large_results.read_artifact({"artifact_id": artifact.artifact_id, "length": 10})
        assert own["text"] == WHOLE[:10]
        for other in (
            ToolContext(caller.run_id, uuid4(), caller.user_id, "c"),
            ToolContext(caller.run_id, caller.thread_id, uuid4(), "c"),
        ):
            in_context(other)
            with pytest.raises(ToolFailure) as caught:
                await large_results.read_artifact({"artifact_id": artifact.artifact_id})
            assert caught.value.code == "artifact_not_found"
        in_context(caller)
        with pytest.raises(ToolFailure):
            await large_results.read_artifact({"artifact_id": "none"})
        return "done"

    assert _run(read()) == "done"


def test_what_cannot_be_kept_is_told_as_far_as_it_fits(
    caller: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*args: Any, **more: Any) -> Any:
        raise StorageFull

    monkeypatch.setattr(attachments, "store_artifact", full)
    result, artifact = _run(large_results.fit_result(TOOL, LARGE, caller))
    assert artifact is None
    assert (result["head"], "artifact" in result) == (WHOLE[: large_results.LONGEST_HEAD], False)
    monkeypatch.setattr(large_results, "LARGEST", 10)
    assert "too large to be kept" in _run(large_results.fit_result(TOOL, LARGE, caller))[0]["note"]


def test_what_fits_stays_as_it_is(caller: ToolContext) -> None:
    fits = {"text": "练" * 40_000}  # characters count, not bytes
    assert _run(large_results.fit_result(TOOL, fits, caller)) == (fits, None)


def _run(waiting: Any) -> Any:
    from config.database import run_sync

    return run_sync(waiting)
