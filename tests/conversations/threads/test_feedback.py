"""Feedback on runs: one a user and run, bounded, and nobody else's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from conversations.models import Feedback
from tests.support.client import Client


@pytest.fixture
def run_id(client: Client) -> str:
    started = client.start("hello")["run_id"]
    client.watch(started)
    return str(started)


def address(run_id: str) -> str:
    return f"/api/v1/agent/runs/{run_id}/feedback"


def test_feedback_is_given_read_replaced_and_withdrawn(client: Client, run_id: str) -> None:
    body = {"score": 1, "comment": " Just right. ", "tags": ["fast", "kind", "fast"]}
    first = client.http.post(address(run_id), json=body)
    assert first.status_code == 201
    given = first.json()
    assert given.pop("created_at") == given.pop("updated_at")
    assert given == {
        "run_id": run_id,
        "score": 1,
        "comment": "Just right.",
        "tags": ["fast", "kind"],
    }
    second = client.http.post(address(run_id), json={"score": -1})
    assert second.status_code == 200
    assert second.json()["created_at"] == first.json()["created_at"]
    assert second.json()["updated_at"] > first.json()["updated_at"]
    read = client.http.get(address(run_id))
    assert read.json() == second.json()
    assert (read.json()["comment"], read.json()["tags"]) == ("", [])
    assert Feedback.objects.filter(run_id=UUID(run_id)).count() == 1
    assert client.http.delete(address(run_id)).status_code == 204
    assert client.http.delete(address(run_id)).status_code == 204
    gone = client.http.get(address(run_id))
    assert (gone.status_code, gone.json()["code"]) == (404, "feedback_not_found")


def test_the_run_may_be_named_by_the_clients_own_id(client: Client) -> None:
    body = {
        "threadId": "6c1f3a52-7ab6-4d9c-9a54-0d3c3a3c0001",
        "runId": "mine-1",
        "messages": [{"id": "m1", "role": "user", "content": "hi"}],
        "forwardedProps": {"model": "demo"},
    }
    assert client.http.post("/api/v1/agent/runs", json=body).status_code == 202
    given = client.http.post(address("mine-1"), json={"score": 0})
    assert given.status_code == 201
    assert given.json()["run_id"] == client.run("mine-1")["run_id"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_foreign_and_an_unknown_run_do_not_exist(
    make_client: Callable[..., Client], client: Client, run_id: str, method: str
) -> None:
    stranger = make_client(is_staff=True)
    for name in (run_id, "0" * 32, "nobody's"):
        body: dict[str, Any] = {"json": {"score": 1}} if method == "POST" else {}
        answer = stranger.http.request(method, address(name), **body)
        assert (answer.status_code, answer.json()["code"]) == (404, "run_not_found")
    assert not Feedback.objects.filter(run_id=UUID(run_id)).exists()


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"score": None},
        {"score": True},
        {"score": "1"},
        {"score": 2},
        {"score": 0.5},
        {"score": 1, "comment": "x" * 4001},
        {"score": 1, "comment": 7},
        {"score": 1, "tags": "good"},
        {"score": 1, "tags": [" "]},
        {"score": 1, "tags": ["x" * 51]},
        {"score": 1, "tags": ["x"] * 21},
        {"score": 1, "stars": 5},
    ],
)
def test_what_is_out_of_bounds_is_refused_by_name(
    client: Client, run_id: str, body: dict[str, Any]
) -> None:
    answer = client.http.post(address(run_id), json=body)
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_feedback")
    assert client.http.get(address(run_id)).status_code == 404


def test_a_token_that_may_only_read_gives_none(client: Client, run_id: str) -> None:
    from config.auth.bearer import create_api_token

    _, token = create_api_token(client.user, "reader", scopes=["read"])
    headers = {"Authorization": f"Bearer {token}"}
    answer = client.http.post(address(run_id), json={"score": 1}, headers=headers)
    assert (answer.status_code, answer.json()["code"]) == (403, "scope_missing")


def test_feedback_goes_with_its_thread(client: Client) -> None:
    started = client.start("hello")
    client.watch(started["run_id"])
    assert client.http.post(address(started["run_id"]), json={"score": 1}).status_code == 201
    thread = client.http.delete(f"/api/v1/agent/threads/{started['conversation_id']}")
    assert thread.status_code == 204
    assert not Feedback.objects.filter(user=client.user).exists()
