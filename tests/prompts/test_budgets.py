"""Budgets: how much accounts, and the whole installation, may spend a day and a month (issue 6)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth import get_user_model
from django.db import IntegrityError, transaction
from django.test import Client as Browser
from django.utils import timezone

from agents.spending import budget_checks as asking
from config.database import connection, run_sync
from conversations.models import Run, Spend
from conversations.runs import spending
from prompts.allowances import budgets
from prompts.models import Budget, Entitlement, ModelCandidate, Tier
from tests.support.client import Client, ScriptedModel
from tests.support.fakes.fake_model import FakeModel, text, tool_calls
from tests.support.spending import STEP_USD, priced, run_with_tools, spent

RUNS = "/api/v1/agent/runs"
USAGE = "/api/v1/agent/usage"
CENT = Decimal("0.01")
Scripted = Callable[..., ScriptedModel]
Made = Callable[..., Client]


@pytest.fixture
def budget() -> Iterator[Callable[..., Budget]]:
    """Make budgets that are gone after the test: they hold for everybody's runs."""
    made: list[Budget] = []

    def make(**fields: Any) -> Budget:
        made.append(Budget.objects.create(**fields))
        budgets.clear_cache()
        return made[-1]

    yield make
    Budget.objects.filter(pk__in=[one.pk for one in made]).delete()
    budgets.clear_cache()


def spend(client: Client, usd: Decimal | None, *, day: date | None = None, tokens: int = 10) -> None:
    """As if runs of the account had spent this on the day."""
    day = day or timezone.localdate()
    own = {"day": day, "runs": 1, "input_tokens": tokens, "cost_usd": usd}
    shard = Spend.objects.filter(owner=client.user, day=day).count()
    Spend.objects.create(owner=client.user, shard=shard, **own)


def start(client: Client, model: str = "demo", **more: Any) -> Any:
    body = {"model": model, "text": "squat", "enable_exercise_search": False} | more
    return client.http.post(RUNS, json=body)


def check_refused(answer: Any, **facts: Any) -> dict[str, Any]:
    """A 429 that says what is used up and when to come again."""
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["code"]) == (429, "budget_exceeded"), body
    assert 0 < int(answer.headers["Retry-After"]) <= 31 * 86_400 + 3_600
    assert {key: body.get(key) for key in facts} == facts
    return body


# --- before the run -----------------------------------------------------------------------------


def test_over_the_days_budget_a_run_is_refused_until_midnight(
    client: Client, make_client: Made, budget: Any
) -> None:
    budget(user=client.user, usd_per_day=CENT)
    assert start(client).status_code == 202
    spend(client, CENT)
    refused = start(client)
    check_refused(refused, scope="account", period="day", unit="usd", limit="0.01", used="0.01")
    assert int(refused.headers["Retry-After"]) <= 90_000
    assert Run.objects.filter(owner=client.user).count() == 1
    assert start(make_client()).status_code == 202


def test_a_limit_in_tokens_and_one_of_a_month(client: Client, budget: Any) -> None:
    held = budget(user=client.user, tokens_per_month=100)
    spend(client, None, tokens=99)
    assert start(client).status_code == 202
    spend(client, None, tokens=1)
    check_refused(start(client), period="month", unit="tokens", limit=100)
    Budget.objects.filter(pk=held.pk).update(tokens_per_month=None, usd_per_month=0)
    check_refused(start(client), period="month", unit="usd", limit="0")


THREAD, RUN = str(uuid4()), uuid4().hex
SAID = {"id": "1", "role": "user", "content": "hi"}
INPUT = [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (RUNS, {"model": "demo", "text": "hi"}),
        (RUNS, {"threadId": THREAD, "runId": RUN, "messages": [SAID]}),
        ("/api/v1/agent/ag-ui", {"threadId": THREAD, "runId": RUN, "messages": [SAID], "tools": []}),
        ("/process", {"input": INPUT}),
        ("/process", {"input": INPUT, "stream": False}),
        ("/process/task", {"input": INPUT}),
        ("/v1/responses", {"model": "demo", "input": "hi"}),
        ("/v1/responses", {"model": "demo", "input": "hi", "stream": True}),
        ("/v1/chat/completions", {"model": "demo", "messages": [SAID]}),
        ("/v1/chat/completions", {"model": "demo", "messages": [SAID], "stream": True}),
    ],
)
def test_every_dialect_refuses_before_the_run(
    client: Client, budget: Any, path: str, body: dict[str, Any]
) -> None:
    budget(user=client.user, tokens_per_day=0)
    check_refused(client.http.post(path, json=body), unit="tokens", limit=0, used=0)
    assert not Run.objects.filter(owner=client.user).exists()


def test_a_repeated_request_gives_its_run_although_the_budget_is_used_up(
    client: Client, budget: Any
) -> None:
    key = {"Idempotency-Key": uuid4().hex}
    body = {"model": "demo", "text": "hi"}
    first = client.http.post(RUNS, json=body, headers=key)
    budget(user=client.user, usd_per_day=0)
    again = client.http.post(RUNS, json=body, headers=key)
    assert (again.status_code, again.json()["run_id"]) == (202, first.json()["run_id"])
    check_refused(start(client))


def test_runs_that_end_at_once_are_all_counted(client: Client, scripted: Scripted, budget: Any) -> None:
    model, runs = priced(scripted("hello")), 24
    budget(user=client.user, usd_per_day=STEP_USD * runs)
    with ThreadPoolExecutor(runs) as pool:
        started = list(pool.map(lambda _: start(client, model.name), range(runs)))
    for answer in started:
        assert answer.status_code == 202, answer.text
        client.wait_for(answer.json()["run_id"], "completed")
    assert (spent(client)["runs"], spent(client)["cost_usd"]) == (runs, STEP_USD * runs)
    with ThreadPoolExecutor(8) as pool:
        for refused in pool.map(lambda _: start(client, model.name), range(8)):
            check_refused(refused, unit="usd")


def test_the_accounts_own_budget_counts_before_its_tiers_and_that_before_everybodys(
    client: Client, budget: Any
) -> None:
    spend(client, CENT)
    budget(usd_per_day=CENT)
    check_refused(start(client), limit="0.01")
    tier = Tier.objects.create(name=uuid4().hex[:12], rank=5000 + Tier.objects.count())
    Entitlement.objects.create(user=client.user, tier=tier)
    budget(tier=tier, usd_per_day=2 * CENT)
    assert start(client).status_code == 202
    own = budget(user=client.user, usd_per_day=0)
    check_refused(start(client), limit="0")
    Budget.objects.filter(pk=own.pk).update(usd_per_day=None)  # no limit at all
    assert start(client).status_code == 202
    Budget.objects.filter(pk=own.pk).update(usd_per_day=0, is_active=False)  # as if there were none
    assert start(client).status_code == 202
    Entitlement.objects.filter(user=client.user).update(expires_at=timezone.now())
    check_refused(start(client), limit="0.01")


def test_the_installations_budget_holds_for_everybody_and_tells_nobody_its_sums(
    client: Client, make_client: Made, budget: Any
) -> None:
    budget(user=client.user)
    budget(is_total=True, tokens_per_day=0)
    body = check_refused(start(client), scope="installation", period="day", unit="tokens")
    assert not {"limit", "used"} & body.keys()
    check_refused(start(make_client()), scope="installation")
    assert client.http.get(USAGE).json()["exceeded"]["scope"] == "installation"


def test_everybodys_spending_is_counted_together(client: Client, scripted: Scripted) -> None:
    def everybodys() -> Decimal:
        rows = Spend.objects.filter(owner=None).values_list("cost_usd", flat=True)
        return sum((cost for cost in rows if cost is not None), Decimal())

    before = everybodys()
    client.wait_for(start(client, priced(scripted("hello")).name).json()["run_id"], "completed")
    assert everybodys() - before == STEP_USD


def test_a_call_without_a_price_counts_towards_tokens_only(
    client: Client, scripted: Scripted, budget: Any
) -> None:
    held = budget(user=client.user, usd_per_day=Decimal("0.0001"))
    model = scripted("hello").name
    client.wait_for(start(client, model).json()["run_id"], "completed")
    again = start(client, model)
    assert again.status_code == 202
    client.wait_for(again.json()["run_id"], "completed")
    Budget.objects.filter(pk=held.pk).update(tokens_per_day=38)
    check_refused(start(client, model), unit="tokens", used=38)


def test_where_there_are_no_budgets_none_is_asked_for(
    client: Client, scripted: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: Any) -> None:
        raise AssertionError("there is no budget")

    Budget.objects.all().delete()
    budgets.clear_cache()
    monkeypatch.setattr(asking, "check", never)
    monkeypatch.setattr(asking, "_standing_now", never)
    accepted = start(client, scripted("hello").name)
    assert client.wait_for(accepted.json()["run_id"], "completed", "failed")["error"] is None


# --- days and months ----------------------------------------------------------------------------


def test_a_new_day_begins_anew_and_a_new_month_too(client: Client, budget: Any) -> None:
    budget(user=client.user, usd_per_day=CENT, usd_per_month=3 * CENT)
    today = timezone.localdate()
    spend(client, CENT)
    check_refused(start(client), period="day")
    Spend.objects.filter(owner=client.user).update(day=today.replace(day=1) - timedelta(days=1))
    assert start(client).status_code == 202
    Spend.objects.filter(owner=client.user).delete()
    spend(client, 3 * CENT, day=today.replace(day=1))
    check_refused(start(client), period="month", used="0.03")


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Etc/GMT+12", "UTC"])
def test_the_day_is_that_of_the_time_zone(
    client: Client, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    monkeypatch.setattr(spending, "settings", SimpleNamespace(TIME_ZONE=zone))
    today = datetime.now(UTC).astimezone(ZoneInfo(zone)).date()
    for day in (today - timedelta(days=1), today, today + timedelta(days=1)):
        spend(client, CENT * day.day, day=day)
    found = run_sync(_spending(client))
    if found.today == today:  # not past midnight since
        assert found.day.cost_usd == CENT * today.day
        yesterday = today - timedelta(days=1)
        before = yesterday.day if yesterday.month == today.month else 0
        assert found.month.cost_usd == CENT * (today.day + before)


async def _spending(client: Client) -> spending.Spending:
    async with connection() as held:
        return await spending.fetch_spending(held, client.user.pk)


def test_retry_after_ends_with_the_day_or_the_month(monkeypatch: pytest.MonkeyPatch) -> None:
    def left(*now: int) -> tuple[int, int]:
        at = datetime(*now, tzinfo=ZoneInfo("Europe/Berlin"))  # type: ignore[misc,arg-type]
        monkeypatch.setattr(timezone, "localtime", lambda: at)
        return asking.seconds_left("day"), asking.seconds_left("month")

    assert left(2026, 12, 31, 23, 59, 50) == (10, 10)
    assert left(2026, 2, 27, 0, 0) == (86_400, 2 * 86_400)
    assert left(2026, 1, 31, 12, 0) == (43_200, 43_200)


# --- within the run -----------------------------------------------------------------------------


def test_a_run_ends_before_the_model_call_that_is_not_paid_for(
    client: Client, scripted: Scripted, provider: FakeModel, budget: Any
) -> None:
    name = uuid4().hex
    provider.script(tool_calls(("c1", "no.such.tool", "{}")), text("never asked for"), name=name)
    budget(user=client.user, usd_per_day=STEP_USD)
    made = run_with_tools(client, priced(scripted(f"script:{name}")))
    assert (made.status, made.error_code) == ("failed", "budget_exceeded")
    assert len(provider.requests_for(f"script:{name}")) == 1
    assert made.cost_usd == STEP_USD
    path = f"{RUNS}/{made.id.hex}/events?dialect="
    for dialect in ("text", "ag-ui", "agent-api", "responses", "chat-completions"):
        assert "budget_exceeded" in client.http.get(path + dialect).text, dialect
    check_refused(start(client), used=f"{STEP_USD}")


def test_a_run_that_was_accepted_in_time_asks_again_before_its_first_call(
    client: Client, scripted: Scripted, budget: Any, provider: FakeModel
) -> None:
    model = scripted("hello")
    busy = client.start("go", scripted("endless").name, enable_exercise_search=False)
    waiting = start(client, model.name, conversation_id=busy["conversation_id"]).json()
    budget(user=client.user, tokens_per_day=0)
    client.http.post(f"{RUNS}/{busy['run_id']}/cancel")
    failed = client.wait_for(waiting["run_id"], "failed")
    assert failed["error"]["code"] == "budget_exceeded"


# --- the owner's own view -----------------------------------------------------------------------


def test_an_account_sees_what_it_used_and_what_is_left(
    client: Client, make_client: Made, scripted: Scripted, budget: Any
) -> None:
    nothing = client.http.get(USAGE).json()
    assert nothing["today"] | {"date": ""} == {
        "date": "",
        "runs": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "unpriced_tokens": 0,
        "cost_usd": None,
    }
    assert (nothing["budget"], nothing["exceeded"]) == ([], None)
    budget(user=client.user, usd_per_day=CENT, tokens_per_month=19)
    client.wait_for(start(client, priced(scripted("hello")).name).json()["run_id"], "completed")
    seen = client.http.get(USAGE).json()
    assert seen["today"]["cost_usd"] == seen["month"]["cost_usd"] == "0.000102"
    assert seen["today"]["date"].startswith(seen["month"]["month"])
    dollars, tokens = seen["budget"]
    resets = dollars.pop("resets_in_s"), tokens.pop("resets_in_s")
    assert 0 < resets[0] <= resets[1]
    assert dollars == {
        "period": "day",
        "unit": "usd",
        "limit": "0.01",
        "used": "0.000102",
        "left": "0.009898",
    }
    assert tokens == {"period": "month", "unit": "tokens", "limit": 19, "used": 19, "left": 0}
    assert seen["exceeded"]["period"] == "month"
    assert make_client().http.get(USAGE).json()["today"]["runs"] == 0


def test_without_a_token_there_is_no_view(client: Client) -> None:
    assert client.http.get(USAGE, headers={"Authorization": ""}).status_code == 401
    assert client.http.post(USAGE).status_code == 405


# --- admin --------------------------------------------------------------------------------------


@pytest.fixture
def staff() -> Browser:
    user = get_user_model().objects.create_user(username=uuid4().hex, is_staff=True, is_superuser=True)
    browser = Browser()
    browser.force_login(user)
    return browser


def test_staff_enter_budgets_and_are_told_what_is_wrong(
    client: Client, staff: Browser, scripted: Scripted
) -> None:
    page, model = "/admin/prompts/budget/add/", scripted("hello")
    shown = staff.get(page).content.decode()
    assert "A call whose price is unknown counts towards limits in tokens" in shown
    tier = Tier.objects.create(name=uuid4().hex[:12], rank=7000 + Tier.objects.count())
    own = {"user": client.user.pk, "usd_per_day": "0", "is_active": "on"}
    both = staff.post(page, own | {"tier": tier.pk}).content.decode()
    assert "Choose an account, or a tier, or all together: one of them." in both
    assert "greater than or equal to 0" in staff.post(page, own | {"usd_per_day": "-1"}).content.decode()
    try:
        assert staff.post(page, own).status_code == 302
        assert "This account has a budget already" in staff.post(page, own).content.decode()
        check_refused(start(client, model.name))
        assert client.user.username in staff.get("/admin/prompts/budget/").content.decode()
    finally:
        Budget.objects.filter(user=client.user).delete()
        budgets.clear_cache()


def test_the_database_refuses_a_second_budget_for_the_same(client: Client, budget: Any) -> None:
    for whom in ({"user": client.user}, {"is_total": True}, {}):
        budget(**whom)
        with pytest.raises(IntegrityError), transaction.atomic():
            Budget.objects.create(**whom)
    with pytest.raises(IntegrityError), transaction.atomic():
        Budget.objects.create(user=client.user, is_total=True)


def test_staff_enter_own_prices_at_a_mapping(staff: Browser, scripted: Scripted) -> None:
    model = scripted("hello")
    candidate = ModelCandidate.objects.get(mapping__key=model.name.removeprefix("global:"))
    page = f"/admin/prompts/modelmapping/{candidate.mapping_id}/change/"
    assert "unknown: only tokens are counted" in staff.get(page).content.decode()
    inline = {
        "candidates-TOTAL_FORMS": 1,
        "candidates-INITIAL_FORMS": 1,
        "candidates-0-id": candidate.pk,
        "candidates-0-mapping": candidate.mapping_id,
        "candidates-0-position": 1,
        "candidates-0-endpoint": candidate.endpoint_id,
        "candidates-0-model": "hello",
    }
    body = {"key": candidate.mapping.key, "is_active": "on", "supports_tools": "on"} | inline
    half = staff.post(page, body | {"candidates-0-input_price": "2"})
    assert "Enter both the input and the output price" in half.content.decode()
    below = staff.post(page, body | {"candidates-0-input_price": "-2"})
    assert "greater than or equal to 0" in below.content.decode()
    whole = body | {"candidates-0-input_price": "2", "candidates-0-output_price": "0.150001"}
    assert staff.post(page, whole).status_code == 302
    candidate.refresh_from_db()
    prices = candidate.input_price, candidate.output_price
    assert prices == (Decimal(2), Decimal("0.150001"))
    assert "own price" in staff.get(page).content.decode()
