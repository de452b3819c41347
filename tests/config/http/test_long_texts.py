"""Texts on which a backtracking pattern takes minutes: one user's request stops nobody (issue 20)."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.support.client import Client

pytestmark = pytest.mark.once

CPU_S = 5.0  # of this whole process, client and server; before, each of these took 10 to 30 seconds


def while_health_is_answered(client: Client, send: Callable[[], Any]) -> Any:
    """What `send` returns; meanwhile the server answers everybody else, and computes little."""
    begun = time.process_time()
    with ThreadPoolExecutor(1) as pool, httpx.Client(trust_env=False, timeout=CPU_S) as other:
        sent = pool.submit(send)
        while not wait([sent], timeout=0.1).done:
            assert other.get(f"{client.url}/health").status_code == 200
    assert time.process_time() - begun < CPU_S
    return sent.result()


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image", "source": {"type": "data", "mimeType": "image/png", "value": "data:" * 1_300}},
        {"type": "image", "source": {"type": "url", "mimeType": "image/png", "value": "data:" * 40_000}},
        {"type": "binary", "mimeType": "image/png", "url": "data:" * 40_000},
    ],
)
def test_an_image_that_begins_as_a_data_url_again_and_again(client: Client, part: Any) -> None:
    message = {"id": "m1", "role": "user", "content": [part]}
    body = {"threadId": str(uuid4()), "runId": "r1", "messages": [message]}
    answer = while_health_is_answered(client, lambda: client.http.post("/api/v1/agent/ag-ui", json=body))
    assert answer.status_code == 422, answer.text


def test_a_question_of_blanks_for_the_offline_model(client: Client) -> None:
    def ask() -> dict[str, Any]:
        accepted = client.start(f"a{' ' * 50_000}b", enable_exercise_search=False)
        return client.wait_for(accepted["run_id"], "completed")

    assert while_health_is_answered(client, ask)["status"] == "completed"


def test_braces_for_a_tool_of_the_offline_model(client: Client) -> None:
    tool = {"type": "function", "name": "toolx", "parameters": {"type": "object", "properties": {}}}
    body = {"model": "demo", "input": f"toolx {'{' * 200_000}", "tools": [tool]}
    answer = while_health_is_answered(client, lambda: client.http.post("/v1/responses", json=body))
    assert answer.status_code == 200, answer.text
    [call] = answer.json()["output"]
    assert (call["type"], call["name"], call["arguments"]) == ("function_call", "toolx", "{}")
