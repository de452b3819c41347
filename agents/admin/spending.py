"""Spending in admin: by day, account and model, and the rest of every budget.

Days and accounts are read from the counters by which budgets refuse runs, models from the metrics; so a
run that starts now may still spend the rest that is shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.db.models import Q
from django.http import HttpRequest
from django.utils import timezone

from agents.spending import budget_checks
from agents.spending.budget_checks import Level, dollars
from config import database
from config.staff.staff_pages import ReportAdmin
from config.staff.user_search import find_users
from conversations.metrics import query_sql
from conversations.metrics.query import parse_query as parse_metrics_query
from conversations.metrics.rollup_reads import open_snapshot
from conversations.models import Spend
from conversations.runs import spending_report
from conversations.runs.spending import SpendingSums
from prompts.models import Budget

_ACCOUNTS: Final = 25
_BUDGETS: Final = 50
_MOST_DAYS: Final = 366
_MOST_PAGES: Final = 1_000


@dataclass(frozen=True)
class SpendQuery:
    """The parameters of the page: days (both included), an account, and the page of accounts."""

    first: date
    last: date
    user: str
    page: int


@admin.register(Spend)
class SpendAdmin(ReportAdmin):
    """The page in the place of the list; only runs write its rows."""

    title = "Spending"
    template = "admin/agents/spending.html"

    def figures(self, request: HttpRequest) -> dict[str, Any]:
        question = _read(request)
        owners = find_users(question.user) if question.user else None
        named = _budgets(owners) if request.user.has_perm("prompts.view_budget") else []
        return database.run_sync(_page(question, owners, named)) | {
            "asked": question,
            "ranges": _ranges(question),
            "query": urlencode(_range(question.first, question.last, question.user)),
        }


def _read(request: HttpRequest) -> SpendQuery:
    """Return the parameters; report invalid days or too long a time, and use this month instead."""
    today = timezone.localdate()
    try:
        first = date.fromisoformat(request.GET.get("from") or today.replace(day=1).isoformat())
        last = date.fromisoformat(request.GET.get("to") or today.isoformat())
        if not timedelta() <= last - first <= timedelta(days=_MOST_DAYS):
            raise ValueError
    except ValueError:
        messages.error(request, f"Choose days from and to, {_MOST_DAYS} at most, the first one first.")
        first, last = today.replace(day=1), today
    page = request.GET.get("p") or ""
    number = int(page) if page.isascii() and page.isdigit() and len(page) <= 4 else 1
    user = request.GET.get("user", "").replace("\x00", "").strip()[:200]
    return SpendQuery(first, last, user, min(max(1, number), _MOST_PAGES))


async def _page(question: SpendQuery, owners: list[UUID] | None, named: list[Budget]) -> dict[str, Any]:
    """Return everything that the page shows."""
    one = owners[0] if owners and len(owners) == 1 else None
    first, last = question.first, question.last
    async with open_snapshot() as connection:
        found = await spending_report.fetch_spending_by_account(
            connection,
            first,
            last,
            owners=owners,
            limit=_ACCOUNTS + 1,
            past=_ACCOUNTS * (question.page - 1),
        )
        shown = found[:_ACCOUNTS]
        of_budgets = [budget.user_id for budget in named if budget.user_id]
        left = await budget_checks.find_levels(
            connection, [*(row.user_id for row in shown), *of_budgets]
        )
        everybodys = await budget_checks.find_installation_levels(connection)
        days = (
            []
            if owners and one is None
            else await spending_report.fetch_spending_by_day(connection, first, last, owner_id=one)
        )
    return {
        "accounts": [(row, _cells(row.spent), left.get(row.user_id, [])) for row in shown],
        "more": len(found) > _ACCOUNTS,
        "budgets": [(budget, _left(budget, left, everybodys)) for budget in named],
        "days": [(day, _cells(spent)) for day, spent in days],
        "total": _cells(spending_report.sum_spending([spent for _, spent in days])),
        "models": await _models(question, one) if owners is None or one else [],
        "unknown": owners == [],
    }


def _cells(spent: SpendingSums) -> list[str]:
    """Return the runs, the tokens in and out, the tokens without a price, and the cost."""
    counted = (spent.runs, spent.input_tokens, spent.output_tokens, spent.unpriced_tokens)
    return [*(f"{count:,}" for count in counted), dollars(spent.cost_usd)]


_MODELS: Final = """
SELECT model, sum(runs)::bigint, sum(input_tokens)::bigint, sum(output_tokens)::bigint,
    sum(unpriced_tokens)::bigint, sum(cost_usd) FROM ({cells}) cells
GROUP BY model ORDER BY sum(cost_usd) DESC, sum(runs) DESC, model LIMIT 100
"""


async def _models(question: SpendQuery, user_id: UUID | None) -> list[tuple[str, list[str]]]:
    """Return the models by their cost, for the runs that began in these days."""
    query = parse_metrics_query(_range(question.first, question.last, str(user_id or "")))
    statement = _MODELS.format(cells=query_sql.run_cells(query, "model"))
    async with open_snapshot() as connection:
        rows = await (
            await connection.execute(statement, query_sql.arguments(query), prepare=False)
        ).fetchall()
    return [
        (model, _cells(SpendingSums(runs, tokens_in, tokens_out, unpriced, _known(unpriced, cost))))
        for model, runs, tokens_in, tokens_out, unpriced, cost in rows
    ]


def _known(unpriced: int, cost: Decimal) -> Decimal | None:
    """Return the cost of a model; None if no call of it had a price."""
    return cost if cost or not unpriced else None


def _budgets(owners: list[UUID] | None) -> list[Budget]:
    """Return the active budgets, the installation's first; of accounts' own those of these owners."""
    active = Budget.objects.filter(is_active=True).select_related("user", "tier")
    if owners is not None:
        active = active.filter(Q(user=None) | Q(user__in=owners))
    return list(active.order_by("-is_total", "user_id", "tier_id")[:_BUDGETS])


def _left(budget: Budget, left: dict[UUID, list[Level]], everybodys: list[Level]) -> list[Level]:
    """Return how far a budget is used up; for one of many accounts the rows of accounts show it."""
    if budget.is_total:
        return everybodys
    return left.get(budget.user_id, []) if budget.user_id else []


def _range(first: date, last: date, user: str) -> dict[str, str]:
    """Return days, and a user if there is one, as the parameters of a query."""
    days = {"from": first.isoformat(), "to": last.isoformat()}
    return days | ({"user": user} if user else {})


def _ranges(question: SpendQuery) -> list[tuple[str, str]]:
    """Return often used ranges of days, as queries."""
    today = timezone.localdate()
    month = today.replace(day=1)
    before = (month - timedelta(days=1)).replace(day=1)
    named = (
        ("Today", today, today),
        ("This month", month, today),
        ("Last month", before, month - timedelta(days=1)),
        ("90 days", today - timedelta(days=89), today),
    )
    return [(title, urlencode(_range(first, last, question.user))) for title, first, last in named]
