"""Pages of other origins: those that are named may call the API, and caches keep the answers apart."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from tests.support.client import Client

pytestmark = pytest.mark.once

PAGE = "https://app.example"
RUNS = "/api/v1/agent/runs"


@pytest.fixture(autouse=True)
def named(settings: Settings) -> None:
    settings.CORS_ALLOWED_ORIGINS = [PAGE]


def test_a_named_page_may_ask_read_and_start_runs(client: Client) -> None:
    asked = client.http.options(
        RUNS,
        headers={
            "Origin": PAGE,
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "authorization, idempotency-key",
        },
    )
    assert asked.status_code == 200
    assert asked.headers["access-control-allow-origin"] == PAGE
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "idempotency-key" in asked.headers["access-control-allow-headers"].lower()
    answer = client.http.post(RUNS, json={"model": "demo", "text": "hello"}, headers={"Origin": PAGE})
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert "X-Request-Id" in answer.headers["access-control-expose-headers"]
    assert "origin" in answer.headers["vary"]


@pytest.mark.parametrize("origin", ["https://other.example", "null", "https://app.example.evil", ""])
def test_another_page_is_told_nothing(client: Client, origin: str) -> None:
    answer = client.http.get("/api/v1/agent/usage", headers={"Origin": origin})
    assert "access-control-allow-origin" not in answer.headers
    assert "origin" in answer.headers["vary"]


def test_who_names_no_origin_gets_the_same_answer_without_permissions(client: Client) -> None:
    answer = client.http.get("/api/v1/agent/usage")
    assert "access-control-allow-origin" not in answer.headers
    assert "origin" in answer.headers["vary"]
    asked = client.http.options(RUNS, headers={"Access-Control-Request-Method": "POST"})
    assert asked.status_code == 200
    assert "access-control-allow-origin" not in asked.headers
