"""A foreign row does not exist (P10): every route that takes an id answers as if there were none of it.

The routes come from the URL table; one with an id that nobody placed here fails the first test.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest
import websocket
from django.contrib.auth import get_user_model

from config.auth.bearer import create_api_token
from config.database import run_sync
from conversations import attachments
from conversations.models import Interrupt, Run
from tests.config.auth.url_table import table
from tests.conftest import Server
from tests.support.client import Client

pytestmark = pytest.mark.once

OF_STAFF = ("/api/v1/llm/", "/api/v1/admin/", "/api/v1/agent/runners/")
"""Rows that are nobody's own: prompts, the library, runners."""
NO_ROWS = {"sheet", "name", "bucket", "path", "model_id"}
"""A sheet of metrics, a schema's name, a model of staff's; a signed URL is whoever's has it
(tests/conversations/attachments/test_signed_urls.py)."""
LIKED = {"score": 1}
BODIES: dict[str, Any] = {
    "POST /api/v1/agent/runs/<str:run_id>/feedback": LIKED,
    "POST /api/v1/agent/approvals/<str:approval_id>": {"approve": True},
    "PATCH /api/v1/agent/threads/<str:thread_id>": {"title": "Mine"},
}
SAID = {"role": "user", "type": "message", "content": [{"type": "text", "text": "hello"}]}


def taken() -> list[str]:
    """The routes with an id in them, as `METHOD route`."""
    found = [line for line in table() if set(re.findall(r"<\w+:(\w+)>", line)) - NO_ROWS]
    return sorted(line for line in found if not line.partition(" ")[2].startswith(OF_STAFF))


@pytest.fixture(scope="module")
def owner(server: Server) -> Iterator[Client]:
    """Whose rows they are."""
    user = get_user_model().objects.create_user(f"owner-{uuid4().hex}")
    _, token = create_api_token(user, "test", scopes=["run", "read"])
    client = Client(server.url, token, user)
    yield client
    client.close()


@pytest.fixture(scope="module")
def foreign(owner: Client) -> dict[str, str]:
    """An id of each kind, as its owner's client reads it."""
    run_id = owner.start("approve demo.note buy milk")["run_id"]
    owner.wait_for(run_id, "completed")
    run = Run.objects.get(pk=run_id)
    owner.http.post(f"/api/v1/agent/runs/{run_id}/feedback", json=LIKED)
    artifact = run_sync(
        attachments.store_artifact(b"{}", owner_id=run.owner_id, thread_id=run.thread_id, run_id=run.pk)
    )
    responded = owner.http.post("/v1/responses", json={"model": "demo", "input": "hello"}).json()
    task = owner.http.post("/process/task", json={"model": "demo", "input": [SAID]}).json()
    return {
        "run_id": run_id,
        "thread_id": run.thread_id.hex,
        "approval_id": str(Interrupt.objects.get(run_id=run.pk).pk),
        "artifact_id": artifact.file_id.hex,
        "response_id": responded["id"],
        "task_id": task["task_id"],
    }


def test_every_id_of_a_route_has_a_foreign_row_here(foreign: dict[str, str]) -> None:
    assert {name for line in taken() for name in re.findall(r"<\w+:(\w+)>", line)} == set(foreign)


@pytest.mark.parametrize("line", [line for line in taken() if line.startswith("GET")])
def test_the_owner_reads_it(owner: Client, foreign: dict[str, str], line: str) -> None:
    with owner.http.stream("GET", path_of(line, foreign)) as answer:
        assert answer.status_code in (200, 204)


@pytest.mark.parametrize("line", taken())
def test_a_foreign_id_is_answered_as_an_unknown_one(
    client: Client, foreign: dict[str, str], line: str
) -> None:
    nobodys = {name: unknown(value) for name, value in foreign.items()}
    answers = [
        client.http.request(line.partition(" ")[0], path_of(line, ids), json=BODIES.get(line))
        for ids in (foreign, nobodys)
    ]
    assert said(answers[0]) == said(answers[1])
    assert answers[0].status_code == 404


def test_a_socket_says_no_more(client: Client, foreign: dict[str, str]) -> None:
    told = []
    for run_id in (foreign["run_id"], unknown(foreign["run_id"])):
        url = client.url.replace("http", "ws") + f"/ws/agent/runs/{run_id}?token={client.token}"
        socket = websocket.create_connection(url, timeout=10)
        frame = json.loads(socket.recv())
        frame["data"].pop("request_id", None)
        told.append(json.dumps(frame).replace(run_id, ""))
        assert socket.recv_data()[0] == websocket.ABNF.OPCODE_CLOSE
    assert told[0] == told[1]
    assert "run_not_found" in told[0]


def path_of(line: str, ids: dict[str, str]) -> str:
    return re.sub(r"<\w+:(\w+)>", lambda found: ids[found[1]], line.partition(" ")[2])


def unknown(known: str) -> str:
    """An id of the same form that is nobody's."""
    hexes = uuid4().hex
    return re.sub(r"[0-9a-f]{8}(-?)([0-9a-f]{4}-?){3}[0-9a-f]{12}", hexes, known) if known else hexes


def said(answer: httpx.Response) -> tuple[int, Any, set[str]]:
    """What a caller learns: all but the id of the request and the time."""
    body = answer.json()
    body.pop("request_id", None)
    return answer.status_code, body, set(answer.headers)
