"""The first reader of a run, mostly who started it, is served from memory and misses nothing."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from math import inf
from typing import Any
from uuid import UUID, uuid4

import msgspec
import pytest

from config.database import run_sync
from config.http.asgi_handlers import HotHandler
from conversations.log import event_log, follow
from conversations.runs import acceptance, client_queries, recent_starts
from tests.support.client import Client, ScriptedModel, Seen, read_sse

pytestmark = pytest.mark.once

QUESTION = {"role": "user", "content": "chest"}
BODIES: dict[str, dict[str, Any]] = {
    "text": {"model": "demo", "text": "chest", "metadata": {"a": [1, None]}},
    "run-agent-input": {
        "threadId": "thread",
        "runId": "run",
        "messages": [{"id": "m", **QUESTION}],
        "tools": [],
        "context": [],
        "state": {"a": 1},
        "forwardedProps": {"model": "demo"},
    },
    "agent-api": {
        "model": "demo",
        "session_id": "s",
        "input": [{"role": "user", "content": [{"type": "text", "text": "chest"}]}],
    },
}


def begin(client: Client, dialect: str) -> str:
    body = BODIES[dialect]
    if dialect == "run-agent-input":
        body = body | {"threadId": str(uuid4()), "runId": uuid4().hex}
    if dialect == "agent-api":
        task = client.http.post("/process/task", json=body | {"session_id": uuid4().hex})
        return str(task.json()["task_id"])
    accepted = client.http.post("/api/v1/agent/runs", json=body).json()
    return str(accepted.get("run_id") or accepted["taskId"])


def nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a statement for what memory has")

    monkeypatch.setattr(client_queries, "fetch_run", refuse)
    monkeypatch.setattr(event_log, "read", refuse)


def both(client: Client, run_id: str) -> tuple[list[Seen], list[Seen]]:
    return client.watch(run_id), client.watch(run_id)


@pytest.mark.parametrize("dialect", BODIES)
def test_the_head_in_memory_is_the_stored_one(client: Client, dialect: str) -> None:
    run_id = begin(client, dialect)
    kept = recent_starts.recall(run_id, user_id=client.user.pk)
    stored = run_sync(client_queries.fetch_run(run_id, user_id=client.user.pk))
    assert kept is not None
    assert kept == msgspec.structs.replace(stored, status="queued")


def test_the_first_reader_needs_no_statement_and_the_next_sees_the_same(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = client.start()["run_id"]
    with monkeypatch.context() as patched:
        nothing_is_read(patched)
        first = client.watch(run_id)
    assert first == client.watch(run_id)
    assert first[-1].event == "completed"


def test_a_first_reader_that_comes_after_the_end_gets_it_all(client: Client) -> None:
    run_id = client.start()["run_id"]
    client.wait_for(run_id, "completed")
    first, second = both(client, run_id)
    assert first == second


def test_a_run_that_says_more_than_is_kept_is_read_from_the_log(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow, "_ROOM_EXPECTED", 100)
    run_id = client.start("demo.think demo.card: leg day")["run_id"]
    client.wait_for(run_id, "completed")
    first, second = both(client, run_id)
    assert first == second


@pytest.mark.parametrize("insert", ["insert_in_new_thread", "insert_run"])
def test_a_run_whose_writing_takes_long_is_not_taken_for_a_deleted_one(
    client: Client, monkeypatch: pytest.MonkeyPatch, insert: str
) -> None:
    """The hub looks for silent runs meanwhile, and this one has no log yet."""
    write, looks = getattr(acceptance, insert), []

    async def write_late(*arguments: Any) -> Any:
        hub = follow.hub()
        for feed in hub._feeds.values():
            feed.heard_at = -inf
        looks.append(len(hub._feeds))
        await hub._check_silent_runs()
        return await write(*arguments)

    monkeypatch.setattr(acceptance, insert, write_late)
    body = {"model": "demo", "text": "leg day"}
    if insert == "insert_run":
        body["conversation_id"] = str(uuid4())
    accepted = client.http.post("/api/v1/agent/runs", json=body).json()
    first, second = both(client, accepted["run_id"])
    assert any(looks)
    assert first == second
    assert first[-1].event == "completed"


def test_of_too_many_the_oldest_reads_the_log(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "_MOST_EXPECTED", 1)
    oldest, newest = (client.start()["run_id"] for _ in range(2))
    client.wait_for(oldest, "completed")
    client.wait_for(newest, "completed")
    for run_id in (oldest, newest):
        first, second = both(client, run_id)
        assert first == second


def test_whoever_comes_late_reads_the_log(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follow, "EXPECTED_S", 0.0)
    run_id = client.start()["run_id"]
    client.wait_for(run_id, "completed")
    assert recent_starts.recall(run_id, user_id=client.user.pk) is None
    first, second = both(client, run_id)
    assert first == second


def test_memory_is_no_way_to_the_run_of_another_or_of_a_deleted_thread(
    client: Client, make_client: Callable[[], Client]
) -> None:
    accepted = client.start()
    events = f"/api/v1/agent/runs/{accepted['run_id']}/events"
    assert make_client().http.get(events).status_code == 404
    client.wait_for(accepted["run_id"], "completed")
    deleted = client.http.delete(f"/api/v1/agent/threads/{accepted['conversation_id']}")
    assert deleted.status_code == 204
    assert client.http.get(events).status_code == 404


def test_what_is_not_to_be_stored_is_not_kept_in_memory_either(client: Client) -> None:
    body = {"model": "demo", "input": "chest", "store": False}
    answer = client.http.post("/v1/responses", json=body).json()
    run_id = answer["id"].removeprefix("resp_")
    assert recent_starts.recall(run_id, user_id=client.user.pk) is None
    assert UUID(run_id) not in recent_starts._heads


def test_a_stream_holds_neither_its_request_nor_the_lookup_of_its_token(
    client: Client, scripted: Callable[..., ScriptedModel], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand streams would hold ten thousand headers."""
    held, create = list[weakref.ref[Any]](), HotHandler.create_request

    def noted(self: HotHandler, scope: Any, body: Any) -> Any:
        request, refusal = create(self, scope, body)
        held.extend((weakref.ref(request), weakref.ref(scope["parley.caller"])))
        return request, refusal

    run_id = client.start("say much", model=scripted("endless").name)["run_id"]
    monkeypatch.setattr(HotHandler, "create_request", noted)
    with client.http.stream("GET", f"/api/v1/agent/runs/{run_id}/events") as response:
        for _ in zip(range(6), read_sse(response), strict=False):
            gc.collect()
        assert [one() for one in held] == [None, None]
    client.http.post(f"/api/v1/agent/runs/{run_id}/cancel")
