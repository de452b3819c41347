"""Large bodies: read beside the loop, with a limit on their values."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import pytest
from pytest_django import Settings

from config import parsing, values
from config.errors import current_request_id
from conversations.models import Run
from tests.client import Client
from tests.test_bad_input import check_error
from tests.test_front_door import AG_UI, history

JSON = {"Accept": "application/json"}


def post(client: Client, body: dict[str, Any] | bytes, path: str = AG_UI) -> httpx.Response:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.http.post(path, content=raw, headers=JSON)


def with_state(raw: bytes) -> bytes:
    """A run whose state is this JSON."""
    return json.dumps(history(1) | {"state": "STATE"}).encode().replace(b'"STATE"', raw)


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [AG_UI, "/process", "/v1/responses"])
@pytest.mark.parametrize("value", [b"[]", b"{}", b"[[]]", b"0", b'""'])
def test_a_body_of_too_many_values_is_refused_before_it_is_decoded(
    client: Client, monkeypatch: pytest.MonkeyPatch, path: str, value: bytes
) -> None:
    decoded: list[int] = []
    decode = msgspec.json.decode

    def noted(raw: bytes, **more: Any) -> Any:
        decoded.append(len(raw))
        return decode(raw, **more)

    monkeypatch.setattr(msgspec.json, "decode", noted)
    bomb = with_state(b"[" + (value + b",") * 1_000_000 + value + b"]")
    body = check_error(post(client, bomb, path), 422, "too_many_values")
    assert "50,000" in body["detail"]
    assert [size for size in decoded if size >= len(bomb)] == []


@pytest.mark.parametrize("path", ["/api/v1/auth/token", "/api/v1/llm/app/config"])
def test_the_slow_endpoints_refuse_too_many_values_too(
    make_client: Callable[..., Client], settings: Settings, path: str
) -> None:
    settings.VALUES_PER_BODY = 1_000
    staff = make_client(is_staff=True)
    headers = {"Content-Type": "application/json"}
    answer = staff.http.post(path, content=b"[" + b"0," * 2_000 + b"0]", headers=headers)
    check_error(answer, 422, "too_many_values")


@pytest.mark.parametrize("deep", [b"[" * 90_000, b'{"a":' * 90_000, b"[" * 9_000_000])
def test_a_body_that_only_opens_is_refused(client: Client, deep: bytes) -> None:
    assert post(client, deep).json()["code"] in ("invalid_json", "too_many_values")


def test_a_long_conversation_of_much_punctuation_is_taken(client: Client) -> None:
    body = history(300)
    for message in body["messages"][:-1]:
        message["content"] = "[1, 2, {}], " * 500
    assert post(client, body).status_code == 202


# --- beside the loop ------------------------------------------------------------------------------


def test_a_large_body_is_read_in_a_thread_that_knows_the_request(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, str]] = []
    check = values.check

    def noted(raw: bytes) -> None:
        seen.append((threading.current_thread().name.partition("_")[0], current_request_id()))
        check(raw)

    monkeypatch.setattr(values, "check", noted)
    small, large = history(1), history(parsing.INLINE // 1_000)
    for name, body in (("small", small), ("large", large)):
        headers = JSON | {"X-Request-Id": f"id-{name}"}
        assert client.http.post(AG_UI, json=body, headers=headers).status_code == 202
    (beside, _), (thread, request_id) = seen[-2:]
    assert (seen[-2][1], thread, request_id) == ("id-small", "parsing", "id-large")
    assert beside != "parsing"
    run = Run.objects.filter(owner_id=client.user.pk).latest("created_at")
    assert run.request_id == "id-large"


def test_the_loop_goes_on_while_a_large_body_is_parsed() -> None:
    async def turns() -> int:
        waiting, count = threading.Event(), 0
        parsed = asyncio.ensure_future(
            parsing.parsed(b" " * (parsing.INLINE + 1), lambda _: waiting.wait(20))
        )
        while count < 100:
            await asyncio.sleep(0)
            count += 1
        assert not parsed.done()
        waiting.set()
        assert await parsed
        return count

    assert asyncio.run(turns()) == 100
