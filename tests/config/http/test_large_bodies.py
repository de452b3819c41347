"""Large bodies: read beside the loop, with limits on their values, names and state."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import httpx
import msgspec
import psycopg.errors
import pytest
from pytest_django import Settings

from agents.intake import submit
from config.errors import InvalidRequest, Unavailable, current_request_id
from config.http import json_limits, parsing
from conversations.models import Run
from tests.config.http.histories import AG_UI, RUNS, history
from tests.support.client import Client
from tests.support.refusals import check_error

pytestmark = pytest.mark.once

JSON = {"Accept": "application/json"}


def post(client: Client, body: dict[str, Any] | bytes, path: str = AG_UI) -> httpx.Response:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.http.post(path, content=raw, headers=JSON)


def with_state(raw: bytes) -> bytes:
    """A run whose state is this JSON."""
    return json.dumps(history(1) | {"state": "STATE"}).encode().replace(b'"STATE"', raw)


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [AG_UI, "/process", "/v1/responses", "/v1/chat/completions"])
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
    check = json_limits.check_value_count

    def noted(raw: bytes) -> None:
        seen.append((threading.current_thread().name.partition("_")[0], current_request_id()))
        check(raw)

    monkeypatch.setattr(json_limits, "check_value_count", noted)
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


# --- state ----------------------------------------------------------------------------------------


def test_a_state_that_is_too_large_is_refused_by_name(client: Client, settings: Settings) -> None:
    settings.STATE_LIMIT_KB = 64
    body = check_error(post(client, with_state(b'"' + b"x" * 70_000 + b'"')), 413, "state_too_large")
    assert "64 KiB" in body["detail"]
    assert post(client, with_state(b'"' + b"x" * 60_000 + b'"')).status_code == 202


def test_a_large_conversation_with_a_small_state_is_taken(client: Client, settings: Settings) -> None:
    settings.STATE_LIMIT_KB = 1
    assert post(client, history(100)).status_code == 202


def test_a_request_that_is_too_large_to_be_kept_is_refused(client: Client, settings: Settings) -> None:
    settings.REQUEST_LIMIT_KB = 64
    body = history(1) | {"forwardedProps": {"model": "demo", "more": "x" * 70_000}}
    check_error(post(client, body), 413, "request_too_large")
    assert not Run.objects.filter(owner_id=client.user.pk).exists()


# --- names ----------------------------------------------------------------------------------------

LONG = "n" * 8_000


def called(**function: str) -> list[dict[str, Any]]:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"} | function}
    answer = {"id": "m3", "role": "tool", "toolCallId": "c1", "content": "1"}
    return [
        {"id": "m1", "role": "user", "content": "hi"},
        {"id": "m2", "role": "assistant", "toolCalls": [call]},
        answer,
    ]


def items(**call: str) -> dict[str, Any]:
    made = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"} | call
    answer = {"type": "function_call_output", "call_id": made["call_id"], "output": "1"}
    return {"model": "demo", "input": [{"role": "user", "content": "hi"}, made, answer]}


def completion(**more: str) -> dict[str, Any]:
    given = {"id": "c1", "name": "f"} | more
    call = {"id": given["id"], "function": {"name": given["name"], "arguments": "{}"}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {"role": "tool", "tool_call_id": given["id"], "content": "x"}
    return {"model": "demo", "messages": [{"role": "user", "content": "hi"}, asked, answer]}


def data(**call: str) -> dict[str, Any]:
    content = [{"type": "data", "data": {"call_id": "c1", "name": "f", "arguments": "{}"} | call}]
    said = [{"type": "text", "text": "hi"}]
    asked = {"role": "user", "content": said}
    return {"model": "demo", "input": [asked, {"type": "function_call", "content": content}, asked]}


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        (AG_UI, history(0) | {"messages": called(name=LONG)}, "messages[1].tool_calls[0].name"),
        (RUNS, history(0) | {"messages": called(name=LONG)}, "messages[1].tool_calls[0].name"),
        (AG_UI, history(0) | {"forwardedProps": {"model": LONG}}, "model"),
        ("/v1/responses", items(name=LONG), "messages[1].tool_calls[0].name"),
        ("/v1/responses", items(call_id=LONG), "messages[1].tool_calls[0].id"),
        ("/v1/responses", items() | {"model": LONG}, "model"),
        ("/v1/chat/completions", completion(name=LONG), "messages[1].tool_calls[0].name"),
        ("/v1/chat/completions", completion(id=LONG), "messages[1].tool_calls[0].id"),
        ("/process", data(name=LONG), "messages[1].tool_calls[0].name"),
        ("/process", data() | {"model": LONG}, "model"),
    ],
)
def test_a_name_that_no_index_can_take_is_refused_by_its_field(
    client: Client, path: str, body: dict[str, Any], field: str
) -> None:
    refused = check_error(post(client, body, path), 422, "name_too_long")
    assert refused["field"] == field
    assert str(refused["limit"]) in refused["detail"]
    assert LONG not in json.dumps(refused)


@pytest.mark.parametrize(
    ("error", "raised", "code"),
    [
        (psycopg.errors.ProgramLimitExceeded, InvalidRequest, "value_not_storable"),
        (psycopg.errors.StringDataRightTruncation, InvalidRequest, "value_not_storable"),
        (psycopg.errors.AdminShutdown, Unavailable, "unavailable"),
        (psycopg.errors.DiskFull, Unavailable, "unavailable"),
        (psycopg.OperationalError, Unavailable, "unavailable"),
    ],
)
def test_only_an_outage_is_called_one(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    error: type[Exception],
    raised: type[InvalidRequest | Unavailable],
    code: str,
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise error("no")

    monkeypatch.setattr(submit, "start_run", refuse)
    response = client.http.post(RUNS, json={"model": "demo", "text": "hi"})
    check_error(response, raised.status, code)
