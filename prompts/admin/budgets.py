"""Admin of budgets: the spending limits of accounts and of the whole installation."""

from __future__ import annotations

from typing import Final

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.html import format_html

from config.staff.lists import ModelAdmin
from prompts.endpoints import published_prices
from prompts.endpoints.routing import routable_candidates
from prompts.models import Budget, ModelCandidate, ProviderDialect

_MOST_NAMED: Final = 20
_HOW: Final = (
    "When a limit is used up, new runs are refused (429 budget_exceeded) and live runs end before their "
    "next model call. A run counts when it ends, on that day of TIME_ZONE. An account's own budget "
    "replaces its tier's, and that replaces the budget of every account. The budget for all accounts "
    "together applies in addition. An empty limit is no limit."
)
_UNPRICED: Final = (
    "A call whose price is unknown counts towards limits in tokens but not towards limits in dollars. "
    "Enter an own price for such a model at its mapping."
)


@admin.register(Budget)
class BudgetAdmin(ModelAdmin):
    """Budgets of every account, of a tier, of one account, and of all accounts together."""

    list_display = (
        "shown_subject",
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
    def shown_subject(self, budget: Budget) -> str:
        return budget.subject

    @admin.display(description="Models without a price")
    def unpriced(self, budget: Budget) -> str:
        """The models whose cost a budget cannot count in dollars."""
        names = sorted(_without_price(routable_candidates().filter(mapping__is_active=True)))
        named = ", ".join(names[:_MOST_NAMED]) + (", …" if len(names) > _MOST_NAMED else "")
        return format_html("{}<br>At present: {}.", _UNPRICED, named or "none")


def _without_price(candidates: QuerySet[ModelCandidate]) -> set[str]:
    unpriced = candidates.filter(input_price=None).exclude(endpoint__dialect=ProviderDialect.DEMO)
    rows = unpriced.values_list("mapping__key", "model", "endpoint__provider", "endpoint__base_url")
    return {
        f"{key} ({model})"
        for key, model, provider, base_url in rows
        if not published_prices.quote(provider, base_url, model)
    }
