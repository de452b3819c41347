"""The analysts' numbers: true windows, and only for staff (specs/text-run.md §7)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from agents.api import dashboard
from config.auth.models import User
from conversations.models import Run, Thread
from prompts.models import Endpoint, ModelCandidate, ModelMapping
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.mcp_host import wait_until

pytestmark = pytest.mark.once


@pytest.fixture
def staff(make_client: Callable[..., Client]) -> Client:
    return make_client(is_staff=True)


def ask(staff: Client, window: str) -> dict[str, Any]:
    dashboard.clear_cache()
    answer = staff.http.get("/api/v1/stats/dashboard", params={"time_window": window})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def row_of(numbers: dict[str, Any], key: str) -> dict[str, Any]:
    return next(row for row in numbers["mapped_models"]["rows"] if row["model_key"] == key)


def ran(mapping: ModelMapping, owner: User, status: str, *, ago: timedelta, took_ms: int) -> None:
    created = timezone.now() - ago
    ended = status in ("completed", "failed", "cancelled")
    Run.objects.create(
        owner=owner,
        thread=Thread.objects.create(owner=owner),
        thread_seq=1,
        request_id="r",
        dialect="text",
        model=mapping.name,
        request={},
        status=status,
        deadline_at=created + timedelta(hours=1),
        deadline_s=600,
        error_code="provider_error" if status == "failed" else "",
        input_tokens=100,
        output_tokens=11,
        endpoint_id=mapping.candidates.get().endpoint_id,
        created_at=created,
        finished_at=created + timedelta(milliseconds=took_ms) if ended else None,
    )


@pytest.fixture
def mapping(scripted: Callable[..., ScriptedModel]) -> ModelMapping:
    return ModelMapping.objects.get(key=scripted("any").name.removeprefix("global:"))


def test_the_windows_are_true(staff: Client, mapping: ModelMapping) -> None:
    wait_until(lambda: not Run.objects.filter(status__in=("queued", "running")).exists())
    before = {window: ask(staff, window) for window in dashboard.WINDOWS}
    one, two = (User.objects.create(username=uuid4().hex) for _ in range(2))
    ran(mapping, one, "completed", ago=timedelta(minutes=59), took_ms=1_000)
    ran(mapping, one, "failed", ago=timedelta(minutes=61), took_ms=9_000)
    ran(mapping, two, "completed", ago=timedelta(hours=23), took_ms=3_000)
    ran(mapping, two, "cancelled", ago=timedelta(hours=25), took_ms=9_000)
    ran(mapping, two, "completed", ago=timedelta(days=6, hours=23), took_ms=5_000)
    ran(mapping, two, "completed", ago=timedelta(days=7, hours=1), took_ms=90_000)
    after = {window: ask(staff, window) for window in dashboard.WINDOWS}

    def more(window: dashboard.Window, *path: str) -> int:
        new: Any = after[window]
        old: Any = before[window]
        for name in path:
            new, old = new[name], old[name]
        return int(new) - int(old)

    assert [more(w, "ai_requests", "total") for w in dashboard.WINDOWS] == [1, 3, 5]
    assert [more(w, "ai_requests", "success") for w in dashboard.WINDOWS] == [1, 2, 3]
    assert [more(w, "ai_requests", "error") for w in dashboard.WINDOWS] == [0, 1, 1]
    assert [more(w, "daily_active_users") for w in dashboard.WINDOWS] == [1, 2, 2]
    assert [more(w, "token_usage") for w in dashboard.WINDOWS] == [111, 333, 555]
    rows = [row_of(numbers, mapping.key) for numbers in after.values()]
    assert [row["calls_total"] for row in rows] == [1, 3, 5]
    assert [row["unique_users"] for row in rows] == [1, 2, 2]
    assert [row["avg_latency_ms"] for row in rows] == [1_000.0, 2_000.0, 3_000.0]
    assert [row["success_rate"] for row in rows] == [100.0, 66.67, 75.0]


def test_the_shape_is_that_of_the_original(staff: Client, mapping: ModelMapping) -> None:
    numbers = ask(staff, "1h")
    assert set(numbers) == {
        "time_window",
        "daily_active_users",
        "ai_requests",
        "token_usage",
        "api_connectivity",
        "mapped_models",
    }
    assert set(numbers["ai_requests"]) == {"total", "success", "error", "avg_latency_ms"}
    assert set(numbers["api_connectivity"]) == {
        "is_running",
        "healthy_endpoints",
        "total_endpoints",
        "connectivity_rate",
        "last_check",
    }
    candidate = mapping.candidates.get()
    assert row_of(numbers, mapping.key) == {
        "model_key": mapping.key,
        "scope_type": "global",
        "resolved_model": "any",
        "provider": "fake",
        "endpoint_id": candidate.endpoint_id,
        "availability": True,
        "availability_reason": None,
        "calls_total": 0,
        "unique_users": 0,
        "success_rate": 0.0,
        "avg_latency_ms": 0.0,
    }


def test_an_endpoint_on_which_everything_failed_is_not_healthy(
    staff: Client, mapping: ModelMapping
) -> None:
    before = ask(staff, "1h")["api_connectivity"]
    owner = User.objects.create(username=uuid4().hex)
    ran(mapping, owner, "failed", ago=timedelta(minutes=1), took_ms=10)
    after = ask(staff, "1h")["api_connectivity"]
    assert after["healthy_endpoints"] == before["healthy_endpoints"] - 1
    assert after["total_endpoints"] == before["total_endpoints"]
    assert after["last_check"]
    ran(mapping, owner, "completed", ago=timedelta(minutes=1), took_ms=10)
    assert ask(staff, "1h")["api_connectivity"]["healthy_endpoints"] == before["healthy_endpoints"]


def test_a_model_that_cannot_be_routed_says_why(staff: Client) -> None:
    empty = ModelMapping.objects.create(key=f"m{uuid4().hex[:8]}")
    keyless = ModelMapping.objects.create(key=f"m{uuid4().hex[:8]}")
    endpoint = Endpoint.objects.create(name=keyless.key, provider="x", base_url="http://127.0.0.1:1")
    ModelCandidate.objects.create(mapping=keyless, endpoint=endpoint, model="m")
    numbers = ask(staff, "1h")
    reasons = [row_of(numbers, m.key)["availability_reason"] for m in (empty, keyless)]
    assert reasons == ["no_candidate", "no_active_endpoint_with_key"]
    found = numbers["mapped_models"]
    assert found["total"] == found["available"] + found["unavailable"] == len(found["rows"])


def test_a_model_on_an_endpoint_that_needs_no_key_is_available(staff: Client) -> None:
    mapping = ModelMapping.objects.create(key=f"m{uuid4().hex[:8]}")
    local = Endpoint.objects.create(
        name=mapping.key, provider="local", base_url="http://127.0.0.1:1/v1", needs_key=False
    )
    ModelCandidate.objects.create(mapping=mapping, endpoint=local, model="m")
    row = row_of(ask(staff, "1h"), mapping.key)
    assert (row["availability"], row["endpoint_id"]) == (True, local.pk)


def test_only_staff_may_look_and_only_at_the_three_windows(staff: Client, client: Client) -> None:
    path = "/api/v1/stats/dashboard"
    assert staff.http.get(path).json()["time_window"] == "24h"
    refused = staff.http.get(path, params={"time_window": "1y"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_time_window")
    answer = client.http.get(path)
    assert (answer.status_code, answer.json()["code"]) == (403, "forbidden")


def test_many_dashboards_cost_one_count(staff: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[str] = []
    count = dashboard._count
    monkeypatch.setattr(dashboard, "_count", lambda window: counted.append(window) or count(window))  # type: ignore[func-returns-value]
    dashboard.clear_cache()
    for _ in range(5):
        staff.http.get("/api/v1/stats/dashboard")
    assert counted == ["24h"]
