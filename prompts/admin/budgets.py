"""Budgets: what accounts and the whole installation may spend."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import admin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from config.listing import ModelAdmin
from prompts import budgets, published_prices
from prompts.models import Budget, ModelCandidate, ProviderDialect
from prompts.routing import routable_candidates

_MOST_NAMED: Final = 20
_HOW: Final = (
    "A run is refused (429 budget_exceeded) when a limit is used up, and one that is under way ends "
    "before its next model call. Runs count as they end, on the day of TIME_ZONE on which they do. An "
    "account's own budget replaces its tier's, and that the one of every account; the one for all "
    "accounts together holds beside them. An empty limit is none."
)
_UNPRICED: Final = (
    "A call whose price is unknown counts towards limits in tokens, and not towards limits in dollars: "
    "give such a model its own price at its mapping."
)


@admin.register(Budget)
class BudgetAdmin(ModelAdmin):
    """For everybody, for a tier, for one account, and for all together."""

    list_display = (
        "shown_whom",
        "usd_per_day",
        "usd_per_month",
        "tokens_per_day",
        "tokens_per_month",
        "is_active",
    )
    list_filter = ("is_active", "is_total", "tier")
    list_select_related = ("user", "tier")
    search_fields = ("user__username",)
    autocomplete_fields = ("user",)
    readonly_fields = ("unpriced",)
    fieldsets = (
        (None, {"fields": ("user", "tier", "is_total", "is_active"), "description": _HOW}),
        ("US dollars", {"fields": ("usd_per_day", "usd_per_month", "unpriced")}),
        ("Tokens", {"fields": ("tokens_per_day", "tokens_per_month")}),
    )

    @admin.display(description="Budget of", ordering="user__username")
    def shown_whom(self, budget: Budget) -> str:
        return budget.whom

    @admin.display(description="Models without a price")
    def unpriced(self, budget: Budget) -> str:
        """Which models this budget cannot count in dollars."""
        names = sorted(_without_price(routable_candidates().filter(mapping__is_active=True)))
        named = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
        return format_html("{}<br>At present: {}.", _UNPRICED, named or "none")

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        transaction.on_commit(budgets.forget)


def _without_price(candidates: QuerySet[ModelCandidate]) -> set[str]:
    asked = candidates.filter(input_price=None).exclude(endpoint__dialect=ProviderDialect.DEMO)
    rows = asked.values_list("mapping__key", "model", "endpoint__provider", "endpoint__base_url")
    return {
        f"{key} ({model})"
        for key, model, provider, base_url in rows
        if not published_prices.quote(provider, base_url, model)
    }
