"""Spending in admin: what stands on the page is what budgets count by."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from django.test import Client as Browser
from django.utils import timezone
from django.utils.html import strip_tags

from conversations.models import Run, Spend
from prompts.allowances import budgets
from prompts.models import Budget
from tests.support.client import Client, ScriptedModel
from tests.support.spending import STEP_USD, priced, run_with_tools

pytestmark = pytest.mark.once

PAGE = "/admin/conversations/spend/"


def browser_of(role: str) -> Browser:
    user = get_user_model().objects.create_user(username=f"{role}-{uuid4().hex}", is_staff=True)
    user.groups.add(Group.objects.get(name=role))
    browser = Browser()
    browser.force_login(user)
    return browser


@pytest.fixture
def owner() -> Browser:
    return browser_of("owner")


@pytest.fixture
def account() -> Any:
    """An account that spent something today, on two shards, and something in the month before."""
    user = get_user_model().objects.create_user(username=f"spender-{uuid4().hex}")
    today = timezone.localdate()
    for day, shard, cost in (
        (today, 0, "1.5"),
        (today, 1, "0.25"),
        (today - timedelta(days=40), 0, "9"),
    ):
        Spend.objects.create(
            owner=user, day=day, shard=shard, runs=2, input_tokens=100, output_tokens=20,
            unpriced_tokens=5, cost_usd=Decimal(cost),
        )  # fmt: skip
    return user


def row_of(page: str, link: str) -> list[str]:
    """The cells of the table row with a link to this end of an address."""
    rows = [row.rpartition("<tr")[2] for row in page.split("</tr>")]
    (row,) = (row for row in rows if f'{link}">' in row)
    return [" ".join(strip_tags("<td" + cell).split()) for cell in row.split("<td")[1:]]


def test_an_accounts_spending_stands_beside_what_its_budget_leaves(owner: Browser, account: Any) -> None:
    budget = Budget.objects.create(user=account, usd_per_day=Decimal(2), tokens_per_month=200)
    budgets.clear_cache()
    page = owner.get(PAGE, {"user": account.username}).content.decode()
    assert row_of(page, f"user={account.pk}")[1:6] == ["4", "200", "40", "10", "$1.75"]
    assert row_of(page, f"user={account.pk}")[6] == "$0.25 a day; 0 tokens a month"
    assert row_of(page, f"/budget/{budget.pk}/change/")[1:] == ["$2.00 a day", "$1.75", "$0.25"]
    assert 'class="used-up"' in page
    today = timezone.localdate().isoformat()
    assert f"<td>{today}</td><td>4</td><td>200</td>" in page


def test_other_days_are_asked_for_and_wrong_ones_told(owner: Browser, account: Any) -> None:
    ago = timezone.localdate() - timedelta(days=40)
    asked = {"user": str(account.pk), "from": ago.isoformat(), "to": ago.isoformat()}
    page = owner.get(PAGE, asked).content.decode()
    assert row_of(page, f"user={account.pk}")[1:7] == ["2", "100", "20", "5", "$9.00", "no limit"]
    wrong = ({"from": "soon"}, {"from": "2026-02-02", "to": "2026-02-01"}, {"from": "1999-01-01"})
    for given in wrong:
        refused = owner.get(PAGE, given)
        assert refused.status_code == 200
        assert "Choose days from and to, 366 at most" in refused.content.decode()


@pytest.mark.parametrize(
    "given", [{"user": "nobody-is-named-so"}, {"user": str(UUID(int=7)), "p": "9999"}]
)
def test_a_page_without_anybody_says_so(owner: Browser, given: dict[str, str]) -> None:
    page = owner.get(PAGE, given).content.decode()
    assert "Nobody has spent anything in these days." in page
    assert ("No user is named like that." in page) == (given["user"] == "nobody-is-named-so")


def test_a_run_is_counted_as_its_budget_counts_it(
    owner: Browser, client: Client, scripted: Callable[..., ScriptedModel]
) -> None:
    run = run_with_tools(client, priced(scripted("hello")))
    assert Run.objects.get(pk=run.pk).cost_usd == STEP_USD
    page = owner.get(PAGE, {"user": client.user.username}).content.decode()
    assert row_of(page, f"user={client.user.pk}")[1:4] == ["1", "11", "8"]


def test_the_page_asks_the_same_number_of_questions_however_many_spent(
    owner: Browser, django_assert_max_num_queries: Any
) -> None:
    stem = f"many-{uuid4().hex}"
    users = get_user_model().objects.bulk_create(
        [get_user_model()(username=f"{stem}-{n:02}") for n in range(30)]
    )
    today = timezone.localdate()
    Spend.objects.bulk_create(
        [Spend(owner=user, day=today, shard=0, runs=1, cost_usd=n) for n, user in enumerate(users)]
    )
    first = owner.get(PAGE, {"user": stem}).content.decode()
    assert first.count(f">{stem}-") == 25
    assert first.index(f"{stem}-29") < first.index(f"{stem}-28")
    second = owner.get(PAGE, {"user": stem, "p": "2"}).content.decode()
    assert second.count(f">{stem}-") == 5
    with django_assert_max_num_queries(12):
        owner.get(PAGE, {"user": stem})


def test_who_may_not_see_budgets_sees_spending_alone(account: Any) -> None:
    Budget.objects.create(user=account, usd_per_day=Decimal(2))
    page = browser_of("analyst").get(PAGE, {"user": account.username})
    assert page.status_code == 200
    assert "Budget of" not in page.content.decode()
    assert browser_of("support").get(PAGE).status_code == 403
