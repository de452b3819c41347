"""Tiers, who has them, and how many runs a day they give."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest

from config.listing import LargeList, ModelAdmin
from prompts import quotas
from prompts.models import Entitlement, ModelMapping, Quota, QuotaUse, Tier

_TIERS: Final = (
    "A tier opens the models that require it or a lower one, and may have quotas and budgets of its "
    "own. A higher rank includes the lower ones."
)
_ENTITLED: Final = (
    "An account has one tier, until the moment given here or for ever. Without one it is below all."
)
_WHOSE: Final = (
    "For one account, or for each account of a tier; neither means for everybody. Of those that apply "
    "the account's own counts, else its tier's, else everybody's. Days begin at midnight of TIME_ZONE."
)


@admin.register(Tier)
class TierAdmin(ModelAdmin):
    """The levels that accounts can have."""

    list_display = ("name", "rank")
    search_fields = ("name",)
    fieldsets = ((None, {"fields": ("name", "rank"), "description": _TIERS}),)


@admin.register(Entitlement)
class EntitlementAdmin(ModelAdmin):
    """Which account has which tier, until when."""

    list_display = ("user", "tier", "expires_at")
    list_filter = ("tier",)
    list_select_related = ("user", "tier")
    search_fields = ("user__username",)
    autocomplete_fields = ("user",)
    fieldsets = ((None, {"fields": ("user", "tier", "expires_at"), "description": _ENTITLED}),)


class QuotaForm(forms.ModelForm):  # type: ignore[type-arg]
    """A quota; its family is one that a model has, or else it would limit nothing."""

    class Meta:
        model = Quota
        fields: ClassVar = ["family", "user", "tier", "runs_per_day"]

    def clean_family(self) -> str:
        family: str = self.cleaned_data["family"].removeprefix("global:")
        known = ModelMapping.objects.filter(Q(key=family) | Q(family=family)).exists()
        if not known and family != self.initial.get("family"):
            raise ValidationError("No model has this key or this family: enter one of a model mapping.")
        return family


@admin.register(Quota)
class QuotaAdmin(ModelAdmin):
    """Runs a day: for everybody, for a tier, or for one account."""

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

    def save_model(self, request: HttpRequest, obj: Quota, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        transaction.on_commit(quotas.forget)


@admin.register(QuotaUse)
class QuotaUseAdmin(LargeList, ModelAdmin):
    """What was used; only runs write it."""

    list_display = ("user", "family", "day", "used")
    list_filter = ("day",)
    looked_through = ("family",)
    owned_by = "user"
    search_help_text = "How a user's name begins, or part of a family"
    ordering = ("-id",)
    sortable_by = ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[QuotaUse]:
        found: QuerySet[QuotaUse] = super().get_queryset(request)
        return found.select_related("user")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: QuotaUse | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: QuotaUse | None = None) -> bool:
        return False
