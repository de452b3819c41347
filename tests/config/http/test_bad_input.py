"""What the wrong thing gets: a code, a sentence, the request id, and never a 500 (issue 2)."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx
import pytest
from django.conf import settings

from tests.conftest import Server
from tests.support.client import Client, read_sse
from tests.support.refusals import check_error

pytestmark = pytest.mark.once

RUNS = "/api/v1/agent/runs"
UNKNOWN = "0" * 31 + "1"


def post(client: Client, body: Any, **headers: str) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return client.http.post(
        RUNS, content=content, headers={"Content-Type": "application/json"} | headers
    )


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"text": "hi"}, 422, "model_required"),
        ({"model": "", "text": "hi"}, 422, "model_required"),
        ({"model": None, "text": "hi"}, 422, "model_required"),
        ({"model": "demo"}, 422, "text_required"),
        ({"model": "demo", "text": ""}, 422, "text_required"),
        ({"model": "demo", "text": " \n"}, 422, "text_required"),
        ({"model": "no-such", "text": "hi"}, 422, "model_not_allowed"),
        ({"model": "global:no-such", "text": "hi"}, 422, "model_not_allowed"),
        ({"model": 7, "text": "hi"}, 422, "invalid_request"),
        ({"model": "demo", "text": ["hi"]}, 422, "invalid_request"),
        ({"model": "demo", "text": "hi", "extra": 1}, 422, "invalid_request"),
        ({"model": "demo", "text": "hi", "exercise_top_k": 0}, 422, "invalid_request"),
        ({"model": "demo", "text": "hi", "exercise_top_k": 11}, 422, "invalid_request"),
        ({"model": "demo", "text": "hi", "exercise_top_k": "5"}, 422, "invalid_request"),
        ({"model": "demo", "text": "hi", "enable_exercise_search": "yes"}, 422, "invalid_request"),
        ({"model": "demo", "text": "hi", "result_mode": "html"}, 422, "invalid_request"),
        ({"model": "demo", "text": "hi", "metadata": []}, 422, "invalid_request"),
        ({"model": "demo", "text": "a\x00b"}, 422, "invalid_characters"),
        ({"model": "demo", "text": "hi", "metadata": {"a": {"b": ["\x00"]}}}, 422, "invalid_characters"),
        ({}, 422, "unknown_dialect"),
        ([], 422, "invalid_json"),
        (b"{", 422, "invalid_json"),
        (b"", 422, "invalid_json"),
        (b"\xff\xfe", 422, "invalid_json"),
        (b'{"model": "demo", "text": "\\ud800"}', 422, "invalid_json"),
        (b"[" * 40_000, 422, "invalid_json"),
        ({"model": "demo", "text": "x" * 1_000_000}, 413, "payload_too_large"),
        ({"model": "demo", "text": "x" * 3_000_000}, 413, "payload_too_large"),
    ],
)
def test_a_wrong_body_gets_its_code(client: Client, body: Any, status: int, code: str) -> None:
    check_error(post(client, body), status, code)


def test_field_errors_name_the_field_and_do_not_echo_the_input(client: Client) -> None:
    body = check_error(
        post(client, {"model": "demo", "text": "hi", "exercise_top_k": "secret-input"}),
        422,
        "invalid_request",
    )
    assert [error["loc"] for error in body["errors"]] == [["body", "exercise_top_k"]]
    assert "secret-input" not in json.dumps(body)


def test_a_literal_backslash_u0000_in_the_text_is_no_nul(client: Client) -> None:
    assert post(client, {"model": "demo", "text": "what is \\u0000 in JSON?"}).status_code == 202


@pytest.mark.parametrize("given", ["not-a-uuid", "abc", "", 123, [], {}, True])
def test_a_malformed_conversation_id_makes_a_new_conversation(client: Client, given: Any) -> None:
    response = post(client, {"model": "demo", "text": "hi", "conversation_id": given})
    assert response.status_code == 202
    accepted = response.json()
    run = client.run(accepted["run_id"])
    assert UUID(accepted["conversation_id"]).version == 4
    assert accepted == {
        "run_id": run["run_id"],
        "message_id": run["run_id"],
        "conversation_id": run["conversation_id"],
    }


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_a_wrong_method_is_405(client: Client, method: str) -> None:
    check_error(client.http.request(method, RUNS), 405, "method_not_allowed")


@pytest.mark.parametrize("path", ["", "/events", "/cancel"])
@pytest.mark.parametrize("run_id", ["nonsense", UNKNOWN, str(UUID(UNKNOWN)), "%00", "'; drop table"])
def test_an_unknown_run_is_404_everywhere(client: Client, path: str, run_id: str) -> None:
    method = "POST" if path == "/cancel" else "GET"
    check_error(client.http.request(method, f"{RUNS}/{run_id}{path}"), 404, "run_not_found")


def test_another_users_run_does_not_exist(make_client: Callable[..., Client]) -> None:
    owner, other = make_client(), make_client()
    accepted = owner.start()
    for method, path in (("GET", ""), ("GET", "/events"), ("POST", "/cancel")):
        response = other.http.request(method, f"{RUNS}/{accepted['run_id']}{path}")
        check_error(response, 404, "run_not_found")
    check_error(other.http.get(f"/api/v1/messages/{accepted['run_id']}/events"), 404, "run_not_found")
    taken = post(other, {"model": "demo", "text": "hi", "conversation_id": accepted["conversation_id"]})
    check_error(taken, 404, "conversation_not_found")
    history = other.http.get("/api/v1/agent/history", params={"threadId": accepted["conversation_id"]})
    check_error(history, 404, "thread_not_found")
    assert owner.watch(accepted["run_id"])[-1].event == "completed"


@pytest.mark.parametrize("given", ["5B7F1C9E-9A64-4C63-9A57-0F6F4C1F7F10", UNKNOWN])
def test_the_id_of_another_conversation_hides_the_run(client: Client, given: str) -> None:
    run_id = client.start()["run_id"]
    response = client.http.get(f"{RUNS}/{run_id}/events", params={"conversation_id": given})
    check_error(response, 404, "run_not_found")


def test_who_created_with_a_malformed_conversation_id_watches_with_it(client: Client) -> None:
    accepted = client.start("hi", conversation_id="abc")
    whole = client.watch(accepted["run_id"])
    place = f"{RUNS}/{accepted['run_id']}/events"
    for given in ("abc", "", "123", accepted["conversation_id"], accepted["conversation_id"].upper()):
        with client.http.stream("GET", place, params={"conversation_id": given}) as response:
            assert response.status_code == 200
            assert list(read_sse(response)) == whole


@pytest.mark.parametrize("given", ["abc", "-1", "1.5", "９", "9" * 40])
def test_a_last_event_id_that_is_no_event_is_refused(client: Client, given: str) -> None:
    run_id = client.start()["run_id"]
    if given.isascii():
        response = client.http.get(f"{RUNS}/{run_id}/events", headers={"Last-Event-ID": given})
        check_error(response, 422, "invalid_last_event_id")
    response = client.http.get(f"{RUNS}/{run_id}/events", params={"after": given})
    check_error(response, 422, "invalid_last_event_id")


@pytest.mark.parametrize("wait", ["abc", "-1", "nan", "inf", "99999"])
def test_a_wait_that_is_no_number_of_seconds_is_refused(client: Client, wait: str) -> None:
    run_id = client.start()["run_id"]
    response = client.http.get(
        f"{RUNS}/{run_id}/events", params={"wait": wait}, headers={"Accept": "application/json"}
    )
    check_error(response, 422, "invalid_wait")


@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (None, "token_missing"),
        ("Bearer nonsense", "invalid_token_header"),
        ("Basic YTpi", "invalid_token_header"),
    ],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", RUNS),
        ("GET", f"{RUNS}/{UNKNOWN}"),
        ("GET", f"{RUNS}/{UNKNOWN}/events"),
        ("POST", f"{RUNS}/{UNKNOWN}/cancel"),
        ("GET", "/api/v1/agent/history"),
        ("GET", "/api/v1/llm/models"),
        ("POST", "/api/v1/agent/attachments"),
    ],
)
def test_without_a_valid_token_everything_is_401(
    server: Server, authorization: str | None, code: str, method: str, path: str
) -> None:
    headers = {"Authorization": authorization} if authorization else {}
    response = httpx.request(method, server.url + path, headers=headers, trust_env=False)
    body = check_error(response, 401, code)
    assert (body["status"], body["msg"], body["message"]) == (401, code, body["detail"])
    assert response.headers["www-authenticate"] == "Bearer"


def test_the_request_id_is_the_callers_in_answer_and_frames(client: Client) -> None:
    response = client.http.post(
        RUNS, json={"model": "demo", "text": "hi"}, headers={"X-Request-Id": "my-id-1"}
    )
    assert response.headers["x-request-id"] == "my-id-1"
    frames = client.watch(response.json()["run_id"])
    assert {frame.data["request_id"] for frame in frames} == {"my-id-1"}


REPLACED = "x-request-id-replaced"


@pytest.mark.parametrize("given", [b"x" * 129, b"a b", b"tab\there", "ünï".encode(), "对账".encode()])
def test_a_request_id_that_is_not_visible_ascii_is_replaced_and_said_so(
    client: Client, given: bytes
) -> None:
    response = client.http.get("/health", headers={b"X-Request-Id": given})
    assert UUID(response.headers["x-request-id"]).hex == response.headers["x-request-id"]
    assert response.headers[REPLACED] == "true"


@pytest.mark.parametrize("given", [b"!", b"x" * 128, b'{"run":"~1/2"}', b""])
def test_any_opaque_request_id_is_kept_without_a_word(client: Client, given: bytes) -> None:
    response = client.http.get("/health", headers={b"X-Request-Id": given} if given else {})
    assert response.headers["x-request-id"].encode() == given or not given
    assert REPLACED not in response.headers


def test_a_page_may_read_whether_its_request_id_was_replaced() -> None:
    assert {"X-Request-Id", "X-Request-Id-Replaced"} <= set(settings.CORS_EXPOSE_HEADERS)


@pytest.mark.parametrize(
    "path", ["/api/", "/api/v1/nothing", "/api/v1/agent/runs/", "/api/v1/schemas/none"]
)
def test_an_unknown_api_path_is_404_in_our_shape(client: Client, path: str) -> None:
    check_error(client.http.get(path), 404, "not_found")


@pytest.mark.parametrize("before", ["yesterday", "2026-13-01", "2026-1-1x", "0000-00-00"])
def test_a_bad_day_is_refused_with_the_seeds_words(client: Client, before: str) -> None:
    response = client.http.get("/api/v1/agent/history", params={"before": before})
    assert check_error(response, 422, "invalid_before")["detail"] == "before must be YYYY-MM-DD"


def test_history_of_a_user_without_threads_is_empty(client: Client) -> None:
    assert client.history() == {
        "scope": "history_day",
        "threadId": None,
        "day": None,
        "hasMore": False,
        "messages": [],
    }


def test_json_nested_beyond_reason_is_refused_by_the_slow_endpoints_too(server: Server) -> None:
    response = httpx.post(
        f"{server.url}/api/v1/auth/token",
        content=b"[" * 8000,
        headers={"Content-Type": "application/json"},
        trust_env=False,
    )
    assert response.status_code in (413, 422)


@pytest.mark.parametrize("nested", [b"[" * 101 + b"]" * 101, b'{"a":' * 900 + b"1" + b"}" * 900])
def test_json_nested_too_deeply_to_be_carried_to_a_run_is_refused(client: Client, nested: bytes) -> None:
    text_run = b'{"model": "demo", "text": "hi", "metadata": {"deep": %s}}' % nested
    error = check_error(client.http.post(RUNS, content=text_run), 422, "invalid_json")
    assert error["detail"] == "The body is nested too deeply: at most 100 levels are taken."


def test_what_is_nested_as_deeply_as_may_be_runs(client: Client) -> None:
    deepest = b"[" * 98 + b'"[[[[["' + b"]" * 98
    text_run = b'{"model": "demo", "text": "hi", "metadata": {"deep": %s}}' % deepest
    accepted = client.http.post(RUNS, content=text_run)
    assert client.watch(accepted.json()["run_id"])[-1].event == "completed"


@pytest.mark.parametrize("path", ["/health", "/api/v1/schemas/agent_run_sse_frame", "/api/docs/"])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_what_can_only_be_read_takes_no_other_method(client: Client, method: str, path: str) -> None:
    assert client.http.request(method, path).status_code == 405
    assert client.http.head(path).status_code == 200


def test_a_nul_in_an_admin_address_is_refused(server: Server) -> None:
    response = httpx.get(f"{server.url}/admin/login/?next=%00", trust_env=False)
    assert response.status_code == 400


@pytest.mark.parametrize(
    "head",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Odd: a\x00b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\nX-Odd: a\x7fb\r\n\r\n",
        b"GET /health HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00",  # TLS spoken to a port that has none
    ],
)
def test_what_is_not_http_gets_our_shape_and_is_hung_up_on(server: Server, head: bytes) -> None:
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 80), 10) as raw:
        raw.sendall(head)
        answer = raw.makefile("rb").read()
    top, _, content = answer.partition(b"\r\n\r\n")
    lines = dict(line.split(b": ", 1) for line in top.split(b"\r\n")[1:])
    body = json.loads(content)
    assert top.startswith(b"HTTP/1.1 400 ")
    assert (body["code"], lines[b"content-type"]) == ("malformed_request", b"application/json")
    assert body["request_id"].encode() == lines[b"x-request-id"]
    assert (body["detail"] != "", lines[b"connection"]) == (True, b"close")
