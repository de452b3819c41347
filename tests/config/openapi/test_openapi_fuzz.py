"""Random requests made from our own OpenAPI document, against the running server.

Whatever arrives, the answer has a declared content type and, when it refuses, the one error shape:
never a 500, never a traceback (issue 2). The operations are a literal, so that a new one is seen here.
"""

from __future__ import annotations

import socket
from typing import Any
from uuid import uuid4

import httpx
import jsonschema
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as effort
from hypothesis import strategies as st
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema

from config.http import body_limits
from tests.conftest import Server
from tests.support.client import Client
from tests.support.openapi_operations import OPERATIONS

pytestmark = pytest.mark.once

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
LONGEST_S = 10

fuzzed = effort(
    max_examples=15,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="session")
def document(server: Server) -> BaseSchema:
    """The document as a client fetches it."""
    with _session() as session:
        raw = session.get(f"{server.url}/api/schema/?format=json", timeout=LONGEST_S).json()
    return schemathesis.openapi.from_dict(raw)


def test_every_operation_of_the_document_is_fuzzed(document: BaseSchema) -> None:
    found = [result.ok().label for result in document.get_all_operations() if isinstance(result, Ok)]
    assert tuple(sorted(found)) == OPERATIONS


@pytest.mark.parametrize("path", ["/api/v1/agent/runs", "/api/v1/agent/run"])
def test_both_bodies_of_a_run_and_their_answers_are_in_the_document(client: Client, path: str) -> None:
    with _session() as session:
        raw = session.get(f"{client.url}/api/schema/?format=json", timeout=LONGEST_S).json()
    started = raw["paths"][path]["post"]
    schemas = [started["requestBody"], started["responses"]["202"]]
    asked, answered = (one["content"]["application/json"]["schema"] for one in schemas)
    text_run: dict[str, Any] = {"model": "demo", "text": "squat", "metadata": None, "result_mode": None}
    tool = {"name": "查天气", "description": "Weather", "parameters": {"type": "object"}}
    run_agent_input: dict[str, Any] = {
        "threadId": str(uuid4()),
        "runId": "run-1",
        "messages": [{"id": "msg-001", "role": "user", "content": "squat"}],
        "tools": [tool],
        "context": [],
        "state": {},
        "forwardedProps": {"model": "demo"},
    }
    for body in (text_run, run_agent_input):
        _check(raw, asked, body)
        response = client.http.post(path, json=body)
        assert response.status_code == 202, response.text
        _check(raw, answered, response.json())
    for body in ({"model": "demo"}, run_agent_input | {"messages": [{"role": "user"}]}, {}):
        with pytest.raises(jsonschema.ValidationError):
            _check(raw, asked, body)
        assert client.http.post(path, json=body).status_code == 422


def _check(document: Any, schema: Any, body: Any) -> None:
    whole = schema | {"components": document["components"]}
    jsonschema.Draft202012Validator(whole).validate(body)


@pytest.mark.parametrize("label", OPERATIONS)
def test_no_request_gets_a_500_or_another_shape(
    client: Client, document: BaseSchema, label: str, settings: Any
) -> None:
    settings.RATE_SIGN_IN_PER_MINUTE = 0  # others sign in here too
    method, path = label.split()
    operation = document[path][method]
    cases = st.one_of([operation.as_strategy(mode) for mode in schemathesis.GenerationMode])

    @fuzzed
    @given(case=cases)
    def fuzz(case: schemathesis.Case) -> None:
        with _session() as session:
            response = case.call(
                base_url=client.url,
                session=session,
                headers={"Authorization": f"Bearer {client.token}"},
                timeout=LONGEST_S,
            )
        case.validate_response(response, checks=CHECKS)
        check_shape(response)

    fuzz()


@pytest.mark.parametrize("path", ["/api/v1/auth/token", "/admin/login/", "/nowhere"])
def test_a_body_without_end_is_refused_and_not_kept(server: Server, path: str) -> None:
    megabytes = iter([b"x" * 2**20] * 5)
    response = httpx.post(f"{server.url}{path}", content=megabytes, trust_env=False)
    assert (response.status_code, response.json()["code"]) == (413, "payload_too_large")


def test_clients_that_send_no_body_hold_no_place_and_are_hung_up_on(
    client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.POSTS_AT_ONCE = 1
    monkeypatch.setattr(body_limits, "BODY_S", 1.0)
    address = httpx.URL(client.url)
    with socket.create_connection((address.host, address.port or 80), LONGEST_S) as silent:
        silent.sendall(b"POST /api/v1/agent/runs HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n")
        client.start()
        answer = silent.makefile("rb").read()  # to its end: the server hangs up
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"request_timeout"' in answer


def check_shape(response: schemathesis.Response) -> None:
    """An answer that a client can rely on: ours, in our shape, telling nothing of the inside."""
    assert "Traceback" not in (text := response.text or "")
    assert response.status_code < 500, text
    if response.status_code >= 400:
        body: dict[str, Any] = response.json()
        assert response.headers["content-type"] == ["application/json"]
        if response.status_code == 400 and "statusCode" in body:  # storage speaks as Supabase's does
            assert body.keys() == {"statusCode", "error", "message"}
            return
        assert body["detail"]
        assert body["code"]
        assert [body["request_id"]] == response.headers["x-request-id"]


def _session() -> requests.Session:
    """A session that takes no proxy from the environment."""
    session = requests.Session()
    session.trust_env = False
    return session
