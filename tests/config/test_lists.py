"""Admin's lists: what they ask the database, and what their search finds."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.contrib import admin
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client as Browser
from django.test.utils import CaptureQueriesContext

from agents.models import HostCall
from config.auth.bearer import create_api_token
from config.staff import lists
from config.staff.lists import LargeList, ModelAdmin, newest
from config.staff.user_search import find_users


@pytest.fixture
def owner() -> Browser:
    user = get_user_model().objects.create_superuser(username=f"admin-{uuid4().hex}", password="x")
    browser = Browser()
    browser.force_login(user)
    return browser


def address(model: Any) -> str:
    return f"/admin/{model._meta.app_label}/{model._meta.model_name}/"


LARGE = [model for model, page in admin.site._registry.items() if issubclass(type(page), LargeList)]


def test_every_page_is_a_model_admin_of_ours() -> None:
    theirs = {model for model, page in admin.site._registry.items() if not isinstance(page, ModelAdmin)}
    assert theirs == set()


@pytest.mark.parametrize("model", LARGE)
@pytest.mark.parametrize("term", ["", "some word", "3d0f6c1e-7f0a-4b57-9c0e-0d6b1d6f3b5a"])
def test_a_large_list_is_never_counted(owner: Browser, model: Any, term: str) -> None:
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert owner.get(address(model), {"q": term}).status_code == 200
    of_table = [query["sql"] for query in asked if model._meta.db_table in query["sql"]]
    assert of_table
    assert not [sql for sql in of_table if "COUNT(" in sql or "DISTINCT" in sql]


def test_a_search_finds_a_whole_id_anywhere_and_a_part_among_the_newest(
    owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    stem, run = uuid4().hex, uuid4()
    told: Any = {"action": "a", "result": "ok", "elapsed_us": 1}
    old = HostCall.objects.create(run_id=run, runner_id=f"{stem}-old", **told)
    new = HostCall.objects.create(runner_id=f"{stem}-new", **told)
    monkeypatch.setattr(lists.LargeList, "NEWEST", HostCall.objects.filter(pk__gt=old.pk).count())
    by_part = owner.get(address(HostCall), {"q": stem}).content.decode()
    assert f"{stem}-new" in by_part
    assert f"{stem}-old" not in by_part
    assert f"{stem}-old" in owner.get(address(HostCall), {"q": str(run)}).content.decode()
    assert list(newest(HostCall.objects.filter(pk__in=[old.pk, new.pk]), 0)) == []


def test_accounts_are_found_by_how_name_or_address_begins_in_any_case() -> None:
    stem = uuid4().hex[:20]
    users = get_user_model().objects
    named = users.create_user(username=f"Ada-{stem}", email=f"x-{stem}@example.org")
    addressed = users.create_user(username=uuid4().hex, email=f"ada-{stem}@example.org")
    assert set(find_users(f"ADA-{stem}")) == {named.pk, addressed.pk}
    assert find_users(str(named.pk)) == [named.pk]
    assert find_users(stem) == []


def test_a_token_is_found_by_its_beginning_its_name_and_its_user(owner: Browser) -> None:
    user = get_user_model().objects.create_user(username=f"holder-{uuid4().hex}")
    token, _ = create_api_token(user, f"laptop {uuid4().hex}")
    for term in (token.prefix, token.name[:20], user.username[:20]):
        assert token.name in owner.get("/admin/accounts/apitoken/", {"q": term}).content.decode()
    assert token.name not in owner.get("/admin/accounts/apitoken/", {"q": "nothing"}).content.decode()
