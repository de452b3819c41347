"""Runs a day on a model family, and models that need a tier (specs/text-run.md §4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.test import Client as Browser
from django.utils import timezone

from prompts.allowances import quotas
from prompts.endpoints import routing
from prompts.models import Endpoint, Entitlement, ModelMapping, Quota, QuotaUse, Tier
from tests.support.client import Client

RUNS = "/api/v1/agent/runs"
Made = Callable[..., Client]


@pytest.fixture
def model() -> ModelMapping:
    """A mapping of its own onto the offline demo."""
    made = ModelMapping.objects.create(key=f"q{uuid4().hex[:12]}")
    made.candidates.create(endpoint=Endpoint.objects.get(name="Offline demo"), model="demo-1")
    return made


def limit(family: str, runs: int, **whom: Any) -> Quota:
    made = Quota.objects.create(family=family, runs_per_day=runs, **whom)
    quotas.clear_cache()
    return made


def tier(rank_from: int = 0) -> Tier:
    return Tier.objects.create(name=uuid4().hex[:12], rank=rank_from + Tier.objects.count() + 1)


def start(client: Client, model: ModelMapping, key: str | None = None, **more: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    body = {"model": model.name, "text": "squat", "enable_exercise_search": False} | more
    return client.http.post(RUNS, json=body, headers=headers)


def statuses(client: Client, model: ModelMapping, count: int, **more: Any) -> Counter[int]:
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: start(client, model, **more), range(count)))
    return Counter(answer.status_code for answer in answers)


def used(client: Client, family: str) -> int:
    return QuotaUse.objects.get(user=client.user, family=family).used


# --- quotas -------------------------------------------------------------------------------------


def test_when_the_runs_of_the_day_are_used_up_a_post_is_refused(
    client: Client, make_client: Made, model: ModelMapping
) -> None:
    limit(model.key, 2)
    assert [start(client, model).status_code for _ in range(3)] == [202, 202, 429]
    refused = start(client, model)
    body = refused.json()
    assert body["code"] == "model_daily_quota_exceeded"
    assert {key: body[key] for key in ("model_key", "limit", "used")} == {
        "model_key": model.key,
        "limit": 2,
        "used": 2,
    }
    assert 0 < int(refused.headers["Retry-After"]) <= 86_400
    assert start(make_client(), model).status_code == 202
    assert start(client, ModelMapping.objects.get(key="demo")).status_code == 202


def test_of_a_hundred_at_once_no_more_than_the_limit_are_accepted(
    client: Client, model: ModelMapping
) -> None:
    from conversations.models import Run

    limit(model.key, 7)
    assert statuses(client, model, 100) == {202: 7, 429: 93}
    assert used(client, model.key) == 7
    assert Run.objects.filter(owner=client.user).count() == 7


def test_a_repeated_request_is_counted_once(client: Client, model: ModelMapping) -> None:
    limit(model.key, 2)
    assert statuses(client, model, 40, key="same") == {202: 40}
    assert used(client, model.key) == 1
    assert start(client, model).status_code == 202
    assert start(client, model).status_code == 429
    assert start(client, model, key="same").status_code == 202


def test_a_run_that_is_not_accepted_is_not_counted(
    client: Client, make_client: Made, model: ModelMapping
) -> None:
    limit(model.key, 1)
    foreign = start(make_client(), model).json()["conversation_id"]
    assert start(client, model, conversation_id=foreign).status_code == 404
    assert not QuotaUse.objects.filter(user=client.user).exists()
    assert start(client, model).status_code == 202


def test_a_new_day_begins_anew(client: Client, model: ModelMapping) -> None:
    limit(model.key, 1)
    assert [start(client, model).status_code for _ in range(2)] == [202, 429]
    QuotaUse.objects.filter(user=client.user).update(day=timezone.localdate() - timedelta(days=1))
    assert [start(client, model).status_code for _ in range(2)] == [202, 429]
    assert used(client, model.key) == 1


def test_the_accounts_own_quota_counts_before_its_tiers_and_that_before_everybodys(
    client: Client, model: ModelMapping
) -> None:
    limit(model.key, 0)
    refused = start(client, model).json()
    assert (refused["limit"], refused["used"]) == (0, 0)
    held = tier()
    limit(model.key, 1, tier=held)
    limit(model.key, 9, tier=tier())
    assert start(client, model).status_code == 429
    entitled = Entitlement.objects.create(user=client.user, tier=held)
    assert [start(client, model).status_code for _ in range(2)] == [202, 429]
    limit(model.key, 2, user=client.user)
    assert [start(client, model).status_code for _ in range(2)] == [202, 429]
    Quota.objects.filter(user=client.user).delete()
    entitled.expires_at = timezone.now()
    entitled.save()
    assert start(client, model).json()["limit"] == 0


def test_models_of_one_family_share_a_quota(client: Client, model: ModelMapping) -> None:
    other = ModelMapping.objects.create(key=f"{model.key}-b", family=model.key)
    other.candidates.create(endpoint=Endpoint.objects.get(name="Offline demo"), model="demo-1")
    limit(model.key, 2)
    assert start(client, model).status_code == start(client, other).status_code == 202
    assert start(client, model).status_code == start(client, other).status_code == 429


def test_the_database_refuses_a_second_quota_for_the_same(client: Client) -> None:
    family, held = uuid4().hex, tier()
    for whom in ({}, {"user": client.user}, {"tier": held}):
        Quota.objects.create(family=family, runs_per_day=1, **whom)
        with pytest.raises(IntegrityError), transaction.atomic():
            Quota.objects.create(family=family, runs_per_day=2, **whom)
    with pytest.raises(IntegrityError), transaction.atomic():
        Quota.objects.create(family=uuid4().hex, runs_per_day=2, user=client.user, tier=held)


# --- tiers --------------------------------------------------------------------------------------


def test_a_model_for_a_tier_does_not_exist_for_who_is_below_it(
    client: Client, model: ModelMapping
) -> None:
    def state() -> tuple[bool, int]:
        listed = client.http.get("/api/v1/llm/models").json()["data"]
        return model.name in {item["name"] for item in listed}, start(client, model).status_code

    assert state() == (True, 202)
    low, needed, high = tier(), tier(), tier()
    model.required_tier = needed.name
    model.save()
    routing.clear_cache()
    assert state() == (False, 422)
    assert start(client, model).json()["code"] == "model_not_allowed"
    entitled = Entitlement.objects.create(user=client.user, tier=low)
    assert state() == (False, 422)
    for enough in (needed, high):
        Entitlement.objects.filter(user=client.user).update(tier=enough)
        assert state() == (True, 202)
    item = next(
        item
        for item in client.http.get("/api/v1/llm/models").json()["data"]
        if item["name"] == model.name
    )
    assert item["required_tier"] == needed.name
    entitled.refresh_from_db()
    entitled.expires_at = timezone.now()
    entitled.save()
    assert state() == (False, 422)
    ModelMapping.objects.filter(pk=model.pk).update(required_tier="gone")
    Entitlement.objects.filter(user=client.user).update(expires_at=None)
    routing.clear_cache()
    assert state() == (False, 422)


# --- admin --------------------------------------------------------------------------------------


def test_staff_make_tiers_entitlements_and_quotas_in_admin(client: Client, model: ModelMapping) -> None:
    staff = get_user_model().objects.create_user(username=uuid4().hex, is_staff=True, is_superuser=True)
    browser, pages, name = Browser(), "/admin/prompts", uuid4().hex[:12]
    browser.force_login(staff)
    rank = 1000 + Tier.objects.count()
    assert browser.post(f"{pages}/tier/add/", {"name": name, "rank": rank}).status_code == 302
    held = {"user": client.user.pk, "tier": name}
    assert browser.post(f"{pages}/entitlement/add/", held).status_code == 302
    quota = {"family": model.key, "user": client.user.pk, "runs_per_day": "0"}
    assert browser.post(f"{pages}/quota/add/", quota).status_code == 302
    assert start(client, model).status_code == 429
    both = browser.post(f"{pages}/quota/add/", quota | {"tier": name, "family": "x"})
    assert both.status_code == 200
    for page in ("tier", "entitlement", "quota", "quotause"):
        assert browser.get(f"{pages}/{page}/").status_code == 200
    assert browser.get(f"{pages}/quotause/add/").status_code == 403


def test_a_quota_on_what_is_no_model_is_refused_at_save(model: ModelMapping) -> None:
    staff = get_user_model().objects.create_user(username=uuid4().hex, is_staff=True, is_superuser=True)
    browser = Browser()
    browser.force_login(staff)
    sent = {"family": "no-such-model", "runs_per_day": "1", "user": str(staff.pk)}
    refused = browser.post("/admin/prompts/quota/add/", sent)
    assert "family" in refused.context["adminform"].form.errors
    taken = browser.post("/admin/prompts/quota/add/", sent | {"family": f"global:{model.key}"})
    assert taken.status_code == 302
