"""The examples of the document are requests: each is sent, and answered as the document says."""

from __future__ import annotations

from collections.abc import Callable
from string import Formatter
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx
import pytest
from django.contrib.auth import get_user_model

from tests.schema_true.document import published
from tests.support.client import Client
from tests.support.mail import approvals
from tests.support.openapi_operations import OPERATIONS
from tests.support.pictures import picture

pytestmark = pytest.mark.once

BODILESS = {
    "POST /api/v1/agent/runs/{run_id}/cancel",
    "POST /api/v1/llm/sse/force-disconnect",
    "POST /v1/responses/compact",
    "POST /v1/responses/input_tokens",
    "POST /v1/responses/{response_id}/cancel",
}
WITH_BODY = [label for label in OPERATIONS if label[0] == "P" and label not in BODILESS]
OF_STAFF = ("/api/v1/llm/", "/api/v1/admin/", "/api/v1/agent/runners/")


def _pending_approval(client: Client) -> str:
    run_id = client.start("please approve demo.note buy milk")["run_id"]
    client.wait_for(run_id, "completed")
    (waiting,) = approvals(client, status="pending")
    return str(waiting["id"])


def _new_prompt(client: Client) -> str:
    body = {"name": uuid4().hex, "content": "Be kind.", "prompt_type": "system"}
    made = client.http.post("/api/v1/llm/prompts", json=body)
    assert made.status_code == 201, made.text
    return str(made.json()["data"]["id"])


MAKE: dict[str, Callable[[Client], str]] = {
    "run_id": lambda client: client.start()["run_id"],
    "thread_id": lambda client: client.start()["conversation_id"],
    "approval_id": _pending_approval,
    "prompt_id": _new_prompt,
    "runner_id": lambda _: "builtin:demo",
}
"""What the variables of paths stand for: each is made anew."""


@pytest.mark.parametrize("label", WITH_BODY)
def test_the_examples_of_an_operation_are_answered_with_success(
    label: str, make_client: Callable[..., Client]
) -> None:
    method, path = label.split()
    operation = published().raw["paths"][path][method.lower()]
    ((kind, media),) = [one for one in operation["requestBody"]["content"].items() if one[0] in SEND]
    for example in media["examples"].values():
        client = make_client(is_staff=path.startswith(OF_STAFF))
        names = [name for _, name, *_ in Formatter().parse(path) if name]
        address = path.format(**{name: MAKE[name](client) for name in names})
        response = SEND[kind](client, method, address, _prepared(client, path, example["value"]))
        good = {status for status in operation["responses"] if status < "300"}
        assert str(response.status_code) in good, response.text
        if response.status_code in (201, 202):
            assert client.http.get(_on_this_server(response.headers["Location"])).status_code == 200


def test_a_started_and_a_cancelled_run_are_at_their_location(client: Client) -> None:
    started = client.http.post("/api/v1/agent/runs", json={"model": "demo", "text": "chest"})
    address = f"/api/v1/agent/runs/{started.json()['run_id']}"
    cancelled = client.http.post(f"{address}/cancel")
    assert [started.headers["Location"], cancelled.headers["Location"]] == [address, address]


def _on_this_server(location: str) -> str:
    """Return the path and the query: a file's address names the host of PUBLIC_URL."""
    whole = urlsplit(location)
    return f"{whole.path}?{whole.query}" if whole.query else whole.path


def _prepared(client: Client, path: str, value: dict[str, Any]) -> dict[str, Any]:
    """Return the example, with the one value that only a server knows; its account exists."""
    if path.endswith("/auth/token"):
        user, _ = get_user_model().objects.get_or_create(username=value["username"])
        user.set_password(value["password"])
        user.save()
    if "baseVersion" in value:
        published_now = client.http.post("/api/v1/admin/exercise/library/publish", json={})
        return value | {"baseVersion": published_now.json()["version"]}
    return value


def _send_json(client: Client, method: str, address: str, value: Any) -> httpx.Response:
    return client.http.request(method, address, json=value)


def _send_form(client: Client, method: str, address: str, value: Any) -> httpx.Response:
    fields = {name: text for name, text in value.items() if name != "file"}
    files = {"file": (value["file"], picture("PNG"))}
    return client.http.request(method, address, data=fields, files=files)


SEND = {"application/json": _send_json, "multipart/form-data": _send_form}
