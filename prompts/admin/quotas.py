"""Admin of tiers, entitlements and quotas."""

from __future__ import annotations

from typing import Final

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import Q

from config.staff.lists import LargeList, ModelAdmin
from config.staff.staff_pages import ReadOnly
from prompts.models import Entitlement, ModelMapping, Quota, QuotaUse, Tier

_TIERS: Final = (
    "A tier gives access to the models that require it or a lower tier, and may have its own quotas and "
    "budgets. A higher rank includes the lower ones."
)
_ENTITLED: Final = (
    "An account has at most one tier, until the time given here or without limit. An account without a "
    "tier is below all tiers."
)
_WHOSE: Final = (
    "A quota is for one account, for each account of a tier, or, without both, for every account. An "
    "account's own quota replaces its tier's, and that replaces the quota for every account. Days begin "
    "at midnight of TIME_ZONE."
)


@admin.register(Tier)
class TierAdmin(ModelAdmin):
    """The tiers of accounts."""

    list_display = ("name", "rank")
    search_fields = ("name",)
    fieldsets = ((None, {"fields": ("name", "rank"), "description": _TIERS}),)


@admin.register(Entitlement)
class EntitlementAdmin(ModelAdmin):
    """The tiers of accounts, with their expiry."""

    list_display = ("user", "tier", "expires_at")
    list_filter = ("tier",)
    list_select_related = ("user", "tier")
    search_fields = ("user__username",)
    autocomplete_fields = ("user",)
    fieldsets = ((None, {"fields": ("user", "tier", "expires_at"), "description": _ENTITLED}),)


class QuotaForm(forms.ModelForm):  # type: ignore[type-arg]
    """A quota; its family must be one of a model, or else it would limit nothing."""

    def clean_family(self) -> str:
        family: str = self.cleaned_data["family"].removeprefix("global:")
        known = ModelMapping.objects.filter(Q(key=family) | Q(family=family)).exists()
        if not known and family != self.initial.get("family"):
            raise ValidationError("No model has this key or family. Enter one of a model mapping.")
        return family


@admin.register(Quota)
class QuotaAdmin(ModelAdmin):
    """Runs per day of every account, of a tier, or of one account."""

    form = QuotaForm
    fieldsets = (
        (None, {"fields": ("family", "runs_per_day")}),
        ("For whom", {"fields": ("user", "tier"), "description": _WHOSE}),
    )
    list_display = ("family", "user", "tier", "runs_per_day")
    list_filter = ("tier",)
    list_select_related = ("user", "tier")
    search_fields = ("family", "user__username")
    autocomplete_fields = ("user",)


@admin.register(QuotaUse)
class QuotaUseAdmin(ReadOnly, LargeList, ModelAdmin):
    """The use of quotas; only runs write it."""

    list_display = ("user", "family", "day", "used")
    list_filter = ("day",)
    looked_through = ("family",)
    owned_by = "user"
    search_help_text = "The beginning of a user's name, or a part of a family"
    ordering = ("-id",)
    sortable_by = ()
    list_select_related = ("user",)
