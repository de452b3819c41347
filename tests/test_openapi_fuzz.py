"""Random requests made from our own OpenAPI document, against the running server.

Whatever arrives, the answer has a declared content type and, when it refuses, the one error shape:
never a 500, never a traceback (issue 2). The operations are a literal, so that a new one is seen here.
"""

from __future__ import annotations

from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
)
from schemathesis.core.result import Ok
from schemathesis.schemas import BaseSchema

from config.auth.views import SignInThrottle
from tests.client import Client
from tests.conftest import Server

OPERATIONS = (
    "GET /api/v1/agent/history",
    "GET /api/v1/agent/runs/{run_id}",
    "GET /api/v1/agent/runs/{run_id}/events",
    "GET /api/v1/llm/models",
    "GET /api/v1/messages/{run_id}/events",
    "GET /api/v1/schemas/{name}",
    "POST /api/v1/agent/run",
    "POST /api/v1/agent/runs",
    "POST /api/v1/agent/runs/{run_id}/cancel",
    "POST /api/v1/auth/token",
)
CHECKS = [not_a_server_error, content_type_conformance, response_schema_conformance]
LONGEST_S = 10

fuzzed = settings(
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


@pytest.mark.parametrize("label", OPERATIONS)
def test_no_request_gets_a_500_or_another_shape(
    client: Client, document: BaseSchema, label: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SignInThrottle, "allow_request", lambda *_: True)  # others sign in here too
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


def check_shape(response: schemathesis.Response) -> None:
    """An answer that a client can rely on: ours, in our shape, telling nothing of the inside."""
    assert "Traceback" not in (text := response.text or "")
    assert response.status_code < 500, text
    if response.status_code >= 400:
        body: dict[str, Any] = response.json()
        assert response.headers["content-type"] == ["application/json"]
        assert body["detail"]
        assert body["code"]
        assert [body["request_id"]] == response.headers["x-request-id"]


def _session() -> requests.Session:
    """A session that takes no proxy from the environment."""
    session = requests.Session()
    session.trust_env = False
    return session
